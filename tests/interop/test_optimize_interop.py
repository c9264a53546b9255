"""OPTIMIZE and REORG beside delta-spark: the same files, history and result columns; each goes on after the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.interop.conftest import DeltaSparkServer
from tests.lengths import FULL

from pyspark_delta.data.row_group_rules import LargeRowGroups
from pyspark_delta.maintenance.clone.merging import plan_merging
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.spark.api.optimize_builder import METRICS
from pyspark_delta.table import Table

pytestmark = pytest.mark.spark

SAME = ("operation", "operationParameters", "isolationLevel", "isBlindAppend")
COUNTS = ("numAddedFiles", "numRemovedFiles", "numRemovedBytes", "numDeletionVectorsRemoved")
TABLES = {
    "vectors": "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'",
    "mapped": "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'",
    "rewritten": "'delta.enableDeletionVectors' = 'false'",
}
STATEMENTS = {
    "optimize": ("optimize delta.`{}`", lambda table: table.optimize()),
    "optimize where": ("optimize delta.`{}` where p = 'a'", lambda table: table.optimize("p = 'a'")),
    "purge": ("reorg table delta.`{}` apply (purge)", lambda table: table.purge()),
}


@pytest.fixture(scope="module")
def originals(delta_spark_server: DeltaSparkServer, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Tables of delta-spark, each made once, to copy."""
    folder = tmp_path_factory.mktemp("originals")

    @cache
    def original(name: str) -> Path:
        make(delta_spark_server, folder / name, TABLES[name])
        return folder / name

    return original


@pytest.fixture(params=TABLES)
def path(request: pytest.FixtureRequest, originals: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals(request.param), tmp_path / "t"))


def make(peer: DeltaSparkServer, path: Path, properties: str) -> None:
    columns = "(id bigint, p string, x double) using delta partitioned by (p)"
    insert = f"insert into delta.`{path}` select /*+ coalesce(1) */ id, if(id % 2 = 0, 'a', 'b'), id * 1.5d from range"
    peer.sql(
        f"create table delta.`{path}` {columns} tblproperties ({properties})",
        f"{insert}(100)",
        f"{insert}(100, 200)",
        f"{insert}(200, 300)",
        f"delete from delta.`{path}` where id % 10 = 3",
    )


def rows(path: Path) -> list[tuple[Any, ...]]:
    clear_cache(str(path))
    return sorted(tuple(row.values()) for row in Table.open(path).scan().to_arrow().to_pylist())


def theirs(peer: DeltaSparkServer, path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in peer.read(path).to_pylist())


def last(path: Path) -> dict[str, Any]:
    clear_cache(str(path))
    return Table.open(path).history(1)[0]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *(("vectors", name) for name in STATEMENTS if FULL or name != "optimize where"),
        *([("mapped", "purge")] if FULL else []),
        ("rewritten", "optimize"),
    ],
    indirect=["path"],
)
def test_both_do_the_same(delta_spark_server: DeltaSparkServer, path: Path, tmp_path: Path, name: str) -> None:
    peer, copy = delta_spark_server, tmp_path / "copy"
    shutil.copytree(path, copy)
    expected = rows(path)
    statement, run = STATEMENTS[name]
    (found,) = peer.ask("rows", statement=statement.format(copy))
    result = run(Table.open(path))
    assert rows(path) == theirs(peer, path) == theirs(peer, copy) == expected
    ours, reference = last(path), last(copy)
    if name != "optimize where":  # their text of the condition is that of Spark's parser
        assert {one: ours[one] for one in SAME} == {one: reference[one] for one in SAME}
    assert ours["operationMetrics"].keys() == reference["operationMetrics"].keys()
    assert [ours["operationMetrics"][one] for one in COUNTS] == [reference["operationMetrics"][one] for one in COUNTS]
    row, metrics = result.as_row(), found["metrics"]
    assert list(row) == list(metrics)
    same = ("numFilesAdded", "numFilesRemoved", "partitionsOptimized", "numBins", "numBatches", "totalConsideredFiles")
    assert {one: row[one] for one in same} == {one: metrics[one] for one in same}
    for one in ("zOrderStats", "clusteringStats", "deletionVectorStats", "numTableColumns", "numTableColumnsWithStats"):
        assert row[one] == metrics[one], one
    assert row["filesRemoved"] == metrics["filesRemoved"]


@pytest.mark.parametrize("path", ["vectors", "mapped"] if FULL else ["mapped"], indirect=True)
def test_each_goes_on_where_the_other_was(delta_spark_server: DeltaSparkServer, path: Path) -> None:
    peer = delta_spark_server
    expected = rows(path)
    Table.open(path).optimize("p = 'a'")
    peer.ask("sql", statements=[f"optimize delta.`{path}`", f"delete from delta.`{path}` where id = 8"])
    expected = [row for row in expected if row[0] != 8]
    Table.open(path).purge()
    assert rows(path) == theirs(peer, path) == expected
    peer.ask("sql", statements=[f"update delta.`{path}` set x = -1 where id = 10"])
    Table.open(path).optimize(max_deleted_share=0)
    expected = sorted((*row[:2], -1.0) if row[0] == 10 else row for row in expected)
    assert rows(path) == theirs(peer, path) == expected


@pytest.mark.parametrize("path", ["rewritten"], indirect=True)
def test_the_result_has_their_types(delta_spark_server: DeltaSparkServer, path: Path) -> None:
    statement = f"optimize delta.`{path}`"
    assert delta_spark_server.ask("types", statement=statement) == f"struct<path:string,metrics:struct<{METRICS}>>"


def test_row_ids_in_copied_row_groups_are_read(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> None:
    """Of delta-spark's own files, which have timestamps in INT96 and no ids, merged by OPTIMIZE and by a deep clone."""
    peer, path, deep = delta_spark_server, tmp_path / "t", tmp_path / "deep"
    enabled = "tblproperties ('delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true')"
    peer.sql(f"create table delta.`{path}` (id bigint, at timestamp, s struct<x: string>) using delta {enabled}")
    peer.sql("set spark.sql.parquet.outputTimestampType = INT96")
    for start in (0, 1000, 2000):
        select = f"id, timestamp_millis(id), named_struct('x', cast(id as string)) from range({start}, {start + 300})"
        peer.sql(f"insert into delta.`{path}` select /*+ coalesce(1) */ {select}")
    peer.sql("set spark.sql.parquet.outputTimestampType = TIMESTAMP_MICROS")
    peer.sql(f"delete from delta.`{path}` where id in (0, 1299)")

    def ids(table: Path, names: str) -> list[str]:
        clear_cache(str(table))
        found = peer.query(f"select id, at, s.x, {names} from delta.`{table}`").to_pylist()
        assert rows(table) == sorted(
            tuple(row.values()) for row in peer.query(f"select * from delta.`{table}`").to_pylist()
        )
        return sorted(map(repr, found))

    both = "_metadata.row_id r, _metadata.row_commit_version v"
    before, row_ids = ids(path, both), ids(path, "_metadata.row_id r")
    large = LargeRowGroups(1 << 60, 1)
    plan = Table.open(path).clone(deep, shallow=False, merge_files=True, plan=True)
    merging = plan_merging(plan.source, plan.target, plan.declaration.configuration, large)
    replace(plan, merging=merging).execute()
    plan_optimize(Table.open(path).snapshot, OptimizeRequest(copying=large)).execute()
    for table in (path, deep):
        (file,) = Table.open(table).files().to_pylist()
        footer = pq.read_metadata(table / file["path"])
        assert (footer.num_row_groups, footer.row_group(0).column(1).physical_type) == (3, "INT96")
    assert ids(path, both) == before
    assert ids(deep, "_metadata.row_id r") == row_ids
    peer.sql(
        f"update delta.`{deep}` set at = null where id = 7", f"insert into delta.`{deep}` values (5000, null, null)"
    )
    assert len({row.rpartition("'r'")[2] for row in ids(deep, "_metadata.row_id r")}) == len(before) + 1
