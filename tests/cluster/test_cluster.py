"""Statements, writes and reads on executors that are processes of their own, with the driver's engine forbidden.

Nothing may depend on sharing a process, a JVM or a Python worker with the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from tests.costs import SPARK, TASKS, engine_of, set_cost
from tests.golden.catalogue import assert_content, golden_tables
from tests.lengths import FULL, length
from tests.managed import Warehouse

from pyspark_delta import DeltaTable, Snapshot, Table, Transaction
from pyspark_delta.catalog.connections import disconnect_catalog
from pyspark_delta.catalog.names import ResolvedTable, required_name, resolve
from pyspark_delta.errors import ConstraintViolationError

ROWS = "select id, id % 10 n, concat('v', id % 7) v, id % 3 p from range(0, 3000, 1, 4)"
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
DOORS = ["dat/deletion_vectors", "dat/multi_partitioned", "delta-kernel/column-mapping-id"]
NO_SOURCE = {"source_bytes": 0, "source_rows": 0}  # no source of a merge is collected
ENGINES = {"Arrow in tasks": {**TASKS, **NO_SOURCE}, "Spark": {**TASKS, **SPARK}}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, delta_cluster: SparkSession) -> Iterator[str]:
    """Each engine that works on executors, as the only one."""
    set_cost(delta_cluster, **ENGINES[request.param])
    yield str(request.param)
    set_cost(delta_cluster)


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
@pytest.mark.parametrize("table_id", DOORS if FULL else DOORS[::2])
def test_both_doors_read(
    request: pytest.FixtureRequest, golden_table: Callable[[str], Path], door: str, table_id: str
) -> None:
    session = request.getfixturevalue(door)
    found = session.read.format("delta").load(str(golden_table(table_id))).toArrow()
    assert_content(found, next(t.expected for t in golden_tables() if t.id == table_id))


# ------------------------------------------------------------------------------------------------- streams of writes
@pytest.mark.parametrize("door", ["delta_cluster", "plain_cluster"])
def test_a_sequence_of_appends_and_overwrites(request: pytest.FixtureRequest, tmp_path: Path, door: str) -> None:
    session, expected = request.getfixturevalue(door), []
    for number in range(length(5, 9)):
        writer = session.range(number * 100, number * 100 + 100, 1, 2).write.format("delta")
        mode = "overwrite" if number % 4 == 3 else "append"
        writer.mode(mode).save(str(tmp_path))
        kept = [] if mode == "overwrite" or not expected else expected[-1]
        expected.append([*kept, *range(number * 100, number * 100 + 100)])
    for version, ids in enumerate(expected):
        assert Table.open(str(tmp_path), version=version).count() == len(ids)
    assert [row["id"] for row in rows(tmp_path)] == expected[-1]


@pytest.mark.parametrize("engine", ENGINES if FULL else ["Arrow in tasks"], indirect=True)
def test_concurrent_appends_and_deletes_of_two_threads(
    delta_cluster: SparkSession, tmp_path: Path, engine: str
) -> None:
    table = make(delta_cluster, tmp_path, **VECTORS)

    def work(first: int) -> None:
        for number in range(first, first + 300, 100):
            frame = delta_cluster.range(number, number + 100, 1, 2).selectExpr("id", "1L n", "'new' v", "0L p")
            frame.write.format("delta").mode("append").save(str(tmp_path))
        table.delete(f"n = {first // 10000} and v <> 'new'")

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(work, (10_000, 20_000)))
    old = [i for i in range(3000) if i % 10 not in (1, 2)]
    assert Table.open(str(tmp_path)).version == 8
    assert [row["id"] for row in rows(tmp_path)] == [*old, *range(10_000, 10_300), *range(20_000, 20_300)]


@pytest.mark.parametrize("door", ["delta_cluster", "plain_cluster"])
def test_a_stream_from_a_table_to_a_table(request: pytest.FixtureRequest, tmp_path: Path, door: str) -> None:
    """Through Spark's traits, and through the Python Data Source."""
    session: SparkSession = request.getfixturevalue(door)
    source, target = tmp_path / "source", tmp_path / "t"
    Table.create(str(source), "id BIGINT, p BIGINT", partition_by=["p"], properties=VECTORS)
    for number in range(2):
        Table.open(str(source)).append({"id": [number * 10 + i for i in range(10)], "p": [number] * 10})
    Table.open(str(source)).delete("id = 3")
    rows_of = session.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(source))
    writer = rows_of.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c"))
    writer.trigger(availableNow=True).start(str(target)).awaitTermination()
    assert [row["id"] for row in rows(target)] == [i for i in range(20) if i != 3]
    assert Table.open(str(target)).history()[0]["operation"] == "STREAMING UPDATE"


@pytest.mark.parametrize("door", ["delta_cluster", "plain_cluster"])
def test_micro_batches_of_a_stream_have_their_effect_once(
    request: pytest.FixtureRequest, tmp_path: Path, door: str
) -> None:
    """Each batch is written by `foreachBatch`; a query that begins again repeats batches under the same numbers."""
    session: SparkSession = request.getfixturevalue(door)
    for number in range(3):
        session.range(number * 10, number * 10 + 10, 1, 1).write.parquet(str(tmp_path / "in"), mode="append")
    incoming = session.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))

    def append(frame: DataFrame, batch: int) -> None:
        writer = frame.write.format("delta").mode("append").option("txnAppId", "stream").option("txnVersion", batch)
        writer.save(str(tmp_path / "t"))

    for attempt in ("first", "again"):
        writer = incoming.writeStream.foreachBatch(append).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / attempt)).start().awaitTermination()
        assert Table.open(str(tmp_path / "t")).version == 2
        assert [row["id"] for row in rows(tmp_path / "t")] == list(range(30))


# ------------------------------------------------------------------------------------------------------- statements
CHANGED = [("Arrow in tasks", {**VECTORS, **FEED}), ("Spark", FEED)]
OTHERS = [("Arrow in tasks", FEED), ("Spark", {**VECTORS, **FEED})]


@pytest.mark.parametrize(("engine", "properties"), [*CHANGED, *(OTHERS if FULL else [])], indirect=["engine"])
def test_c252_rows_are_deleted_and_updated(
    delta_cluster: SparkSession, plain_cluster: SparkSession, tmp_path: Path, engine: str, properties: dict[str, str]
) -> None:
    table = make(delta_cluster, tmp_path, **properties)
    assert table.delete("n = 3").collect() == [Row(num_affected_rows=300)]
    assert engine_of(str(tmp_path)) == engine
    assert table.update("n = 4", {"v": "substring(v, 2, 1)", "p": "p + 1"}).collect() == [Row(num_affected_rows=300)]
    assert engine_of(str(tmp_path)) == engine
    changed = [
        {**row, "v": row["v"][1], "p": row["p"] + 1} if row["n"] == 4 else row for row in expected() if row["n"] != 3
    ]
    assert rows(tmp_path) == changed
    for door in (delta_cluster, plain_cluster):
        found = door.read.format("delta").load(str(tmp_path)).where("p > 0").toArrow().to_pylist()
        assert sorted(found, key=lambda row: row["id"]) == [row for row in changed if row["p"] > 0]
    kinds = Table.open(str(tmp_path)).changes(starting_version=1).to_arrow()["_change_type"].to_pylist()
    assert sorted({kind: kinds.count(kind) for kind in kinds}.items()) == [
        ("delete", 300),
        ("update_postimage", 300),
        ("update_preimage", 300),
    ]


def test_c252_a_large_source_is_merged(delta_cluster: SparkSession, tmp_path: Path, engine: str) -> None:
    table = make(delta_cluster, tmp_path, **VECTORS, **FEED)
    source = delta_cluster.range(2000, 100_000, 1, 4).selectExpr("id", "id % 10 n", "'new' v", "id % 3 p")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete("s.n = 3")
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().whenNotMatchedBySourceDelete("t.n = 4")
    result = merge.execute().collect()
    assert [tuple(row) for row in result] == [(98_200, 900, 300, 97_000)]
    assert engine_of(str(tmp_path)) == "Spark"
    found = rows(tmp_path)
    assert found[:1800] == [row for row in expected()[:2000] if row["n"] != 4]
    assert [row["id"] for row in found[1800:]] == [i for i in range(2000, 100_000) if i >= 3000 or i % 10 != 3]
    assert {row["v"] for row in found[1800:]} == {"new"}


def test_a_source_that_is_too_large_to_broadcast_is_merged(delta_cluster: SparkSession, tmp_path: Path) -> None:
    set_cost(delta_cluster, **TASKS, **NO_SOURCE, broadcast_rows=1000)
    table = make(delta_cluster, tmp_path)
    source = delta_cluster.range(2000, 100_000, 1, 4).selectExpr("id", "id % 10 n", "'new' v", "id % 3 p")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert [tuple(row) for row in merge.execute().collect()] == [(98_000, 1000, 0, 97_000)]
    set_cost(delta_cluster)
    found = rows(tmp_path)
    assert found[:2000] == expected()[:2000]
    assert [row["v"] for row in found[2000:]] == ["new"] * 98_000


def test_rows_that_match_a_small_source_are_found_on_executors(delta_cluster: SparkSession, tmp_path: Path) -> None:
    """The two sides are joined in the driver, which reads no file of the table."""
    set_cost(delta_cluster, **TASKS)
    table = make(delta_cluster, tmp_path, **VECTORS, **FEED)
    source = delta_cluster.range(2990, 3010, 1, 2).selectExpr("id", "id % 10 n", "'new' v", "id % 3 p")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert [tuple(row) for row in merge.execute().collect()] == [(20, 10, 0, 10)]
    set_cost(delta_cluster)
    assert engine_of(str(tmp_path)) == "Arrow in the driver"
    found = rows(tmp_path)
    assert found[:2990] == expected()[:2990]
    assert [(row["id"], row["v"]) for row in found[2990:]] == [(i, "new") for i in range(2990, 3010)]


def test_tables_of_a_catalog_are_written_changed_and_read(
    delta_cluster: SparkSession, tmp_path: Path, engine: str
) -> None:
    warehouse = Warehouse(tmp_path)
    name = warehouse.full("t")
    try:
        writer = delta_cluster.sql(ROWS).write.format("delta").partitionBy("p").options(**VECTORS, **FEED)
        writer.saveAsTable(name)
        delta_cluster.range(5000, 5100, 1, 2).selectExpr("id", "0L n", "'a' v", "1L p").write.insertInto(name)
        table = DeltaTable.forName(delta_cluster, name)
        assert table.delete("n = 3").collect() == [(300,)]
        assert table.update("id >= 5000", {"v": "'b'"}).collect() == [(100,)]
        source = delta_cluster.range(5050, 5150, 1, 2).selectExpr("id", "0L n", "'c' v", "1L p").alias("s")
        upsert = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
        assert [tuple(row) for row in upsert.execute().collect()] == [(100, 50, 0, 50)]
        assert [row.operation for row in table.history().collect()][:3] == ["MERGE", "UPDATE", "DELETE"]
        found = delta_cluster.table(name).where("id >= 5000").groupBy("v").count().collect()
        assert sorted(tuple(row) for row in found) == [("b", 50), ("c", 100)]
        assert delta_cluster.table(name).where("id < 5000").count() == 2700
    finally:
        disconnect_catalog(warehouse.name)


def test_an_error_of_a_task_comes_back_as_itself(delta_cluster: SparkSession, tmp_path: Path, engine: str) -> None:
    table = make(delta_cluster, tmp_path, **VECTORS)
    table.alter().addConstraint("small", "n < 10")
    with pytest.raises(ConstraintViolationError, match="small"):
        table.update("id = 2999", {"n": "n + 1"})
    assert rows(tmp_path) == expected()


def test_a_task_commits_through_the_catalog_of_a_table(delta_cluster: SparkSession, tmp_path: Path) -> None:
    def append(table: ResolvedTable) -> int:
        snapshot = Snapshot.load(
            table.location, storage_options=table.storage_options, catalog_table=table.catalog_table
        )
        with Transaction.on(snapshot) as transaction:
            transaction.write([pa.RecordBatch.from_pydict({"id": pa.array([7], pa.int64())})])
        return transaction.version

    warehouse = Warehouse(tmp_path)
    warehouse.create()
    table = DeltaTable.forName(delta_cluster, warehouse.full("t"))
    delta_cluster.range(5).write.mode("append").saveAsTable(warehouse.full("t"))
    table.delete("id = 3")
    values = delta_cluster.sparkContext.parallelize([resolve(required_name(warehouse.full("t")))], 1)
    assert values.map(append).collect() == [3]
    assert warehouse.ids() == [0, 1, 2, 4, 7]
    assert sorted(row[0] for row in table.toDF().collect()) == [0, 1, 2, 4, 7]


def test_rows_are_laid_out_by_an_exchange_between_executors(delta_cluster: SparkSession, tmp_path: Path) -> None:
    """The driver gets the names of files; each partition is a bin with files of its own."""
    table = make(delta_cluster, tmp_path, **VECTORS, **FEED)
    table.delete("n = 3")
    set_cost(delta_cluster, **TASKS, driver_local_bytes=0)
    plan = table.optimize().withTargetSize(700).plan(zOrderBy=["id", "n"])
    table.delete("n = 4")
    result = plan.execute()
    set_cost(delta_cluster)
    assert engine_of(str(tmp_path)) == "Arrow in tasks"
    assert (result.bins, result.bins_given_up, result.removed.count) == (3, 0, 3)
    assert result.added.count > 3
    assert rows(tmp_path) == [row for row in expected() if row["n"] not in (3, 4)]
    assert not list(tmp_path.rglob("row_origins_*"))


# --------------------------------------------------------------------------------------------------------------- SQL
def test_statements_of_sql(delta_cluster: SparkSession, engine: str, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    delta_cluster.sql(f"CREATE TABLE {name} USING delta PARTITIONED BY (p) AS {ROWS}")
    assert delta_cluster.sql(f"DELETE FROM {name} WHERE n = 3").collect() == [(300,)]
    assert engine_of(str(tmp_path / "t")) == engine
    merge = f"MERGE INTO {name} t USING (SELECT id + 2990 AS id FROM range(20)) s ON t.id = s.id "
    merge += "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 9)"
    assert delta_cluster.sql(merge).collect() == [(20, 0, 9, 11)]
    found = delta_cluster.sql(f"SELECT count(*), max(id), max(p) FROM {name} WHERE v IS NULL OR n <> 3").head()
    assert found == (2702, 3009, 9)
