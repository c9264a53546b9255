"""OPTIMIZE and PURGE beside other writers, whose commits come between the new files and their commit.

Each case compares with the serial history: the other commit, and the rows that it leaves. Neither side loses: not the
other writer, and not the rest of the rearrangement.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lengths import length

from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import MetadataChangedError
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.reorganize import PurgeRequest, plan_purge
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.metrics import RewriteResult
from pyspark_delta.maintenance.rewriting.origins import RowOrigins, read_vectors
from pyspark_delta.maintenance.rewriting.plan import RewritePlan
from pyspark_delta.maintenance.rewriting.rewrite import BinWriter, Rewriting, rewrite_in_order
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.table import Table

Writer = Callable[[Table], object]
ROWS = 40
END = length(21, 36)  # of the ids that a thread deletes one by one


Make = Callable[..., Table]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Make copies of two tables, which are written once."""
    folder = tmp_path_factory.mktemp("originals")

    @cache
    def original(vectors: bool) -> Table:
        return written(folder / str(vectors), vectors=vectors)

    def copy(path: Path, *, vectors: bool = True) -> Table:
        return copied(original(vectors), path)

    return copy


def written(path: Path, *, vectors: bool) -> Table:
    """Four files in each of two partitions, with deleted rows in some; row ids and the change data feed."""
    properties = {
        "delta.enableDeletionVectors": vectors,
        "delta.enableRowTracking": True,
        "delta.enableChangeDataFeed": True,
    }
    table = Table.create(path, "id BIGINT, n BIGINT, p STRING", partition_by=["p"], properties=properties)
    for number in range(4):
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        table.append({"id": ids, "n": [0] * ROWS, "p": ["a" if i % 2 else "b" for i in ids]})
    table.delete("id IN (3, 4, 5, 41, 44, 100)")
    return table


def copied(table: Table, path: Path) -> Table:
    """A copy of a table, whose rows have the same ids."""
    shutil.copytree(table.location, path, dirs_exist_ok=True)
    return Table.open(path)


def content(table: Table) -> list[tuple[int, int, str, int]]:
    """The rows with their ids."""
    rows = read_plan(plan_scan(Table.open(table.location).snapshot, ["id", "n", "p"], row_ids=True)).read_all()
    return sorted(zip(*(rows[name].to_pylist() for name in ("id", "n", "p", "_row_id")), strict=True))


def after(write: Writer, inner: BinWriter = rewrite_in_order) -> BinWriter:
    """A writer of bins that lets another writer commit once, after the first bin is written."""
    done: list[bool] = []

    def rewrite(rewriting: Rewriting, source: Bin, check: Callable[[], None]) -> RewrittenBin:
        written = inner(rewriting, source, check)
        if not done:
            done.append(True)
            write(Table.open(rewriting.snapshot.location))
        return written

    return rewrite


def run(plan: RewritePlan, write: Writer, inner: BinWriter = rewrite_in_order) -> RewriteResult:
    return replace(plan, options=replace(plan.options, writer=after(write, inner))).execute()


def plan_of(command: str, table: Table) -> RewritePlan:
    if command == "purge":
        return plan_purge(table.snapshot, PurgeRequest(threads=1))
    return plan_optimize(table.snapshot, OptimizeRequest(threads=1))


def merge(table: Table) -> None:
    source = {"id": [1, 42, 1000], "n": [7, 8, 9], "p": ["a", "b", "a"]}
    builder = table.merge(source, "target.id = source.id").when_matched_delete("source.id = 1")
    builder.when_matched_update({"n": "source.n"}).when_not_matched_insert_all().execute()


WRITERS: dict[str, Writer] = {
    "append": lambda t: t.append({"id": [500], "n": [1], "p": ["a"]}),
    "delete": lambda t: t.delete("id IN (2, 7, 50, 51, 120)"),
    "delete twice": lambda t: (t.delete("id = 7"), t.delete("id IN (8, 9, 50)")),
    "delete one partition": lambda t: t.delete("p = 'a' AND id < 20"),
    "delete a file": lambda t: t.delete(f"id >= {3 * ROWS} AND p = 'b'"),
    "update": lambda t: t.update({"n": "n + 1"}, "id % 10 = 1"),
    "move": lambda t: t.update({"p": "'c'"}, "id % 10 = 1"),
    "merge": merge,
    "overwrite where": lambda t: t.overwrite({"id": [6], "n": [6], "p": ["b"]}, where="id = 6"),
    "delete most": lambda t: t.delete("id > 5"),
    "overwrite": lambda t: t.overwrite({"id": [1], "n": [1], "p": ["b"]}),
    "optimize": lambda t: t.optimize(),
    "restore": lambda t: t.restore(4),
    "property": lambda t: t.alter().set_properties({"delta.checkpointInterval": "7"}),
}


def orphans(table: Table, before: set[Path]) -> set[str]:
    """The files that were written since and that no version names."""
    files = {str(path.relative_to(table.location)) for path in set(Path(table.location).rglob("*.parquet")) - before}
    named: set[str] = set()
    for version in range(Table.open(table.location).version + 1):
        named |= set(Table.open(table.location, version=version).snapshot.files(("path",))["path"].to_pylist())
    return {file for file in files if file not in named and "_change_data" not in file and "_delta_log" not in file}


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("name", WRITERS)
def test_neither_side_loses(name: str, vectors: bool, tmp_path: Path, make: Make) -> None:
    write = WRITERS[name]
    alone = make(tmp_path / "alone", vectors=vectors)
    table = copied(alone, tmp_path / "table")
    write(alone)
    expected = content(alone)
    before = set(tmp_path.rglob("*.parquet"))
    plan = plan_of("optimize", table)
    try:
        result = run(plan, write)
    except MetadataChangedError:
        assert name == "property"  # as for every other commit
        result = None
    assert [row[:3] for row in content(table)] == [row[:3] for row in expected]
    old = 4 * ROWS
    assert [row for row in content(table) if row[0] < old] == [row for row in expected if row[0] < old]  # with row ids
    assert not orphans(table, before)
    latest = Table.open(table.location)
    assert latest.snapshot.checksum_differences() == ()
    if result is None:
        return
    assert result.bins + result.bins_given_up == 2
    if vectors and name in ("append", "delete", "delete twice", "update", "merge", "move", "delete a file"):
        assert (result.bins, result.bins_given_up) == (2, 0)
    if name in ("optimize", "overwrite", "restore"):
        assert result.bins_given_up == 2
    if name == "delete one partition" and not vectors:
        assert result.bins_given_up == 1  # the other partition is done
    if result.version is not None:
        assert not Table.open(table.location).changes(starting_version=result.version).to_arrow().num_rows


def test_a_given_up_bin_is_done_by_the_next_run(tmp_path: Path, make: Make) -> None:
    table = make(tmp_path, vectors=False)
    run(plan_of("optimize", table), WRITERS["delete one partition"])
    expected = content(table)
    result = table.refresh().optimize()
    assert (result.bins, result.partitions) == (1, 1)
    assert content(table) == expected


@pytest.mark.parametrize("name", ["delete", "update", "delete a file"])
def test_a_purge_is_not_in_the_way_either(name: str, tmp_path: Path, make: Make) -> None:
    alone = make(tmp_path / "alone")
    table = copied(alone, tmp_path / "table")
    WRITERS[name](alone)
    result = run(plan_of("purge", table), WRITERS[name])
    assert content(table) == content(alone)
    assert result.bins_given_up == 0
    table.refresh().purge()
    assert content(table) == content(alone)


def test_a_change_after_each_batch_meets_the_later_batches(tmp_path: Path, make: Make) -> None:
    """The second batch is based on the first snapshot, and meets the commits since: ours and others'."""
    table = make(tmp_path)
    plan = plan_optimize(table.snapshot, OptimizeRequest(threads=1, batch_size=1))
    versions: list[int] = []

    def rewrite(rewriting: Rewriting, source: Bin, check: Callable[[], None]) -> RewrittenBin:
        written = rewrite_in_order(rewriting, source, check)
        Table.open(rewriting.snapshot.location).delete(f"id IN ({len(versions)}, {len(versions) + 60})")
        versions.append(source.number)
        return written

    result = replace(plan, options=replace(plan.options, writer=rewrite)).execute()
    assert (len(result.versions), result.bins) == (2, 2)
    assert [row[0] for row in content(table)] == sorted(set(range(160)) - {0, 1, 3, 4, 5, 41, 44, 60, 61, 100})


def test_rows_in_any_order_are_found_by_their_origins(tmp_path: Path, make: Make) -> None:
    """A layout that reorders rows says where each row is from."""

    def backwards(rewriting: Rewriting, source: Bin, check: Callable[[], None]) -> RewrittenBin:
        made = rewrite_in_order(rewriting, source, check)
        rows = int(made.rows.sum())
        # The rows of the new file are in order; so are their origins.
        sources: list[int] = []
        positions: list[int] = []
        for number in range(source.files.num_rows):
            known = source.files["num_records"][number].as_py()
            vector = made.origins.files["deletion_vector"][number].as_py()  # type: ignore[union-attr]
            gone = read_vectors(rewriting.snapshot.location, {}, source.files.slice(number, 1))[0] if vector else ()
            left = [row for row in range(known) if row not in gone]
            sources += [number] * len(left)
            positions += left
        assert len(sources) == rows
        return replace(made, origins=RowOrigins(lambda: (np.array(sources), np.array(positions))))

    alone = make(tmp_path / "alone")
    table = copied(alone, tmp_path / "table")
    WRITERS["delete"](alone)
    result = run(plan_of("optimize", table), WRITERS["delete"], backwards)
    assert (result.bins_given_up, content(table)) == (0, content(alone))


def test_without_origins_only_the_touched_bin_is_given_up(tmp_path: Path, make: Make) -> None:
    def forgetful(rewriting: Rewriting, source: Bin, check: Callable[[], None]) -> RewrittenBin:
        return replace(rewrite_in_order(rewriting, source, check), origins=None)

    table = make(tmp_path)
    result = run(plan_of("optimize", table), WRITERS["delete one partition"], forgetful)
    assert (result.bins, result.bins_given_up) == (1, 1)


def test_a_dropped_column_ends_the_run_and_what_was_committed_stays(tmp_path: Path, make: Make) -> None:
    table = make(tmp_path)
    before: Any = content(table)
    with pytest.raises(MetadataChangedError):
        run(plan_of("optimize", table), lambda t: t.alter().add_column("more", "INT"))
    assert content(table) == before


def test_many_writers_at_once(tmp_path: Path, make: Make) -> None:
    """An optimizer in a loop and a deleter in another thread: every deletion lands, and no row comes back."""
    table = make(tmp_path)
    failures: list[BaseException] = []

    def delete() -> None:
        try:
            for number in range(6, END):
                Table.open(table.location).delete(f"id = {number}")
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=delete)
    thread.start()
    while thread.is_alive():
        Table.open(table.location).optimize(max_deleted_share=0.0)
    thread.join()
    assert not failures
    gone = {3, 4, 5, 41, 44, 100, *range(6, END)}
    assert [row[0] for row in content(table)] == sorted(set(range(160)) - gone)
    assert len({row[3] for row in content(table)}) == 160 - len(gone)


def test_c363_in_commit_timestamps_follow_the_winner(tmp_path: Path, make: Make) -> None:
    table = make(tmp_path)
    table.alter().set_properties({"delta.enableInCommitTimestamps": "true"})
    future: list[int] = []

    def delete(other: Table) -> None:
        """A commit by a clock that is ahead."""
        other.delete("id = 7")
        path = Path(other.location) / "_delta_log" / f"{other.version:020}.json"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        future.append(lines[0]["commitInfo"]["inCommitTimestamp"] + 100_000)
        lines[0]["commitInfo"]["inCommitTimestamp"] = future[0]
        path.write_text("\n".join(map(json.dumps, lines)) + "\n")
        path.with_suffix(".crc").unlink()

    result = run(plan_of("optimize", table), delete)
    assert result.version is not None
    info = Table.open(tmp_path, version=result.version).snapshot.commit_info()
    assert info.in_commit_timestamp == future[0] + 1


def test_c016_c282_a_vacuum_keeps_the_vectors_that_were_carried_over(tmp_path: Path, make: Make) -> None:
    table = make(tmp_path)
    result = run(plan_of("optimize", table), WRITERS["delete"])
    expected = content(table)
    assert result.version is not None
    vectors = table.refresh().snapshot.files(("deletion_vector",))["deletion_vector"]
    assert vectors.null_count < len(vectors)
    deleted = table.vacuum(0, mode="full", enforce_retention_duration=False)
    assert deleted.num_deleted_files > 0
    assert content(table) == expected
