"""Rows that are computed from the table that they are written to: the commit depends on what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import CommitConflictError, ConcurrentAppendError, ConcurrentDeleteReadError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.storage import intercepted
from pyspark_delta.storage.contract import ObjectStore
from pyspark_delta.transaction.transaction import Transaction

WRITE_SERIALIZABLE = {"delta.isolationLevel": "WriteSerializable"}
Change = Callable[[Transaction], object]


def make(session: SparkSession, path: Path, **options: object) -> str:
    """A table of the ids 0 to 5, in two partitions."""
    frame = session.sql("select id, int(id div 3) p from range(0, 6, 1, 1)")
    save(frame, str(path), partition_by=["p"], options=options)
    return str(path)


def add(p: int) -> Change:
    """A blind append of a row to a partition."""
    return lambda txn: txn.write([pa.record_batch({"id": [100], "p": pa.array([p], pa.int32())})])


def remove(p: int) -> Change:
    def change(txn: Transaction) -> None:
        txn.remove(txn.read(where=f"p = {p}").files)

    return change


def commit(path: str, change: Change) -> None:
    with Transaction.on(Snapshot.load(path)) as txn:
        change(txn)


class _Raced:
    """A store in which another writer makes the next commit first."""

    def __init__(self, inner: ObjectStore, before: list[Callable[[], None]]) -> None:
        self._inner, self._before = inner, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write_if_absent(self, path: str, data: bytes) -> None:
        if "_delta_log" in path and self._before:
            self._before.pop()()
        self._inner.write_if_absent(path, data)


@contextmanager
def raced(path: str, change: Change) -> Iterator[None]:
    """Another writer commits a change just before the block does."""
    before = [lambda: commit(path, change)]
    with intercepted(lambda inner: _Raced(inner, before)):
        yield
    assert before == []


def failing(error: type[Exception] | None, match: str | None = None) -> Any:
    return nullcontext() if error is None else pytest.raises(error, match=match)


def is_blind(path: str) -> object:
    return Table.open(path).history(1)[0]["isBlindAppend"]


CASES: list[tuple[str, Change, dict[str, str], type[Exception] | None]] = [
    ("p = 0", add(0), {}, ConcurrentAppendError),
    ("p = 0", add(1), {}, None),
    ("p = 0", add(0), WRITE_SERIALIZABLE, None),
    ("p = 0", remove(0), WRITE_SERIALIZABLE, ConcurrentDeleteReadError),
    ("p = 0", remove(1), {}, None),
    ("id < 3", remove(1), {}, None),  # as statistics say
    ("true", add(1), {}, ConcurrentAppendError),
    ("rand() >= 0", remove(1), WRITE_SERIALIZABLE, ConcurrentDeleteReadError),
]


@pytest.mark.parametrize(("condition", "change", "options", "error"), CASES)
def test_an_append_depends_on_what_its_frame_reads_of_the_table(
    delta_spark: SparkSession,
    tmp_path: Path,
    condition: str,
    change: Change,
    options: dict[str, str],
    error: type[Exception] | None,
) -> None:
    path = make(delta_spark, tmp_path, **options)
    frame = delta_spark.read.format("delta").load(path).where(condition).selectExpr("id + 10 id", "p")
    with failing(error, "while this WRITE ran"), raced(path, change):
        save(frame, path, "append")
    assert Table.open(path).version == (1 if error else 2)
    if error is None:
        assert is_blind(path) is False


def frames(session: SparkSession, path: str, other: str) -> Iterator[tuple[str, DataFrame]]:
    """Frames that read a table in various ways."""
    table, source = DeltaTable.forPath(session, path), session.read.format("delta").load(other)
    yield "alias", table.alias("t").toDF().where("t.p = 0")
    yield "option", session.read.format("delta").option("where", "p = 0").load(path)
    yield "join", source.join(table.toDF().where("p = 0").select("id"), "id")
    yield "union of itself", table.toDF().unionAll(table.toDF()).where("p = 0")
    yield "self join", table.toDF().where("p = 0").join(table.toDF().select("id"), "id")
    source.createOrReplaceTempView("of_other")
    for query in (
        "select * from of_table",
        "select * from of_other where id in (select id from of_table)",
        "with t as (select max(id) m from of_table) select id, p from of_other, t",
    ):
        table.toDF().where("p = 0").createOrReplaceTempView("of_table")
        yield query, session.sql(query)
    yield "cached", table.toDF().where("p = 0").cache()


def check_frames(session: SparkSession, tmp_path: Path) -> None:
    path, other = make(session, tmp_path / "t"), make(session, tmp_path / "other")
    for name, frame in frames(session, path, other):
        version = Table.open(path).version
        with suppress(CommitConflictError), raced(path, remove(0)):
            save(frame, path, "append")
        frame.unpersist()
        assert Table.open(path).version == version + 1, name
        commit(path, lambda txn: txn.write([pa.record_batch({"id": [1], "p": pa.array([0], pa.int32())})]))
    save(session.read.format("delta").load(other), path, "append")
    assert is_blind(path) is True
    save(session.read.format("delta").option("versionAsOf", 0).load(path), path, "append")
    save(DeltaTable.forPath(session, path).toDF(version=0), path, "append")
    assert is_blind(path) is True


def test_whatever_is_derived_from_a_table_reads_it(delta_spark: SparkSession, tmp_path: Path) -> None:
    check_frames(delta_spark, tmp_path)


def test_whatever_is_derived_from_a_table_reads_it_through_connect(delta_connect: SparkSession, tmp_path: Path) -> None:
    check_frames(delta_connect, tmp_path)


def test_a_frame_of_an_older_version_is_not_written(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Rows that came or went since then would be lost, or come back."""
    path = make(delta_spark, tmp_path, **WRITE_SERIALIZABLE)
    stale = delta_spark.read.format("delta").load(path)
    rest = {"replaceWhere": "p = 1"}
    commit(path, add(1))
    files = set(tmp_path.rglob("*.parquet"))
    for mode, options in (("overwrite", {}), ("overwrite", {"dataChange": "false"}), ("overwrite", rest)):
        with pytest.raises(ConcurrentAppendError, match=r"at version 0, .* versionAsOf=0") as caught:
            save(stale.where("p = 1") if options == rest else stale, path, mode, options=options)
        assert caught.value.facts["version"] == 1
    assert set(tmp_path.rglob("*.parquet")) == files
    save(stale, path, "append")  # a row that was only appended does not matter to it
    with pytest.raises(ConcurrentAppendError, match="at version 0"):  # this one was no blind append
        save(stale, path, "append")
    save(delta_spark.read.format("delta").option("versionAsOf", 0).load(path), path, "overwrite")
    assert Table.open(path).version == 3
    Table.open(path).checkpoint()
    for version in (0, 1):
        Path(path, "_delta_log", f"{version:020}.json").unlink()
    with pytest.raises(ConcurrentDeleteReadError, match="no longer has all versions"):
        save(stale, path, "append")


@pytest.mark.parametrize("by_spark", [False, True])
def test_a_merge_depends_on_what_its_source_reads_of_the_table(
    delta_spark: SparkSession, tmp_path: Path, by_spark: bool
) -> None:
    path = make(delta_spark, tmp_path)
    table = DeltaTable.forPath(delta_spark, path)
    source = table.toDF().where("p = 0").selectExpr("id + 50 id", "9 p")

    def merge() -> None:
        condition = "t.id = s.id and t.p = 9" + " and ascii('a') = 97" * by_spark
        table.alias("t").merge(source.alias("s"), condition).whenNotMatchedInsertAll().execute()

    with pytest.raises(ConcurrentAppendError, match="at version 0"), raced(path, add(0)):
        merge()
    assert Table.open(path).version == 1
    with pytest.raises(ConcurrentAppendError, match="at version 0"):
        merge()
    source = table.toDF().where("p = 0").selectExpr("id + 50 id", "9 p")
    with raced(path, add(1)):
        merge()
    assert sorted(Table.open(path).scan(where="p = 9").to_arrow()["id"].to_pylist()) == [50, 51, 52, 150]


def test_transactions_depend_on_what_their_frames_read(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = make(delta_spark, tmp_path)
    table = DeltaTable.forPath(delta_spark, path)
    with table.transaction() as txn:
        old = table.toDF().where("p = 0")
        txn.delete("p = 0")  # what the transaction itself does is not what a concurrent commit does
        txn.append(old.selectExpr("id + 10 id", "p"))
    assert sorted(Table.open(path).scan().to_arrow()["id"].to_pylist()) == [3, 4, 5, 10, 11, 12]
    with failing(ConcurrentDeleteReadError), table.transaction() as txn:
        txn.append(table.toDF().where("p = 1"))
        commit(path, remove(1))
    source = table.toDF().where("p = 0")
    with failing(ConcurrentAppendError), table.transaction() as txn:
        merge = txn.merge(source.selectExpr("id k").alias("s"), "id = k and id > 1000")
        merge.whenMatchedDelete().execute()
        txn.append(delta_spark.sql("select 1L id, 7 p"))
        commit(path, add(0))
    assert Table.open(path).version == 3
