"""Statements of a transaction change the rows that its earlier statements wrote, as commits of their own would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta import DeltaTable, Table
from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import ConcurrentAppendError, ConcurrentDeleteReadError
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.spark.api.transaction import DeltaTransaction
from pyspark_delta.spark.engine.write.save import save

Step = Callable[[Any], object]
LIST = ("id", "p", "n")


class Alone:
    """The operations of a transaction, as a commit each."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self.path, table = path, DeltaTable.forPath(session, path).alias("t")
        self.delete, self.update, self.merge = table.delete, table.update, table.merge

    def append(self, frame: DataFrame) -> None:
        save(frame, self.path, "append")

    def overwrite(self, frame: DataFrame, **options: object) -> None:
        save(frame, self.path, "overwrite", options=options)


@contextmanager
def failing(error: type[Exception], match: str | None = None) -> Iterator[None]:
    """What is in the block, its end included, must raise."""
    with pytest.raises(error, match=match):
        yield


def make(session: SparkSession, path: Path, **properties: object) -> str:
    """A table of the ids 0 to 11, in three partitions; one row is deleted."""
    frame = session.sql("select id, int(id % 3) p, int(id) n from range(0, 13, 1, 1)")
    save(frame, str(path), partition_by=["p"], options=properties)
    DeltaTable.forPath(session, str(path)).delete("id = 12")
    return str(path)


def content(path: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in Table.open(path).scan(columns=LIST).to_arrow().to_pylist()), key=repr)


def shown(txn: DeltaTransaction) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in txn.toDF().select(*LIST).collect()), key=repr)


def steps(session: SparkSession) -> list[Step]:
    """Every operation, each on rows that those before wrote, changed or deleted."""

    def new(text: str) -> DataFrame:
        return session.sql(f"select id, int(id % 3) p, int({text}) n from range(20, 26, 1, 1)")

    def upsert(table: Any) -> object:
        merge = table.merge(new("-id").alias("s"), "t.id = s.id or t.id = s.id - 20")
        return merge.whenMatchedUpdate(set={"n": "s.n"}).whenNotMatchedInsertAll().execute()

    def prune(table: Any) -> object:
        merge = table.merge(new("0").where("id < 22").alias("s"), "t.id = s.id")
        return merge.whenMatchedDelete().whenNotMatchedBySourceUpdate("t.id > 23", {"n": "t.n * 2"}).execute()

    return [
        lambda table: table.delete("id in (1, 3)"),
        lambda table: table.append(new("id").where("id < 23")),
        lambda table: table.delete("id in (4, 20)"),  # a row of a file with a vector, and one that is new
        lambda table: table.update("id in (5, 21, 22)", {"n": "n + 100"}),
        lambda table: table.update("n > 100", {"p": "(p + 1) % 3"}),  # the same rows once more
        upsert,
        prune,
        lambda table: table.overwrite(new("7").where("p = 2"), replaceWhere="p = 2"),
        lambda table: table.delete("p = 2 and id > 23"),  # whole files
        lambda table: table.overwrite(new("8").where("p = 0"), partitionOverwriteMode="dynamic"),
        lambda table: table.update("id = 9 or n = 8", {"n": "n - 1"}),
        lambda table: table.delete("id = 1000"),  # nothing
    ]


def check_as_commits_of_their_own(session: SparkSession, tmp_path: Path, *, vectors: bool) -> None:
    properties = {"delta.enableDeletionVectors": vectors, "delta.enableRowTracking": True}
    path, other = (make(session, tmp_path / name, **properties) for name in "ab")
    began, alone = Table.open(path).version, Alone(session, other)
    with DeltaTable.forPath(session, path).alias("t").transaction() as txn:
        for number, step in enumerate(steps(session)):
            counts, expected = step(txn), step(alone)
            if isinstance(counts, DataFrame) and isinstance(expected, DataFrame):
                assert counts.collect() == expected.collect(), number
            assert shown(txn) == content(other), number
    assert content(path) == content(other)
    table = Table.open(path)
    assert table.version == txn.version == began + 1
    assert table.snapshot.checksum_differences() == ()
    assert [one for one in table.check(level="data").findings if one.severity != "info"] == []
    ids = numbered(path)
    assert len(set(ids["_row_id"].to_pylist())) == ids.num_rows
    assert old_ids(path, began) == old_ids(other, began)


def numbered(path: str, version: int | None = None) -> pa.Table:
    return read_plan(plan_scan(Table.open(path, version=version).snapshot, ["id"], row_ids=True)).read_all()


def old_ids(path: str, began: int) -> set[tuple[int, int]]:
    """The rows that are older than the transaction, with their row ids."""
    last = max(numbered(path, began)["_row_id"].to_pylist())
    return {(row["id"], row["_row_id"]) for row in numbered(path).to_pylist() if row["_row_id"] <= last}


@pytest.mark.parametrize("vectors", [False, True])
def test_the_rows_of_a_transaction_are_those_of_its_statements(
    delta_spark: SparkSession, tmp_path: Path, vectors: bool
) -> None:
    check_as_commits_of_their_own(delta_spark, tmp_path, vectors=vectors)


def test_the_rows_of_a_transaction_are_those_of_its_statements_through_connect(
    plain_connect: SparkSession, tmp_path: Path
) -> None:
    check_as_commits_of_their_own(plain_connect, tmp_path, vectors=True)


def test_c333_rows_that_are_written_twice_get_their_ids_from_the_commit(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = make(delta_spark, tmp_path / "t", **{"delta.enableRowTracking": True})
    more = delta_spark.sql("select id, int(3) p, int(0) n from range(30, 34, 1, 1)")
    with DeltaTable.forPath(delta_spark, path).transaction() as txn:
        txn.append(more)
        txn.update("p = 3 and id > 31", {"n": "1"})
        save(more.withColumn("p", more.p + 1), path, "append")  # which takes the ids after those of the version before
    rows = numbered(path)
    assert len(set(rows["_row_id"].to_pylist())) == rows.num_rows == 20
    assert rows["_row_commit_version"].to_pylist().count(txn.version) == 4


def test_conflicts_are_those_with_the_version_before(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = make(delta_spark, tmp_path / "t", **{"delta.enableDeletionVectors": True})
    table = DeltaTable.forPath(delta_spark, path)
    more = delta_spark.sql("select 50L id, 0 p, 0 n")
    with table.transaction() as txn:
        txn.append(more)
        txn.update("id = 50 and p = 0", {"n": "1"})
        table.delete("p = 1 and id = 1")  # of other rows
    assert (50, 0, 1) in content(path)
    with failing(ConcurrentDeleteReadError), table.transaction() as txn:
        txn.append(more)
        txn.update("n = 3 or id = 50", {"n": "2"})
        table.delete("id = 3")
    with failing(ConcurrentAppendError), table.transaction() as txn:
        txn.append(more)
        txn.delete("id = 50")  # leaves nothing of the transaction in this partition, but has read it
        txn.append(more)
        save(more, path, "append")


def check_feed(session: SparkSession, path: str) -> None:
    """Changes that commits of their own would have in change data files, between others that readers derive."""
    began = Table.open(path).version
    with DeltaTable.forPath(session, path).transaction() as txn:
        txn.append(session.sql("select 50L id, 3 p, 0 n"))
        txn.delete("id = 0")
        txn.delete("id = 3")  # of the same file
        txn.update("id = 6", {"n": "66"})  # of that file too
        txn.append(session.sql("select 51L id, 3 p, 0 n"))
        txn.delete("p = 1")  # whole files
    changes = Table.open(path).changes(began + 1).to_arrow().to_pylist()
    found = sorted((row["_change_type"], row["id"], row["n"]) for row in changes)
    assert found == [
        *(("delete", number, number) for number in (0, 1, 3, 4, 7, 10)),
        *(("insert", number, 0) for number in (50, 51)),
        ("update_postimage", 6, 66),
        ("update_preimage", 6, 6),
    ]


def test_c169_the_feed_has_the_changes_of_all_statements(delta_spark: SparkSession, tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": True, "delta.enableChangeDataFeed": True}
    check_feed(delta_spark, make(delta_spark, tmp_path / "t", **properties))


def test_c169_the_feed_has_the_changes_of_all_statements_through_connect(
    plain_connect: SparkSession, tmp_path: Path
) -> None:
    properties = {"delta.enableDeletionVectors": True, "delta.enableChangeDataFeed": True}
    check_feed(plain_connect, make(plain_connect, tmp_path / "t", **properties))
