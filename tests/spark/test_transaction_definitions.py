"""`DeltaTable.transaction().alter()`: the definition of a table changes in the commit of the rows that follow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import (
    ConcurrentAppendError,
    ConstraintViolationError,
    InvalidOperationError,
    MetadataChangedError,
)
from pyspark_delta.spark.engine.write.save import save

MAPPED = {"delta.columnMapping.mode": "name"}
FEED = {"delta.enableChangeDataFeed": True}


def make(session: SparkSession, path: Path, **options: object) -> str:
    """A table of the ids 0 to 5 and their squares, in two partitions."""
    frame = session.sql("select id, id * id q, int(id div 3) p from range(0, 6, 1, 1)")
    save(frame, str(path), partition_by=["p"], options=options)
    return str(path)


@pytest.fixture
def path(delta_spark: SparkSession, tmp_path: Path) -> str:
    return make(delta_spark, tmp_path / "t")


@contextmanager
def failing(error: type[Exception], match: str | None = None) -> Iterator[None]:
    """What is in the block, its end included, must raise."""
    with pytest.raises(error, match=match):
        yield


def rows(path: str, *columns: str) -> list[Any]:
    found = Table.open(path).scan(columns=columns).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def check_definition_and_rows(session: SparkSession, path: str) -> None:
    with DeltaTable.forPath(session, path).alias("t").transaction() as txn:
        change = txn.alter().setProperties({**MAPPED, "mine": "1"}).addColumn("note", "string", comment="new")
        change.renameColumn("q", "square").addColumn("q", "int").addConstraint("few", "square < 100")
        change.setColumnComment("id", "number").setDefault("note", "'none'").dropColumns("q").addColumn("q", "int")
        assert txn.delete("q IS NOT NULL").head()[0] == 0  # another column than the one that had the name
        txn.update("square = 16", {"note": "'four squared'"})
        source = session.sql("select 9L id, 81L square, 'new' note").unionAll(session.sql("select 0L, 50L, 'old'"))
        merge = txn.merge(source.alias("s"), "s.id = t.square and p = 0 and s.note = 'old'")
        merge.whenMatchedUpdate(set={"square": "s.square", "q": "1"}).execute()
        txn.append(session.sql("select 9L id, 81L square, 2 p"))
        assert Table.open(path).schema.names == ("id", "q", "p")
    opened = Table.open(path)
    assert (txn.version, opened.version, opened.schema.names) == (1, 1, ("id", "square", "p", "note", "q"))
    expected = [(1, 1, None, None), (2, 4, None, None), (3, 9, None, None), (4, 16, "four squared", None)]
    expected += [(5, 25, None, None), (0, 50, None, 1), (9, 81, "none", None)]
    assert rows(path, "id", "square", "note", "q") == sorted(expected, key=repr)
    assert opened.metadata.configuration["delta.constraints.few"] == "square < 100"
    [commit] = opened.history(1)
    names = json.loads(commit["operationParameters"]["operations"])
    assert (commit["operation"], names[:3]) == ("TRANSACTION", ["SET TBLPROPERTIES", "ADD COLUMNS", "RENAME COLUMN"])
    assert opened.snapshot.checksum_differences() == ()


def test_rows_see_the_definition_of_the_transaction(delta_spark: SparkSession, path: str) -> None:
    check_definition_and_rows(delta_spark, path)


def test_rows_see_the_definition_of_the_transaction_through_connect(
    plain_connect: SparkSession, tmp_path: Path
) -> None:
    check_definition_and_rows(plain_connect, make(plain_connect, tmp_path / "t"))


def test_deletion_vectors_and_overwrites_by_new_names(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = make(delta_spark, tmp_path / "t", **MAPPED, **{"delta.enableDeletionVectors": True})
    table = DeltaTable.forPath(delta_spark, path)
    before = table.toDF()
    with table.transaction() as txn:
        txn.alter().renameColumn("p", "part").renameColumn("id", "number")
        txn.append(before.where("id = 2 AND p = 0").selectExpr("id + 90 AS number", "2 AS part"))
        txn.overwrite(delta_spark.sql("select 7L number, 1 part"), replaceWhere="part = 1")
        txn.delete("part = 0 and number = 1")
    assert rows(path, "number", "q", "part") == [(0, 0, 0), (2, 4, 0), (7, None, 1), (92, None, 2)]
    old = table.toDF()
    with table.transaction() as txn:
        txn.alter().renameColumn("number", "id").addColumn("number", "long")
        txn.delete("part = 1")
        txn.append(old.where("number = 7").selectExpr("number * 10 AS id", "part"))  # rows by their earlier names
    assert rows(path, "id", "part") == [(0, 0), (2, 0), (70, 1), (92, 2)]
    assert rows(path, "number") == [(None,)] * 4


def test_types_nulls_and_clustering(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    save(delta_spark.sql("select 1 id, 2 n"), path, options={"delta.enableTypeWidening": True})
    with DeltaTable.forPath(delta_spark, path).transaction() as txn:
        txn.alter().changeType("id", "bigint").setNotNull("n").clusterBy("n").moveColumn("n", first=True)
        txn.update("n = 2", {"id": "id + 10000000000L"})
    opened = Table.open(path)
    assert (opened.version, opened.schema.names, rows(path, "n", "id")) == (1, ("n", "id"), [(2, 10000000001)])
    assert opened.snapshot.clustering_columns() == ["n"]
    with failing(ConstraintViolationError), table_change(delta_spark, path) as txn:
        txn.append(delta_spark.sql("select cast(null as int) n, 1L id"))
    with failing(InvalidOperationError, match="clustered by"), table_change(delta_spark, path) as txn:
        txn.alter().setProperties(MAPPED).clusterBy("id").dropColumns("id")
    assert (Table.open(path).version, opened.snapshot.clustering_columns()) == (1, ["n"])


def table_change(session: SparkSession, path: str) -> Any:
    return DeltaTable.forPath(session, path).transaction()


def test_constraints_hold_for_existing_and_for_new_rows(delta_spark: SparkSession, path: str) -> None:
    more = delta_spark.sql("select 12L id, 144L q, 0 p")
    with failing(ConstraintViolationError), table_change(delta_spark, path) as txn:
        txn.alter().addConstraint("few", "q < 25")
    with failing(ConstraintViolationError), table_change(delta_spark, path) as txn:
        txn.alter().addConstraint("few", "q < 100")
        txn.append(more)
    with (
        pytest.raises(InvalidOperationError, match="Row tracking cannot be enabled"),
        table_change(delta_spark, path) as txn,
    ):
        txn.alter().setProperties({"delta.enableRowTracking": True})
    assert (Table.open(path).version, len(list(Path(path).rglob("*.parquet")))) == (0, 2)


def check_definitions_after_rows(session: SparkSession, path: str) -> None:
    """One commit that leaves what the operations leave one after another."""
    table = DeltaTable.forPath(session, path)
    with table.transaction() as txn:
        txn.append(session.sql("select 7L id, 49L q, 2 p"))
        txn.delete("p = 1")
        change = txn.alter().setProperties(MAPPED).addColumn("note", "string").renameColumn("q", "square")
        assert sorted(map(tuple, txn.toDF().select("id", "square", "note").collect())) == [
            (0, 0, None),
            (1, 1, None),
            (2, 4, None),
            (7, 49, None),
        ]
        change.addConstraint("few", "id < 3 or id = 7").setNotNull("square").setDefault("note", "'none'")
        txn.append(session.sql("select 1L id, 64L square, 3 p"))
        change.addColumn("q", "int")
        txn.append(txn.toDF().selectExpr("int(sum(id)) q", "1L id", "0L square", "4 p"))
        assert rows(path, "id") == [(n,) for n in range(6)], "others see nothing yet"
    expected = [(0, 0, None, None), (1, 1, None, None), (2, 4, None, None), (7, 49, None, None), (1, 64, "none", None)]
    assert rows(path, "id", "square", "note", "q") == sorted([*expected, (1, 0, "none", 11)], key=repr)
    opened = Table.open(path)
    assert (opened.version, opened.snapshot.checksum_differences()) == (1, ())


def test_definitions_after_rows(delta_spark: SparkSession, path: str) -> None:
    check_definitions_after_rows(delta_spark, path)


def test_definitions_after_rows_through_connect(plain_connect: SparkSession, tmp_path: Path) -> None:
    check_definitions_after_rows(plain_connect, make(plain_connect, tmp_path / "t"))


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda txn: txn.alter().addConstraint("few", "id < 7"), ConstraintViolationError, "id=7"),
        (lambda txn: txn.alter().addConstraint("few", "q < 25"), ConstraintViolationError, "q=25"),
        (lambda txn: txn.setProperties(FEED), InvalidOperationError, "SET TBLPROPERTIES enables"),
        (lambda txn: txn.setProperties({"delta.appendOnly": True}), InvalidOperationError, "SET TBLPROPERTIES makes"),
        (
            lambda txn: txn.setProperties({"delta.enableRowTracking": True}),
            InvalidOperationError,
            "Row tracking cannot",
        ),
    ],
)
def test_a_definition_that_does_not_fit_rows_before_it_is_left_out(
    delta_spark: SparkSession, path: str, change: Callable[[Any], object], error: type[Exception], match: str
) -> None:
    with DeltaTable.forPath(delta_spark, path).transaction() as txn:
        txn.append(delta_spark.sql("select 7L id, 49L q, 2 p"))
        txn.delete("id = 0")
        with pytest.raises(error, match=match):
            change(txn)
        txn.setProperties({"mine": "1"})
    assert (txn.version, rows(path, "id")) == (1, [(n,) for n in (1, 2, 3, 4, 5, 7)])
    assert Table.open(path).metadata.configuration == {"mine": "1"}


def test_conditions_that_were_read_keep_their_columns(delta_spark: SparkSession, path: str) -> None:
    """Another column has the name of the condition in between: the old one has it again at the end."""
    DeltaTable.forPath(delta_spark, path).alter().setProperties(MAPPED)
    with failing(ConcurrentAppendError), table_change(delta_spark, path) as txn:
        txn.alter().renameColumn("q", "square").addColumn("q", "long")
        txn.delete("q IS NULL AND id = 77")
        txn.alter().dropColumns("q").renameColumn("square", "q")
        save(delta_spark.sql("select 77L id, 49L q, 2 p"), path, "append")


def test_rows_from_the_table_of_the_transaction_conflict(delta_spark: SparkSession, path: str) -> None:
    with failing(ConcurrentAppendError), table_change(delta_spark, path) as txn:
        txn.delete("p = 1")
        txn.append(txn.toDF().selectExpr("max(id) id", "count(*) q", "5 p"))
        save(delta_spark.sql("select 9L id, 49L q, 2 p"), path, "append")


def test_a_concurrent_change_of_the_definition_conflicts(delta_spark: SparkSession, path: str) -> None:
    with failing(MetadataChangedError, match="both change the metadata"), table_change(delta_spark, path) as txn:
        txn.alter().addColumn("a", "int")
        DeltaTable.forPath(delta_spark, path).alter().setColumnComment("id", "number")
    assert Table.open(path).schema.names == ("id", "q", "p")


def test_concurrent_rows_conflict_with_what_the_definition_depends_on(delta_spark: SparkSession, path: str) -> None:
    more = delta_spark.sql("select 7L id, 49L q, 1 p")
    with table_change(delta_spark, path) as txn:  # null in rows of others too
        txn.alter().addColumn("a", "int")
        save(more, path, "append")
        txn.append(more.selectExpr("*", "1 a"))
    assert (txn.version, len(rows(path, "a"))) == (2, 8)
    with failing(ConcurrentAppendError, match="whole table"), table_change(delta_spark, path) as txn:
        txn.alter().addConstraint("few", "q < 100")
        save(more, path, "append")
    with table_change(delta_spark, path) as txn:  # conditions on columns that stay
        txn.alter().addColumn("b", "int")
        txn.update("p = 0", {"b": "1"})
        save(more, path, "append")
    assert rows(path, "b").count((1,)) == 3
    DeltaTable.forPath(delta_spark, path).alter().setProperties(MAPPED)
    for condition in ("part = 0", "p IS NULL"):  # the new column is null in all rows, though its name had a value
        with failing(ConcurrentAppendError), table_change(delta_spark, path) as txn:
            txn.alter().renameColumn("p", "part").addColumn("p", "int")
            txn.delete(condition)
            save(more, path, "append")


def test_files_that_get_statistics_are_kept_if_the_transaction_fails(delta_spark: SparkSession, tmp_path: Path) -> None:
    """CLUSTER BY commits files again with more statistics. They are no files of the transaction."""
    first = {"delta.dataSkippingNumIndexedCols": "0"}
    clustered = str(tmp_path / "t")
    save(delta_spark.range(6), clustered, options=first)
    table = DeltaTable.forPath(delta_spark, clustered)
    with failing(InvalidOperationError, "two transactions"), table.transaction() as txn:
        txn.alter().unsetProperties(*first).clusterBy("id")
        txn.append(delta_spark.range(6, 9))
    with failing(MetadataChangedError), table.transaction() as txn:
        txn.alter().unsetProperties(*first).clusterBy("id")
        table.alter().setProperties({"mine": "1"})
    with failing(ZeroDivisionError), table.transaction() as txn:
        txn.alter().unsetProperties(*first).clusterBy("id")
        raise ZeroDivisionError
    assert rows(clustered, "id") == [(number,) for number in range(6)]
    with table.transaction() as txn:
        txn.alter().unsetProperties(*first).clusterBy("id")
    assert Table.open(clustered).detail()["clusteringColumns"] == ["id"]
    assert rows(clustered, "id") == [(number,) for number in range(6)]
