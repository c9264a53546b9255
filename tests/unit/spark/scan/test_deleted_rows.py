"""Files in which commits marked rows, gathered for one reading: the number of each row, and what the numbers mean."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from tests.hand_made import HandMade, Json, features, field, metadata, remove
from tests.inline_vectors import vector

from pyspark_delta.changes.plan import plan_changes
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.catalyst.deleted_rows import CHANGES, NUMBERS, FilesOfChanges, gather
from pyspark_delta.spark.frames.reading import with_all_columns

PROTOCOL = features("changeDataFeed", "deletionVectors", reader=["deletionVectors"])
CHANGE = np.dtype([("version", "<i8"), ("microseconds", "<i8"), ("kind", "<i4")])
Marks = dict[int, tuple[int, str]]


def marking(path: Path, commits: Iterable[tuple[str, set[int]]]) -> Snapshot:
    """A table of the files a and b; each commit says which rows of a file its vector marks then."""
    made, before = HandMade(path), {}
    configuration = {"delta.enableChangeDataFeed": "true"}
    made.commit(0, PROTOCOL, metadata(field("id"), configuration=configuration))
    for name in "ab":
        before[name] = made.data(f"{name}.parquet", {"id": list(range(100))})["add"]
    made.commit(1, *({"add": add} for add in before.values()))
    for version, (name, rows) in enumerate(commits, 2):
        plain = {key: value for key, value in before[name].items() if key != "deletionVector"}
        after: Json = {**plain, **vector(*rows)}
        made.commit(version, remove(**before[name]), {"add": after})
        before[name] = after
    return Snapshot.load(str(path))


def gathered(latest: Snapshot) -> FilesOfChanges:
    [scan] = plan_changes(latest, VersionRange(2, latest.version)).scans
    files = with_all_columns(scan.plan.files)
    return gather(files.filter(pc.fill_null(files["selects_rows"], False)), latest.location, {})


def readings(marked: FilesOfChanges) -> list[tuple[str, Marks]]:
    """For each reading the marked rows, with version and kind of their change."""
    return [_reading(row, marked.width) for row in marked.files.to_pylist()]


def _reading(row: Json, width: int) -> tuple[str, Marks]:
    words = np.frombuffer(row[NUMBERS.name], "<u4")
    assert words[-1] == 0
    numbers = (words[:, None] >> np.arange(0, 32, width, dtype=np.uint32) & (2**width - 1)).reshape(-1)
    changes = np.frombuffer(row[CHANGES.name], CHANGE)
    kinds = ("insert", "delete")
    found = {int(i): changes[numbers[i] - 1] for i in np.flatnonzero(numbers)}
    return row["path"], {i: (int(change["version"]), kinds[change["kind"]]) for i, change in found.items()}


@pytest.mark.parametrize(
    ("commits", "width", "times"), [(1, 1, 1), (2, 2, 1), (3, 2, 1), (4, 4, 1), (15, 4, 1), (16, 4, 2)]
)
def test_a_row_has_as_many_bits_as_the_commits_need(tmp_path: Path, commits: int, width: int, times: int) -> None:
    rows = [3 * number + 31 for number in range(commits)]  # the first is the last of a word of one bit for each row
    found = gathered(marking(tmp_path / "t", (("a", set(rows[:n])) for n in range(1, commits + 1))))
    assert (found.width, found.kind, found.files.num_rows) == (width, "delete", times)
    together = {row: change for _, marks in readings(found) for row, change in marks.items()}
    assert together == {row: (2 + number, "delete") for number, row in enumerate(rows)}


def test_a_file_is_read_no_more_often_than_a_row_of_it_was_marked(tmp_path: Path) -> None:
    commits = [("a", {0}), ("b", {5}), ("a", set[int]()), ("a", {0, 1}), ("a", {0})]
    found = gathered(marking(tmp_path / "t", commits))
    assert found.kind is None
    assert readings(found) == [
        ("a.parquet", {0: (2, "delete"), 1: (6, "insert")}),
        ("a.parquet", {0: (4, "insert")}),
        ("a.parquet", {0: (5, "delete"), 1: (5, "delete")}),
        ("b.parquet", {5: (3, "delete")}),
    ]


def test_a_vector_that_marks_nothing_changes_nothing(tmp_path: Path) -> None:
    found = gathered(marking(tmp_path / "t", [("a", set[int]()), ("b", {99})]))
    assert readings(found) == [("a.parquet", {}), ("b.parquet", {99: (3, "delete")})]
