"""Statements, writes and reads on executors that are processes of their own, with the driver's engine forbidden.

Nothing may depend on sharing a process, a JVM or a Python worker with the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from tests.costs import SPARK, TASKS, set_cost
from tests.golden.catalogue import assert_content, golden_tables

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import ConstraintViolationError

ROWS = "select id, id % 10 n, concat('v', id % 7) v, id % 3 p from range(0, 3000, 1, 4)"
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
DOORS = ["dat/deletion_vectors", "dat/multi_partitioned", "delta-kernel/column-mapping-id"]
ENGINES = {"Arrow in tasks": TASKS, "Spark": {**TASKS, **SPARK}}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, delta_cluster: SparkSession) -> str:
    """Each engine that works on executors, as the only one."""
    set_cost(delta_cluster, **ENGINES[request.param])
    return str(request.param)


def make(session: SparkSession, path: Path, **properties: str) -> DeltaTable:
    writer = session.sql(ROWS).write.format("delta").partitionBy("p")
    for name, value in properties.items():
        writer = writer.option(name, value)
    writer.save(str(path))
    return DeltaTable.forPath(session, str(path))


def rows(path: Path) -> list[dict[str, Any]]:
    return sorted(Table.open(str(path)).scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def expected() -> list[dict[str, Any]]:
    return [{"id": i, "n": i % 10, "v": f"v{i % 7}", "p": i % 3} for i in range(3000)]


@pytest.mark.parametrize("door", ["delta_cluster", "plain_cluster"])
@pytest.mark.parametrize("table_id", DOORS)
def test_both_doors_read(
    request: pytest.FixtureRequest, golden_table: Callable[[str], Path], door: str, table_id: str
) -> None:
    session = request.getfixturevalue(door)
    found = session.read.format("delta").load(str(golden_table(table_id))).toArrow()
    assert_content(found, next(t.expected for t in golden_tables() if t.id == table_id))


@pytest.mark.parametrize("door", ["delta_cluster", "plain_cluster"])
def test_both_doors_write_one_version_after_another(request: pytest.FixtureRequest, tmp_path: Path, door: str) -> None:
    session = request.getfixturevalue(door)
    for number in range(3):
        frame = session.range(number * 100, number * 100 + 100, 1, 4)
        frame.write.format("delta").mode("append").save(str(tmp_path))
    assert (Table.open(str(tmp_path)).version, [row["id"] for row in rows(tmp_path)]) == (2, list(range(300)))


@pytest.mark.parametrize("properties", [{**VECTORS, **FEED}, FEED])
def test_c252_rows_are_deleted_and_updated(
    delta_cluster: SparkSession, tmp_path: Path, engine: str, properties: dict[str, str]
) -> None:
    table = make(delta_cluster, tmp_path, **properties)
    assert table.delete("n = 3").collect() == [Row(num_affected_rows=300)]
    assert table.update("n = 4", {"v": "concat(v, '!')", "p": "p + 1"}).collect() == [Row(num_affected_rows=300)]
    changed = [
        {**row, "v": row["v"] + "!", "p": row["p"] + 1} if row["n"] == 4 else row for row in expected() if row["n"] != 3
    ]
    assert rows(tmp_path) == changed
    kinds = Table.open(str(tmp_path)).changes(starting_version=1).to_arrow()["_change_type"].to_pylist()
    assert sorted({kind: kinds.count(kind) for kind in kinds}.items()) == [
        ("delete", 300),
        ("update_postimage", 300),
        ("update_preimage", 300),
    ]


def test_c252_a_large_source_is_merged(delta_cluster: SparkSession, tmp_path: Path, engine: str) -> None:
    table = make(delta_cluster, tmp_path, **VECTORS)
    source = delta_cluster.range(2000, 100_000, 1, 4).selectExpr("id", "id % 10 n", "'new' v", "id % 3 p")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    result = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().collect()
    assert [tuple(row) for row in result] == [(98_000, 1000, 0, 97_000)]
    found = rows(tmp_path)
    assert found[:2000] == expected()[:2000]
    assert [row["v"] for row in found[2000:]] == ["new"] * 98_000


def test_an_error_of_a_task_comes_back_as_itself(delta_cluster: SparkSession, tmp_path: Path, engine: str) -> None:
    table = make(delta_cluster, tmp_path, **VECTORS)
    table.alter().addConstraint("small", "n < 10")
    with pytest.raises(ConstraintViolationError, match="small"):
        table.update("id = 2999", {"n": "n + 1"})
    assert rows(tmp_path) == expected()
