"""Clustering, Z-order and sorting in tasks with an exchange: the same as in this process, in tables of every kind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from tests.pickled_tasks import PickledTasks
from tests.rows_of_all_types import make as make_all_types
from tests.rows_of_all_types import rows as rows_of_all_types

from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import DataFileError, StorageError
from pyspark_delta.maintenance.layout.cubes import CubeSizes
from pyspark_delta.maintenance.layout.layouts import Sort
from pyspark_delta.maintenance.layout.pieces import cut_long, in_batches, pieces_of, rows_of
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.rewriting.origins import RowOrigins
from pyspark_delta.maintenance.rewriting.plan import RewritePlan, in_tasks
from pyspark_delta.maintenance.rewriting.stored_origins import OriginWriter, StoredOrigins, first_origin
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.storage import intercepted
from pyspark_delta.table import Table
from pyspark_delta.testing.faults import Fault, FaultyStore
from pyspark_delta.write.written import has_row_ids

TRACKED = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
TARGET = 8_000
FILES, ROWS = 6, 6_000
LAYOUTS: dict[str, dict[str, Any]] = {
    "zorder": {"zorder_by": ["id", "n"]},
    "sort": {"layout": Sort("s", "id")},
    "clustering": {"cubes": CubeSizes(target=20_000, stable=10_000)},
}


def make(path: Path, name: str = "zorder", **given: Any) -> Table:
    clustered = ["id", "n"] if name == "clustering" else []
    table = Table.create(path, "id BIGINT, n BIGINT, s STRING, p INT", cluster_by=clustered, **given)
    for number in range(FILES):
        append(table, number)
    return table


def append(table: Table, number: int) -> None:
    count = ROWS // FILES
    ids = np.random.default_rng(number).permutation(count) + number * count
    table.append({"id": ids, "n": ids * 7919 % ROWS, "s": [f"s{i % 97}" for i in ids.tolist()], "p": ids % 2})


def content(table: Table) -> pa.Table:
    """The rows, with their ids if they have some."""
    snapshot = Table.open(table.location).snapshot
    has_ids = has_row_ids(snapshot.configuration)
    return read_plan(plan_scan(snapshot, None, row_ids=has_ids)).read_all().sort_by("id")


def files(table: Table) -> list[dict[str, Any]]:
    names = ("partition_values", "tags", "clustering_provider", "stats")
    found: list[dict[str, Any]] = Table.open(table.location).snapshot.files(names).to_pylist()
    return found


def ids_by_file(table: Table) -> list[list[int]]:
    """The ids of each file, in their order."""
    paths = Table.open(table.location).snapshot.files(("path",))["path"].to_pylist()
    return sorted(pq.read_table(Path(table.location) / path)["id"].to_pylist() for path in paths)


def planned(table: Table, name: str, **given: Any) -> RewritePlan:
    request = OptimizeRequest(target_size=TARGET, **LAYOUTS[name], **given)
    return plan_optimize(Table.open(table.location).snapshot, request)


def run(plan: RewritePlan, tasks: PickledTasks | None = None) -> Any:
    return in_tasks(plan, tasks or PickledTasks(cores=8)).execute()


def on_disk(table: Table) -> set[Path]:
    return {path for path in Path(table.location).rglob("*") if path.is_file() and "_delta_log" not in path.parts}


def unnamed(table: Table) -> set[str]:
    """The files that no version names."""
    latest = Table.open(table.location).snapshot
    live, gone = latest.files(("path",)), latest.tombstones(("path",))
    named = set(live["path"].to_pylist()) | set(gone["path"].to_pylist())
    found = {str(path.relative_to(table.location)) for path in on_disk(table)}
    return {path for path in found - named if not path.startswith("deletion_vector_")}


@pytest.mark.parametrize("memory", ["512MB", "1MB"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_tasks_lay_out_rows_as_this_process_does(tmp_path: Path, name: str, memory: str) -> None:
    table, tasks = make(tmp_path / "a", name, properties=TRACKED), PickledTasks(cores=8)
    table.delete("id % 7 = 0")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    before, other = content(table), Table.open(tmp_path / "b")
    result, expected = run(planned(table, name, memory=memory), tasks), planned(other, name, memory=memory).execute()
    assert tasks.jobs == [FILES]
    assert content(table).equals(before)
    assert not unnamed(table)
    assert result.removed.count == expected.removed.count == FILES
    assert (result.added.count, result.bins, result.deleted_rows_removed) == (
        expected.added.count,
        expected.bins,
        expected.deleted_rows_removed,
    )
    assert replace(result.layout, new_cubes=0) == replace(expected.layout, new_cubes=0)
    ours, theirs = files(table), files(other)
    assert {len(dict(file["tags"] or ())) for file in ours} == {len(dict(file["tags"] or ())) for file in theirs}
    assert {file["clustering_provider"] for file in ours} == {file["clustering_provider"] for file in theirs}
    if memory == "512MB":  # with less, trees have other leaves
        assert ids_by_file(table) == ids_by_file(other)
    infos = [one.history(1)[0] for one in (table, other)]
    assert infos[0]["operationParameters"] == infos[1]["operationParameters"]
    assert infos[0]["operationMetrics"].keys() == infos[1]["operationMetrics"].keys()


def test_files_of_a_sort_in_tasks_are_ranges(tmp_path: Path) -> None:
    table = make(tmp_path)
    run(planned(table, "sort"))
    bounds = sorted(
        (json.loads(f["stats"])["minValues"]["s"], json.loads(f["stats"])["maxValues"]["s"]) for f in files(table)
    )
    assert len(bounds) > 3
    assert all(one[1] <= two[0] for one, two in pairwise(bounds))


def test_each_partition_is_a_bin_of_the_same_job(tmp_path: Path) -> None:
    table, tasks = make(tmp_path, partition_by=["p"]), PickledTasks()  # one task for each bin
    before = content(table)
    result = run(planned(table, "zorder"), tasks)
    assert (tasks.jobs, result.partitions, result.bins) == ([2], 2, 2)
    assert content(table).equals(before)
    for file in files(table):
        stats, (value,) = json.loads(file["stats"]), dict(file["partition_values"]).values()
        assert stats["minValues"]["id"] % 2 == stats["maxValues"]["id"] % 2 == int(value)


def test_rows_of_all_types_travel(tmp_path: Path) -> None:
    table = make_all_types(tmp_path, rows_of_all_types(0, 300), rows_of_all_types(300, 300), [{"id": 1000}])
    before = table.scan().to_arrow()
    run(plan_optimize(table.snapshot, OptimizeRequest(zorder_by=["y", "s", "d"], target_size=5_000)))
    after = Table.open(tmp_path).scan().to_arrow()
    assert after["id"].to_pylist() != before["id"].to_pylist()
    assert str(after.sort_by("id").to_pylist()) == str(before.sort_by("id").to_pylist())  # NaN differs from itself


WRITERS: dict[str, Callable[[Table], object]] = {
    "vectors": lambda table: (table.delete("id % 10 = 7"), table.update({"s": "'changed'"}, "id % 10 = 5")),
    "a file is gone": lambda table: table.delete(f"id < {ROWS // FILES} OR id % 11 = 0"),
    "all is rewritten": lambda table: table.overwrite({"id": [1], "n": [1], "s": ["s"], "p": [1]}),
    "append": lambda table: append(table, FILES),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("writer", WRITERS)
def test_changes_of_others_meanwhile_reach_the_new_files(tmp_path: Path, name: str, writer: str) -> None:
    table = make(tmp_path, name, properties=TRACKED)
    table.delete("id % 10 = 3")
    plan = planned(table, name)
    WRITERS[writer](table)
    expected = content(table)
    result = run(plan)
    assert content(table).equals(expected)
    assert (result.bins, result.bins_given_up) == ((0, 1) if writer == "all is rewritten" else (1, 0))
    assert not unnamed(table)


def test_without_vectors_no_origins_are_kept_and_a_conflict_gives_the_bin_up(tmp_path: Path) -> None:
    table = make(tmp_path)
    plan = planned(table, "zorder")
    table.delete("id = 5")
    expected = content(table)
    assert run(plan).bins_given_up == 1
    assert content(table).equals(expected)
    assert not unnamed(table)


@pytest.mark.findings("F02")  # a file is damaged
def test_a_file_that_cannot_be_read_ends_the_run_before_any_task_writes(tmp_path: Path) -> None:
    table = make(tmp_path, properties=TRACKED)
    path = tmp_path / table.files()["path"].to_pylist()[2]
    damaged = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(2)  # not among those that the sample has
    assert column.path_in_schema == "s"
    first = column.dictionary_page_offset
    damaged[first : first + column.total_compressed_size] = b"x" * column.total_compressed_size
    path.write_bytes(damaged)
    before, written = on_disk(table), list[str]()
    with intercepted(lambda store: Watched(store, written)), pytest.raises(DataFileError):
        run(planned(table, "zorder"))
    assert (on_disk(table), written) == (before, [])


class Watched:
    """A store that notes what is opened for writing."""

    def __init__(self, store: Any, written: list[str]) -> None:
        self._store, self._written = store, written

    def __getattr__(self, name: str) -> Any:
        if name == "open_output":
            return lambda path: self._written.append(path) or self._store.open_output(path)
        return getattr(self._store, name)


@pytest.mark.parametrize("what", ["part-00003", "row_origins_"])
def test_a_file_that_cannot_be_written_ends_the_run_and_leaves_none(tmp_path: Path, what: str) -> None:
    table = make(tmp_path, properties=TRACKED)
    before = on_disk(table)
    fault = Fault(kind="open_output" if "part" in what else "write", path_part=what)
    with intercepted(lambda store: FaultyStore(store, fault)), pytest.raises(StorageError):
        run(planned(table, "zorder"))
    assert on_disk(table) == before
    assert table.refresh().version == FILES


# ------------------------------------------------------------------------------------------------ pieces and origins
def test_pieces_are_rows_again_and_long_leaves_are_several() -> None:
    rows = pa.RecordBatch.from_pydict({"a": list(range(100)), "b": [[f"{i}"] * (i % 3) for i in range(100)]})
    starts, leaf = cut_long(np.array([0, 10, 75, 100]), (4 << 20) / 30)
    assert starts.tolist() == [0, 10, 40, 70, 75, 100]
    assert leaf.tolist() == [0, 1, 1, 1, 2]
    pieces = pieces_of(rows, starts)
    found = [rows_of(piece.as_py(), rows.schema) for piece in pieces]
    assert [len(one) for one in found] == [10, 30, 30, 5, 25]
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([rows]))
    batch = pa.RecordBatch.from_arrays([pieces], ["rows"])
    sent = list(in_batches(batch, np.array([9, 9, 1, 1, 40]) << 20))
    assert [one.num_rows for one in sent] == [2, 3]
    assert pa.Table.from_batches(sent)["rows"].combine_chunks().equals(pieces)


def test_stored_origins_find_rows_as_arrays_in_memory_do(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    sources, positions = chance.permutation([(s, p) for s in range(5) for p in range(400)]).T
    paths = []
    for part in np.array_split(np.arange(2000), 3):
        writer = OriginWriter()
        for some in np.array_split(part, 7):
            writer.append(first_origin(1) * sources[some] + positions[some])
        paths.append(writer.store(str(tmp_path), {}))
    stored, known = StoredOrigins(str(tmp_path), {}, paths), RowOrigins(lambda: (sources, positions))
    for deleted in ({0: None}, {1: BitMap64([0, 7, 399])}, {4: None, 0: BitMap64([5]), 2: BitMap64(range(300))}, {}):
        assert stored.places(deleted).tolist() == sorted(known.places(deleted).tolist())
