"""OPTIMIZE that copies row groups: the rows, ids, vectors and statistics are those of encoding."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import WriterProperties, write_deltalake
from tests.table_kinds import KINDS, changed
from tests.unit.data.test_variant_shredding import number, text, variants

from pyspark_delta.data import row_group_copy
from pyspark_delta.data.reader import read_plan
from pyspark_delta.data.row_group_rules import LargeRowGroups
from pyspark_delta.engines.tasks import TaskRunner
from pyspark_delta.errors import StorageError
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.copying import RowGroupCopying
from pyspark_delta.maintenance.rewriting.plan import in_tasks
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.storage import intercepted
from pyspark_delta.table import Table
from pyspark_delta.testing.faults import Fault, FaultyStore
from pyspark_delta.write.written import has_row_ids

ALL = LargeRowGroups(size=1 << 60, rows=1)
FROM_100 = LargeRowGroups(size=1 << 60, rows=100)
VECTORS = {"delta.enableDeletionVectors": "true"}


def make(path: Path, *sizes: int, columns: str = "id BIGINT, s STRING, d DOUBLE", **properties: str) -> Table:
    """A table of files with so many rows, in the order of `id`."""
    table = Table.create(path, columns, properties=properties)
    start = 0
    for size in sizes:
        ids = list(range(start, start + size))
        table.append({"id": ids, "s": [f"v{i % 7}" for i in ids], "d": [i / 3 for i in ids]})
        start += size
    return table.refresh()


def optimize(table: Table, large: LargeRowGroups | None, **request: Any) -> None:
    plan = plan_optimize(table.refresh().snapshot, OptimizeRequest(copying=large, **request))
    plan.execute()
    table.refresh()


def by_id(table: Table) -> list[dict[str, Any]]:
    return sorted(rows(table), key=lambda row: int(row["id"]))


def rows(table: Table) -> list[dict[str, Any]]:
    """The rows in their order, with their ids if they have some."""
    snapshot = Table.open(table.location).snapshot
    plan = plan_scan(snapshot, row_ids=has_row_ids(snapshot.configuration))
    return [{k: str(v) for k, v in row.items()} for row in read_plan(plan).read_all().to_pylist()]


def footers(table: Table) -> list[tuple[str, list[int]]]:
    """The writer of each file, and the rows of its row groups."""
    found = []
    for path in table.refresh().snapshot.files(("path",))["path"].to_pylist():
        metadata = pq.read_metadata(Path(table.location, path))
        groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        found.append((metadata.created_by.split(" ")[0], groups))
    return found


def stats(table: Table) -> list[dict[str, Any]]:
    return [json.loads(text) for text in table.refresh().snapshot.files(("stats",))["stats"].to_pylist()]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_table_has_its_rows(name: str, tmp_path: Path) -> None:
    """After each change, all row groups are copied that may be."""
    for change, table in changed(name, tmp_path / "t"):
        before = sorted(rows(table), key=repr)
        optimize(table, ALL)
        assert sorted(rows(table), key=repr) == before, change


def test_large_row_groups_are_copied_and_the_rows_between_encoded(tmp_path: Path) -> None:
    sizes = (5, 6, 200, 3, 300, 150, 2)
    table, other = make(tmp_path / "a", *sizes), make(tmp_path / "b", *sizes)
    before = rows(table)
    optimize(table, FROM_100)
    optimize(other, None)
    assert footers(table) == [("pyspark-delta", [11, 200, 3, 300, 150, 2])]
    assert footers(other) == [("parquet-cpp-arrow", [sum(sizes)])]
    assert rows(table) == before
    assert stats(table) == stats(other)
    commit = table.history(1)[0]
    assert (commit["operation"], commit["operationMetrics"]["numRemovedFiles"]) == ("OPTIMIZE", "7")
    optimize(table, FROM_100, target_size=1 << 30)
    assert table.history(1)[0] == commit


def test_files_are_as_large_as_they_should_be(tmp_path: Path) -> None:
    table = make(tmp_path, *[200] * 12)
    before = rows(table)
    size = table.snapshot.size_in_bytes()
    plan = plan_optimize(table.snapshot, OptimizeRequest(copying=ALL, target_size=size // 3))
    bins = replace(plan.bins, starts=plan.bins.starts[:1], ends=plan.bins.ends[-1:], sizes=plan.bins.sizes[:1] * 3)
    replace(plan, bins=replace(bins, read=plan.bins.read[:1] * 3)).execute()
    assert len(footers(table)) in (3, 4)
    assert by_id(table) == before


@pytest.mark.parametrize(
    ("properties", "sizes"),
    [
        ({"delta.parquet.compression.codec": "snappy"}, (200, 200)),
        ({}, (20, 20)),
    ],
)
def test_what_encoding_would_change_is_encoded(tmp_path: Path, properties: dict[str, str], sizes: tuple[int]) -> None:
    """Another codec, small row groups."""
    table = make(tmp_path, *sizes)
    if properties:
        table.alter().set_properties(properties)
    before = rows(table)
    optimize(table, FROM_100)
    assert footers(table) == [("parquet-cpp-arrow", [sum(sizes)])]
    assert rows(table) == before


def test_c338_stored_row_ids_are_copied(tmp_path: Path) -> None:
    table = make(tmp_path, 200, 200, **{"delta.enableRowTracking": "true"})
    optimize(table, ALL)
    for start in (400, 600):
        table.append({"id": list(range(start, start + 200)), "s": ["x"] * 200, "d": [0.0] * 200})
    before = rows(table)
    optimize(table, ALL, target_size=1 << 30)
    assert len(footers(table)) == 1
    assert footers(table)[0][0] == "pyspark-delta"
    assert rows(table) == before


def check_row_ids(table: Table, before: list[dict[str, Any]], names: list[str]) -> None:
    """Check the rows and ids of a table of one file, of copied row groups, whose columns have these names."""
    assert by_id(table) == before
    (file,) = (Path(table.location, unquote(path)) for path in paths(table))
    data = pq.read_table(file)
    ids = [name for name in data.column_names if name.startswith(("_row-id", "_row-commit"))]
    assert data.column_names == [name for one in names for name in (ids if one == "ids" else [one])]
    found = {str(row["id"]): tuple(str(row[name]) for name in ids) for row in data.to_pylist()}
    assert {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in before}.items() <= found.items()
    assert pl.read_parquet(file).select(ids).equals(pl.DataFrame(data.select(ids)))
    for query in (f'sum("{ids[0]}"), max("{ids[1]}")', f'count("{ids[0]}"), min("{ids[1]}"), max(id)'):
        assert (
            duckdb.sql(f"select {query} from '{file}'").fetchall() == duckdb.sql(f"select {query} from data").fetchall()
        )
    assert PeerTable(table.location).to_pyarrow_table().num_rows == len(before)


def test_c323_c326_copied_row_groups_get_their_row_ids(tmp_path: Path) -> None:
    """Of files with several row groups, of several commits, and beside rows that are encoded."""
    path, options = tmp_path / "t", WriterProperties(compression="ZSTD", max_row_group_size=100)
    for start, size in ((0, 250), (1000, 4), (2000, 120)):
        data = pa.table({"id": list(range(start, start + size)), "s": [f"v{n % 7}" for n in range(size)]})
        write_deltalake(str(path), data, mode="append", writer_properties=options)
    table = Table.open(path)
    table.alter().set_properties({"delta.enableRowTracking": "true"})
    table.append({"id": list(range(4000, 4150)), "s": ["new"] * 150})
    before = by_id(table)
    optimize(table, LargeRowGroups(size=1 << 60, rows=50))
    assert footers(table) == [("pyspark-delta", [100, 100, 50, 4, 100, 20, 150])]
    check_row_ids(table, before, ["id", "s", "ids"])


def test_row_ids_are_put_before_stored_partition_columns(tmp_path: Path) -> None:
    properties = {"delta.writePartitionColumnsToParquet": "true", "delta.enableRowTracking": "true"}
    table = Table.create(tmp_path, "id BIGINT, p STRING, n STRUCT<a: INT>", partition_by=["p"], properties=properties)
    for start in (0, 1000, 2000):
        table.append([{"id": start + n, "p": "x", "n": {"a": n}} for n in range(200)])
    before = by_id(table)
    optimize(table, ALL)
    assert footers(table) == [("pyspark-delta", [200, 200, 200])]
    check_row_ids(table, before, ["id", "n", "ids", "p"])


def test_row_ids_of_rows_behind_deleted_ones_stay(tmp_path: Path) -> None:
    table = make(tmp_path, 200, 300, **VECTORS, **{"delta.enableRowTracking": "true"})
    table.delete("id IN (0, 150, 201)")
    before = by_id(table)
    optimize(table, ALL)
    assert footers(table) == [("pyspark-delta", [200, 300])]
    assert by_id(table) == before


SHREDDED = {"delta.enableVariantShredding": "true"}


@pytest.mark.parametrize(
    ("parts", "properties", "copied"),
    [
        ((number, number), SHREDDED, True),
        ((number, number), {**SHREDDED, "delta.enableRowTracking": "true"}, True),
        ((number, number, text), SHREDDED, False),
        ((number, number), {"delta.feature.variantType": "supported"}, False),
    ],
    ids=["one form", "with row ids", "two forms", "not shredded yet"],
)
def test_shredded_variants_of_one_form_are_copied(
    tmp_path: Path, parts: tuple[Callable[[Any], bytes]], properties: dict[str, str], copied: bool
) -> None:
    table = Table.create(tmp_path, "id BIGINT, v VARIANT, d INT", properties=properties)
    for start, encode in enumerate(parts):
        values = [None if n % 9 == 4 else encode(n if encode is number else f"v{n}") for n in range(200)]
        ids = pa.array(range(start * 1000, start * 1000 + 200), pa.int64())
        table.append(pa.table({"id": ids, "v": variants(values), "d": ids.cast(pa.int32())}))
    table.alter().set_properties(SHREDDED)
    before = by_id(table)
    optimize(table, ALL)
    ((writer, groups),) = footers(table)
    assert (writer, groups) == (("pyspark-delta", [200, 200]) if copied else ("parquet-cpp-arrow", [200 * len(parts)]))
    assert by_id(table) == before
    leaves = pq.read_metadata(Path(table.location, paths(table)[0])).schema
    is_shredded = "v.typed_value" in [leaves.column(n).path for n in range(len(leaves))]
    assert is_shredded is (len(parts) == 2)  # the writer finds no common form for numbers and texts
    assert table.scan(where="d = 1005").to_arrow()["id"].to_pylist() == [1005]


def paths(table: Table) -> list[str]:
    return list(table.refresh().snapshot.files(("path",))["path"].to_pylist())


def test_c256_c413_a_few_deleted_rows_keep_their_vector(tmp_path: Path) -> None:
    table = make(tmp_path, 300, 4, 500, 400, 250, **VECTORS)
    table.delete("id IN (0, 299, 303, 310, 700, 803) OR id BETWEEN 804 AND 900")
    before = by_id(table)
    optimize(table, FROM_100)
    (_, groups) = footers(table)[0]
    assert groups == [300, 3, 500, 303, 250]
    assert by_id(table) == before
    ((vector,), (found,)) = table.snapshot.files(("deletion_vector",))["deletion_vector"].to_pylist(), stats(table)
    assert vector["cardinality"] == 5
    assert (found["numRecords"], found["tightBounds"]) == (sum(groups), False)
    assert table.scan(where="id = 700").to_arrow().num_rows == 0
    optimize(table, None, max_deleted_share=0.0)
    assert by_id(table) == before
    assert stats(table)[0]["tightBounds"] is True


def test_vectors_are_applied_where_the_table_has_none_any_more(tmp_path: Path) -> None:
    table = make(tmp_path, 300, 300, **VECTORS)
    table.delete("id = 5")
    table.alter().set_properties({"delta.enableDeletionVectors": "false"})
    before = by_id(table)
    optimize(table, ALL)
    assert footers(table) == [("pyspark-delta", [299, 300])]
    assert by_id(table) == before


@pytest.mark.parametrize(
    ("write", "left"),
    [
        (lambda table: table.delete("id IN (7, 250, 301, 650)"), {7, 250, 301, 650}),
        (lambda table: table.delete("id >= 304 AND id < 804"), set(range(304, 804))),
    ],
)
def test_rows_that_others_delete_meanwhile_are_deleted_in_copied_row_groups(
    tmp_path: Path, write: Callable[[Table], object], left: set[int]
) -> None:
    """By a vector, and by removing a file that had deleted rows before."""
    table = make(tmp_path, 300, 4, 500, 400, **VECTORS)
    table.delete("id IN (0, 299, 303, 310, 700)")
    before = [row for row in by_id(table) if int(row["id"]) not in left]

    class Beside(RowGroupCopying):
        def __call__(self, rewriting: Rewriting, source: Bin, check: Callable[[], None]) -> RewrittenBin:
            found = super().__call__(rewriting, source, check)
            write(Table.open(table.location))
            return found

    plan = plan_optimize(table.refresh().snapshot, OptimizeRequest(copying=FROM_100))
    options = replace(plan.options, writer=Beside(FROM_100))
    result = replace(plan, options=options).execute()
    assert (result.bins, result.bins_given_up) == (1, 0)
    assert len(footers(table)) == 1
    assert by_id(table) == before


def test_damaged_pages_are_left_to_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file is not as its footer says, its rows are decoded, and Arrow decides if they can be."""
    table = make(tmp_path, 300, 300)
    before = rows(table)

    def feed(check: Any, data: Any) -> None:
        raise row_group_copy.FooterError("wrong")

    monkeypatch.setattr(row_group_copy.PageCheck, "feed", feed)
    optimize(table, ALL)
    assert footers(table) == [("parquet-cpp-arrow", [600])]
    assert rows(table) == before
    assert len(list(tmp_path.glob("*.parquet"))) == 3


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["open_output", "read", "write_if_absent"])
def test_after_an_error_of_the_store_nothing_is_left(tmp_path: Path, kind: str, when: Any) -> None:
    table = make(tmp_path / "t", 300, 4, 500, **VECTORS)
    table.delete("id % 30 = 0")
    before, files = by_id(table), set((tmp_path / "t").glob("*.*"))
    clear_cache(table.location)
    fault = Fault(kind=kind, when=when, path_part=".bin" if kind == "write_if_absent" else ".parquet")
    with intercepted(lambda store: FaultyStore(store, fault)):
        plan = plan_optimize(Table.open(table.location).snapshot, OptimizeRequest(copying=FROM_100))
        with pytest.raises(StorageError):
            plan.execute()
    assert set((tmp_path / "t").glob("*.parquet")) == {p for p in files if p.suffix == ".parquet"}
    assert by_id(table) == before


def test_plans_say_what_may_be_copied_and_tasks_encode_the_rest(tmp_path: Path) -> None:
    table, runner = make(tmp_path, 300, 4, 300), cast(TaskRunner, object())
    sizes = table.snapshot.files(("size", "stats")).to_pylist()
    expected = sum(file["size"] for file in sizes if json.loads(file["stats"])["numRecords"] == 300)
    for rows_from, copied in ((100, expected), (1000, 0)):
        large = LargeRowGroups(size=1 << 60, rows=rows_from)
        plan = plan_optimize(table.snapshot, OptimizeRequest(copying=large))
        assert plan.bytes_copied == plan.facts()["bytes_copied"] == copied
        assert (in_tasks(plan, runner).options.tasks is None) is bool(copied)
    assert plan_optimize(table.snapshot, OptimizeRequest(copying=None)).bytes_copied == 0
