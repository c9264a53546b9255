"""`DeltaTable.transaction()`: several operations that become one version together, or none; and the log's upkeep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentTransactionError,
    InvalidOperationError,
    InvalidOptionError,
    MetadataChangedError,
    SchemaMismatchError,
    VersionNotFoundError,
)
from pyspark_delta.spark.api.builder import IdentityGenerator
from pyspark_delta.spark.engine.write.save import save

OLD = {"delta.logRetentionDuration": "interval 9 days"}


def rows(path: str, *columns: str) -> list[Any]:
    found = Table.open(path).scan(columns=columns or ("id",)).to_arrow().to_pylist()
    return sorted(tuple(row.values()) if columns else row["id"] for row in found)


@contextmanager
def failing(error: type[Exception], match: str | None = None) -> Iterator[None]:
    """What is in the block, its end included, must raise."""
    with pytest.raises(error, match=match):
        yield


def data_files(path: str) -> set[str]:
    return {str(file) for file in Path(path).rglob("*.parquet") if "_delta_log" not in file.parts}


def make(session: SparkSession, path: Path, **options: object) -> str:
    """A table of the ids 0 to 5, in two partitions."""
    frame = session.sql("select id, int(id div 3) p from range(0, 6, 1, 1)")
    save(frame, str(path), partition_by=["p"], options=options)
    return str(path)


def check_one_commit(session: SparkSession, path: str) -> None:
    """Everything that a transaction may do, in one."""
    with DeltaTable.forPath(session, path).transaction() as txn:
        txn.setProperties({"delta.checkpointInterval": 7}).unsetProperties(*OLD)
        txn.overwrite(session.sql("select 1L id, 0 p"), replaceWhere="id between 1 and 3", userMetadata="not this")
        txn.append(session.sql("select 8L id, 1 p, 'n' n"), mergeSchema=True)
        txn.append(session.sql("select 9L id, 2 p, 'm' n")).setTransaction("nightly", 3).userMetadata("both")
        assert rows(path) == [0, 1, 2, 3, 4, 5]
        assert Table.open(path).version == 0
        assert txn.version is None
    assert txn.version == Table.open(path).version == 1
    expected = [(0, 0, ""), (1, 0, ""), (4, 1, ""), (5, 1, ""), (8, 1, "n"), (9, 2, "m")]
    assert [(i, p, n or "") for i, p, n in rows(path, "id", "p", "n")] == expected
    table = Table.open(path)
    assert table.metadata.configuration == {"delta.checkpointInterval": "7"}
    assert table.snapshot.transactions()["nightly"].version == 3
    [commit] = table.history(1)
    assert commit["userMetadata"] == "both"
    assert (commit["operation"], commit["isBlindAppend"]) == ("TRANSACTION", False)
    names = json.loads(commit["operationParameters"]["operations"])
    assert names == ["SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "WRITE", "WRITE", "WRITE"]
    assert commit["operationMetrics"]["numOutputRows"] == "6"  # 3 new ones, and 3 that stay in files of their own
    assert table.snapshot.checksum_differences() == ()


def test_several_operations_in_one_commit(delta_spark: SparkSession, tmp_path: Path) -> None:
    check_one_commit(delta_spark, make(delta_spark, tmp_path / "t", **OLD))


def test_one_commit_through_connect(plain_connect: SparkSession, tmp_path: Path) -> None:
    path = make(plain_connect, tmp_path / "t", **OLD)
    check_one_commit(plain_connect, path)
    before = data_files(path)
    with failing(ZeroDivisionError), DeltaTable.forPath(plain_connect, path).transaction() as txn:
        txn.append(plain_connect.sql("select 7L id, 0 p"))
        raise ZeroDivisionError
    assert (Table.open(path).version, data_files(path)) == (1, before)


@pytest.fixture
def path(delta_spark: SparkSession, tmp_path: Path) -> str:
    return make(delta_spark, tmp_path / "t")


def test_an_exception_discards_everything(delta_spark: SparkSession, path: str) -> None:
    table, before = DeltaTable.forPath(delta_spark, path), data_files(path)
    with failing(SchemaMismatchError), table.transaction() as txn:
        txn.setProperties({"delta.appendOnly": True}).append(delta_spark.sql("select 7L id, 0 p"))
        assert data_files(path) > before
        txn.append(delta_spark.sql("select 7L id, 0 p, 1 unknown"))
    assert data_files(path) == before
    assert (Table.open(path).version, Table.open(path).metadata.configuration) == (0, {})
    with pytest.raises(InvalidOperationError, match="discarded"):
        txn.append(delta_spark.sql("select 7L id, 0 p"))
    with table.transaction() as txn:
        pass
    assert (txn.version, Table.open(path).version) == (None, 0)


def test_what_one_transaction_cannot_do(delta_spark: SparkSession, path: str) -> None:
    table, more = DeltaTable.forPath(delta_spark, path), delta_spark.sql("select 7L id, 0 p")
    before = data_files(path)
    with failing(InvalidOperationError, match="dataChange"), table.transaction() as txn:
        txn.append(more).append(more, dataChange=False)
    with failing(InvalidOperationError, match="Row tracking cannot be enabled"), table.transaction() as txn:
        txn.setProperties({"delta.enableRowTracking": True})  # which the files that stay would have to be numbered for
    for version in (-1, "x", True):
        with failing(InvalidOptionError, match="whole number"), table.transaction() as txn:
            txn.setTransaction("a", version)  # type: ignore[arg-type]
    assert (Table.open(path).version, data_files(path)) == (0, before)


def feed(path: str, version: int) -> list[tuple[str, int]]:
    found = Table.open(path).changes(version, ending_version=version).to_arrow()
    return sorted((row["_change_type"], row["id"]) for row in found.to_pylist())


def test_c169_all_parts_of_a_transaction_are_in_the_change_data_feed(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = make(delta_spark, tmp_path / "t", **{"delta.enableChangeDataFeed": True})
    table, more = DeltaTable.forPath(delta_spark, path), delta_spark.sql("select 1L id, 0 p")
    with table.transaction() as txn:
        txn.overwrite(more, replaceWhere="id = 1").append(delta_spark.sql("select 8L id, 4 p"))
    assert feed(path, 1) == [("delete", 1), ("insert", 1), ("insert", 8)]
    with table.transaction() as txn:  # whole files leave, so readers see it without change data files
        txn.overwrite(more, replaceWhere="p = 0").append(delta_spark.sql("select 6L id, 2 p"))
    changes = list(Path(path, "_change_data").rglob("*.parquet"))
    assert rows(path) == [1, 3, 4, 5, 6, 8]
    assert feed(path, 2) == [("delete", i) for i in (0, 1, 2)] + [("insert", 1), ("insert", 6)]
    with table.transaction() as txn:
        txn.delete("id in (3, 6)")
        txn.append(delta_spark.sql("select 7L id, 1 p, 'n' n"), mergeSchema=True).append(more.limit(0))
        assert list(Path(path, "_change_data").rglob("*.parquet")) != changes
    assert rows(path) == [1, 4, 5, 7, 8]
    assert feed(path, 3) == [("delete", 3), ("delete", 6), ("insert", 7)]
    with table.transaction() as txn:
        txn.append(delta_spark.sql("select 10L id, 5 p, '' n"))  # whose change is in a file once the next one needs it
        txn.delete("id = 4")
        again = delta_spark.sql("select 8L id, 4 p, '' n")  # which leaves, too
        txn.overwrite(again, partitionOverwriteMode="dynamic")
    assert rows(path) == [1, 5, 7, 8, 10]
    assert feed(path, 4) == [("delete", 4), ("delete", 8), ("insert", 8), ("insert", 10)]
    with failing(ZeroDivisionError), table.transaction() as txn:
        before = data_files(path)
        txn.update({"p": "p + 1"})
        txn.append(more)
        raise ZeroDivisionError
    assert data_files(path) == before


def check_statements(session: SparkSession, path: str, *, vectors: bool) -> None:
    """A statement, appends and properties in one commit."""
    table = DeltaTable.forPath(session, path).alias("t")
    with table.transaction() as txn:
        txn.setProperties({"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": True})
        assert txn.delete("id = 1 or p = 1").collect() == [(4,)]
        txn.append(session.sql("select 10L id, 5 p"))
        assert rows(path) == [0, 1, 2, 3, 4, 5]
    assert rows(path) == [0, 2, 10]
    opened = Table.open(path)
    assert opened.metadata.configuration["delta.enableDeletionVectors"] == str(vectors).lower()
    assert feed(path, 1) == [("delete", i) for i in (1, 3, 4, 5)] + [("insert", 10)]
    [commit] = opened.history(1)
    assert (commit["operation"], commit["isBlindAppend"]) == ("TRANSACTION", False)
    assert json.loads(commit["operationParameters"]["operations"]) == ["SET TBLPROPERTIES", "DELETE", "WRITE"]
    metrics = commit["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numOutputRows"]) == ("4", "1")
    assert metrics["numDeletionVectorsAdded"] == str(int(vectors))
    assert opened.snapshot.checksum_differences() == ()
    with table.transaction() as txn:
        assert txn.update("id = 2", {"id": "id + 100"}).collect() == [(1,)]
    assert rows(path) == [0, 10, 102]
    assert Table.open(path).history(1)[0]["operation"] == "UPDATE"
    source = session.sql("select id, int(id) p from range(8, 12)").alias("s")
    with table.transaction() as txn:
        merge = txn.merge(source, "t.id = s.id").whenMatchedUpdate(set={"p": "-1"}).whenNotMatchedInsertAll()
        with pytest.raises(InvalidOperationError, match="plan"):
            merge.plan()
        assert merge.execute().collect() == [(4, 1, 0, 3)]
        txn.append(session.sql("select 8L id, -2 p"))
    assert rows(path, "id", "p") == [(0, 0), (8, -2), (8, 8), (9, 9), (10, -1), (11, 11), (102, 0)]
    assert json.loads(Table.open(path).history(1)[0]["operationParameters"]["operations"]) == ["MERGE", "WRITE"]
    assert feed(path, 3).count(("update_preimage", 10)) == feed(path, 3).count(("update_postimage", 10)) == 1
    assert feed(path, 3).count(("insert", 8)) == 2


@pytest.mark.parametrize("vectors", [False, True])
def test_a_statement_and_what_follows_it(delta_spark: SparkSession, tmp_path: Path, vectors: bool) -> None:
    check_statements(delta_spark, make(delta_spark, tmp_path / "t"), vectors=vectors)


def test_a_statement_and_what_follows_it_through_connect(plain_connect: SparkSession, tmp_path: Path) -> None:
    check_statements(plain_connect, make(plain_connect, tmp_path / "t"), vectors=True)


def test_statements_that_end_badly_leave_nothing(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = make(delta_spark, tmp_path / "t", **{"delta.enableDeletionVectors": True})
    table, more = DeltaTable.forPath(delta_spark, path).alias("t"), delta_spark.sql("select 7L id, 0 p")
    files = {str(file) for file in Path(path).rglob("*") if file.is_file()}
    with failing(ZeroDivisionError), table.transaction() as txn:
        txn.delete("id = 1")
        txn.append(more)
        raise ZeroDivisionError
    with failing(InvalidOperationError, match="several|more than one|match"), table.transaction() as txn:
        twice = delta_spark.sql("select 1L id, 0 p union all select 1L, 0")
        txn.merge(twice.alias("s"), "t.p = s.p and s.id = 1").whenMatchedUpdate(set={"p": "s.p"}).execute()
    assert (Table.open(path).version, rows(path)) == (0, [0, 1, 2, 3, 4, 5])
    assert {str(file) for file in Path(path).rglob("*") if file.is_file()} == files


def test_statements_about_different_rows_are_one_commit(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = make(delta_spark, tmp_path / "t", **{"delta.enableDeletionVectors": True})
    source = delta_spark.sql("select 50L id, 2 p").alias("s")
    with DeltaTable.forPath(delta_spark, path).alias("t").transaction() as txn:
        txn.append(delta_spark.sql("select 30L id, 3 p"))
        txn.delete("p = 0 and id < 2")
        txn.update("p = 1 and id = 3", {"id": "33"})
        txn.merge(source, "t.id = s.id and t.p = 2").whenNotMatchedInsertAll().execute()
        txn.overwrite(delta_spark.sql("select 40L id, 4 p"), replaceWhere="p = 4")
    assert rows(path, "id", "p") == [(2, 0), (4, 1), (5, 1), (30, 3), (33, 1), (40, 4), (50, 2)]
    [commit] = Table.open(path).history(1)
    assert json.loads(commit["operationParameters"]["operations"]) == ["WRITE", "DELETE", "UPDATE", "MERGE", "WRITE"]
    assert Table.open(path).snapshot.checksum_differences() == ()


def test_statements_in_transactions_conflict_with_what_they_read(delta_spark: SparkSession, path: str) -> None:
    table, more = DeltaTable.forPath(delta_spark, path), delta_spark.sql("select 2L id, 0 p")
    before = data_files(path)
    with failing(ConcurrentAppendError), table.transaction() as txn:
        txn.delete("id = 2")
        txn.append(delta_spark.sql("select 9L id, 1 p"))
        save(more, path, "append")
    assert len(data_files(path) - before) == 1  # the winner's
    with failing(ConcurrentAppendError), table.transaction() as txn:
        assert txn.delete("id = 3 and p = 7").collect() == [(0,)]  # finds nothing, and another writer adds it
        txn.append(more)
        save(delta_spark.sql("select 3L id, 7 p"), path, "append")
    with failing(ConcurrentDeleteDeleteError), table.transaction() as txn:
        txn.update("p = 7", {"p": "8"})
        table.delete("p = 7")
    with table.transaction() as txn:
        txn.delete("id = 4")
        txn.append(more)
        save(delta_spark.sql("select 20L id, 9 p"), path, "append")
    assert rows(path) == [0, 1, 2, 2, 2, 3, 5, 20]
    with table.transaction() as txn:
        txn.setTransaction("a", 1)
        txn.append(more)
    with table.transaction() as txn:
        txn.setTransaction("a", 1).setTransaction("b", 1)  # what the table holds already, it is not to get twice
        assert txn.delete().collect() == [(0,)]
        assert txn.merge(more.alias("s"), "id = s.id").whenMatchedDelete().execute().collect() == [(0, 0, 0, 0)]
    assert (txn.version, len(rows(path))) == (None, 9)
    with pytest.raises(InvalidOperationError, match="discarded"):
        txn.delete()


def test_c180_a_named_transaction_has_its_effect_once(delta_spark: SparkSession, path: str) -> None:
    table, more = DeltaTable.forPath(delta_spark, path), delta_spark.sql("select 7L id, 0 p")
    for version, committed in ((5, 1), (5, None), (4, None), (6, 2)):
        with table.transaction() as txn:
            txn.append(more, userMetadata="some").userMetadata("").setTransaction("a", version)
        assert txn.version == committed
    assert Table.open(path).history(1)[0]["userMetadata"] == ""
    with table.transaction() as txn:
        txn.append(more, txnAppId="a", txnVersion=6)
    assert (txn.version, rows(path).count(7)) == (None, 2)
    with failing(ConcurrentTransactionError), table.transaction() as txn:
        txn.append(more).setTransaction("a", 7)
        save(more, path, "append", options={"txnAppId": "a", "txnVersion": 7})
    assert rows(path).count(7) == 3
    here, setting = delta_spark.newSession(), "spark.databricks.delta.write."
    for name, value in {"txnAppId": "s", "txnVersion": "1", "txnVersion.autoReset.enabled": "true"}.items():
        here.conf.set(setting + name, value)
    with DeltaTable.forPath(here, path).transaction() as txn:
        txn.delete("id = 7")
    assert Table.open(path).snapshot.transactions()["s"].version == 1
    assert here.conf.get(f"{setting}txnVersion", None) is None


def test_conflicts(delta_spark: SparkSession, path: str) -> None:
    table, more = DeltaTable.forPath(delta_spark, path), delta_spark.sql("select 2L id, 0 p")
    before = data_files(path)
    with failing(ConcurrentAppendError), table.transaction() as txn:
        txn.overwrite(more, replaceWhere="p = 0").append(delta_spark.sql("select 9L id, 1 p"))
        with table.transaction() as winner:
            winner.append(more)
    assert len(data_files(path) - before) == 1  # the winner's
    with table.transaction() as txn:
        txn.append(more).append(more)
        save(more, path, "append")
    assert (txn.version, rows(path).count(2)) == (3, 5)
    with failing(MetadataChangedError), table.transaction() as txn:
        txn.append(more)
        table.alter().addColumn("c", "int")


def test_identity_columns_go_on_counting(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    counted = DeltaTable.create(delta_spark).location(path).addColumn("n", "long")
    counted.addColumn("id", "long", generatedAlwaysAs=IdentityGenerator(5, 5)).execute()
    table = DeltaTable.forPath(delta_spark, path)
    with table.transaction() as txn:
        for _ in range(2):
            txn.append(delta_spark.sql("select id n from range(0, 3, 1, 1)"))
    assert rows(path) == [5, 10, 15, 20, 25, 30]


def test_the_log_is_kept_by_hand(delta_spark: SparkSession, path: str) -> None:
    table, log = DeltaTable.forPath(delta_spark, path), Path(path, "_delta_log")
    table.alter().setProperties({"a": 1}).setProperties({"b": 1})
    table.compactLog(0, 1)
    table.checkpoint()
    names = {file.name for file in log.iterdir()}
    assert names >= {f"{0:020}.{1:020}.compacted.json", f"{2:020}.checkpoint.parquet"}
    assert table.cleanLog() == 0  # nothing is old enough
    for wrong, error in (((1, 1), InvalidOptionError), ((1, 3), VersionNotFoundError)):
        with pytest.raises(error):
            table.compactLog(*wrong)


@pytest.mark.since("4.0")  # for the Python Data Source
def test_c351_properties_hold_for_what_follows_and_clustering_columns_have_statistics(
    delta_spark: SparkSession, plain_spark: SparkSession, tmp_path: Path
) -> None:
    path, frame = str(tmp_path / "t"), delta_spark.sql("select 1L id, 2L `b.c`")
    save(frame, path, cluster_by=["`b.c`"], options={"delta.columnMapping.mode": "name"})
    with DeltaTable.forPath(delta_spark, path).transaction() as txn:
        txn.setProperties({"delta.dataSkippingNumIndexedCols": 0}).append(frame)
    plain_spark.sql("select 1L id, 2L `b.c`").write.format("delta").mode("append").save(path)
    bounds = Table.open(path).stats().column("minValues").to_pylist()
    assert sorted(bounds, key=repr) == [{"id": 1, "b.c": 2}, {"id": None, "b.c": 2}, {"id": None, "b.c": 2}]
