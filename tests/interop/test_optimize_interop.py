"""OPTIMIZE and REORG beside delta-spark: the same files, history and result columns; each goes on after the other."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.interop.conftest import DeltaSparkServer

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


@pytest.fixture(params=TABLES)
def path(request: pytest.FixtureRequest, delta_spark_server: DeltaSparkServer, tmp_path: Path) -> Path:
    path = tmp_path / "t"
    columns = "(id bigint, p string, x double) using delta partitioned by (p)"
    insert = f"insert into delta.`{path}` select /*+ coalesce(1) */ id, if(id % 2 = 0, 'a', 'b'), id * 1.5d from range"
    delta_spark_server.ask(
        "sql",
        statements=[
            f"create table delta.`{path}` {columns} tblproperties ({TABLES[request.param]})",
            f"{insert}(100)",
            f"{insert}(100, 200)",
            f"{insert}(200, 300)",
            f"delete from delta.`{path}` where id % 10 = 3",
        ],
    )
    return path


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
    [*(("vectors", name) for name in STATEMENTS), ("mapped", "purge"), ("rewritten", "optimize")],
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


@pytest.mark.parametrize("path", ["vectors", "mapped"], indirect=True)
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
