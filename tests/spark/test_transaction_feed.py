"""The change data feed of a transaction that changes rows more than once shows the net change of each row."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.spark.test_transaction_rows import failing, make, steps

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.engine.write.save import save

FEED = {"delta.enableChangeDataFeed": True}


def rows(path: str, columns: tuple[str, ...], version: int | None = None) -> Counter[tuple[str, ...]]:
    """The rows of a version, as text: NaN is itself, and -0.0 is not 0.0."""
    found = Table.open(path, version=version).scan(columns=columns).to_arrow().to_pylist()
    return Counter(tuple(map(repr, row.values())) for row in found)


def changes(path: str, columns: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """The kinds and rows of the feed of the newest version."""
    table = Table.open(path)
    found = table.changes(table.version, columns=("_change_type", *columns)).to_arrow().to_pylist()
    return [(kind, tuple(map(repr, row))) for kind, *row in (row.values() for row in found)]


def net(feed: list[tuple[str, tuple[str, ...]]]) -> Counter[tuple[str, ...]]:
    """How many of each row there are more or fewer."""
    found: Counter[tuple[str, ...]] = Counter()
    for kind, row in feed:
        found[row] += 1 if kind in ("insert", "update_postimage") else -1
    return Counter({row: number for row, number in found.items() if number})


def check_net(path: str, columns: tuple[str, ...]) -> None:
    """The feed is the difference of the newest version and the one before, and updates have both images."""
    feed, newest = changes(path, columns), Table.open(path).version
    expected = rows(path, columns)
    expected.subtract(rows(path, columns, newest - 1))
    assert net(feed) == Counter({row: number for row, number in expected.items() if number})
    kinds = Counter(kind for kind, _ in feed)
    assert kinds["update_preimage"] == kinds["update_postimage"]


def check_kinds(session: SparkSession, path: str) -> None:
    """Two changes of a row, of every kind."""
    with DeltaTable.forPath(session, path).alias("t").transaction() as txn:
        txn.update("id in (3, 4)", {"n": "n + 100"})
        txn.append(session.sql("select 50L id, 1 p, 7 n union all select 51L, 1, 8 union all select 0L, 0, 9"))
        txn.update("id in (3, 5, 50)", {"n": "n + 1000", "p": "2"})  # again, once, and new
        txn.delete("id in (4, 51, 6) or id = 0 and n = 0")
        source = session.sql("select 3L id union all select 8L union all select 60L")
        merge = txn.merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"n": "-t.n"})
        merge.whenNotMatchedInsert(values={"id": "s.id", "p": "0", "n": "0"}).execute()
        txn.append(session.sql("select 6L id, 0 p, 6 n"))  # it was deleted: both are shown
    assert sorted(changes(path, ("id", "p", "n"))) == [
        ("delete", ("0", "0", "0")),
        ("delete", ("4", "1", "4")),
        ("delete", ("6", "0", "6")),
        ("insert", ("0", "0", "9")),
        ("insert", ("50", "2", "1007")),
        ("insert", ("6", "0", "6")),
        ("insert", ("60", "0", "0")),
        ("update_postimage", ("3", "2", "-1103")),
        ("update_postimage", ("5", "2", "1005")),
        ("update_postimage", ("8", "2", "-8")),
        ("update_preimage", ("3", "0", "3")),
        ("update_preimage", ("5", "2", "5")),
        ("update_preimage", ("8", "2", "8")),
    ]


@pytest.mark.parametrize("vectors", [False, True])
def test_c163_c169_the_feed_shows_the_net_change_of_each_row(
    delta_spark: SparkSession, tmp_path: Path, vectors: bool
) -> None:
    check_kinds(delta_spark, make(delta_spark, tmp_path / "t", **FEED, **{"delta.enableDeletionVectors": vectors}))


def test_c163_c169_the_feed_shows_the_net_change_of_each_row_through_connect(
    plain_connect: SparkSession, tmp_path: Path
) -> None:
    check_kinds(plain_connect, make(plain_connect, tmp_path / "t", **FEED))


@pytest.mark.parametrize("vectors", [False, True])
def test_c169_the_feed_of_all_operations_is_what_they_change(
    delta_spark: SparkSession, tmp_path: Path, vectors: bool
) -> None:
    path = make(delta_spark, tmp_path / "t", **FEED, **{"delta.enableDeletionVectors": vectors})
    with DeltaTable.forPath(delta_spark, path).alias("t").transaction() as txn:
        for step in steps(delta_spark):
            step(txn)
    check_net(path, ("id", "p", "n"))
    table = Table.open(path)
    assert [one for one in table.check(level="data").findings if one.severity != "info"] == []
    assert written(path) == named(path), "change data files that others replaced are deleted"


def written(path: str) -> set[str]:
    return {str(file.relative_to(path)) for file in (Path(path) / "_change_data").rglob("*.parquet")}


def named(path: str) -> set[str]:
    """The change data files of all commits."""
    log = "".join(file.read_text() for file in (Path(path) / "_delta_log").glob("*.json"))
    return {name for name in written(path) if name.rpartition("/")[2] in log}


VALUES = """
    select id, id % 4 p, element_at(array(double('NaN'), double('-0.0'), double('0.0'), null), int(id % 4) + 1) d,
        map('a', float('-0.0'), 'b', null) m, array(double(null), null) a, unhex(hex(id)) b,
        if(id % 2 = 0, null, named_struct('x.y', cast(id as decimal(20, 3)), 'l', map('q', id))) s,
        timestamp_micros(id * 1000001) `t.t`
"""


def test_c169_rows_are_the_same_only_if_all_their_values_are(compiled_spark: SparkSession, tmp_path: Path) -> None:
    path, columns = str(tmp_path / "t"), ("p", "d", "m", "a", "b", "s", "t.t")
    save(compiled_spark.sql(f"{VALUES} from range(8)").drop("id"), path, partition_by=["p"], options=FEED)
    with DeltaTable.forPath(compiled_spark, path).transaction() as txn:
        txn.append(compiled_spark.sql(f"{VALUES} from range(4, 12)").drop("id"))
        zeros = "explode(array(0.0D, -0.0D, double('NaN'))) d"
        txn.append(compiled_spark.sql(f"select 7L p, {zeros}, s from ({VALUES} from range(1, 2))"))
        txn.update("b is null", {"s": "named_struct('x.y', 1, 'l', null)"})
        txn.update("p < 3", {"m": "map('a', float('-0.0'))"})
        txn.delete("cast(d as string) = '-0.0'")
        txn.delete("b in (unhex('05'), unhex('0A'))")
    check_net(path, columns)
    assert sorted(row[1] for kind, row in changes(path, columns) if row[0] == "7" and kind == "insert") == [
        "0.0",
        "nan",
    ]


def test_c169_one_of_equal_rows_is_one_row(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    save(delta_spark.sql("select 1 n, 1 v from range(3)"), path, options=FEED)
    with DeltaTable.forPath(delta_spark, path).transaction() as txn:
        txn.append(delta_spark.sql("select 1 n, 1 v from range(2)"))
        txn.update("n = 1", {"v": "2"})
        txn.append(delta_spark.sql("select 1 n, 2 v"))
        txn.update("v = 2", {"v": "3"})
    assert Counter(changes(path, ("n", "v"))) == {
        ("update_preimage", ("1", "1")): 3,
        ("update_postimage", ("1", "3")): 3,
        ("insert", ("1", "3")): 3,
    }


def test_c169_nothing_is_shown_of_rows_that_do_not_stay(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = make(delta_spark, tmp_path / "t", **FEED)
    began = Table.open(path).version
    with DeltaTable.forPath(delta_spark, path).transaction() as txn:
        txn.append(delta_spark.sql("select 50L id, 1 p, 7 n union all select 51L, 1, 8"))
        txn.update("id = 50", {"n": "0"})
        txn.delete("id >= 50")
    assert Table.open(path).version == began
    assert written(path) == named(path)


def test_c169_the_feed_has_the_columns_that_the_transaction_adds_and_renames(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = make(delta_spark, tmp_path / "t", **FEED, **{"delta.columnMapping.mode": "name"})
    with DeltaTable.forPath(delta_spark, path).alias("t").transaction() as txn:
        txn.update("id in (3, 4)", {"n": "n + 100"})
        txn.alter().addColumn("c", "int").renameColumn("n", "m")
        txn.update("id = 3", {"c": "5"})
        new = delta_spark.sql("select 4L id, 1 p, 0 m, 6 c, 'x' d union all select 60L, 1, 1, 2, 'y'")
        merge = txn.merge(new.alias("s"), "t.id = s.id").withSchemaEvolution()
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        txn.append(new.limit(1), mergeSchema=True)
    assert sorted(changes(path, ("id", "m", "c", "d"))) == [
        ("insert", ("4", "0", "6", "'x'")),
        ("insert", ("60", "1", "2", "'y'")),
        ("update_postimage", ("3", "103", "5", "None")),
        ("update_postimage", ("4", "0", "6", "'x'")),
        ("update_preimage", ("3", "3", "None", "None")),
        ("update_preimage", ("4", "4", "None", "None")),
    ]


def test_c169_the_feed_has_the_new_columns_of_an_append_after_a_delete(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = make(delta_spark, tmp_path / "t", **FEED)
    with DeltaTable.forPath(delta_spark, path).transaction() as txn:
        txn.delete("id = 3")
        txn.append(delta_spark.sql("select 50L id, 1 p, 7 n, 'x' more"), mergeSchema=True)
    assert sorted(changes(path, ("id", "more"))) == [("delete", ("3", "None")), ("insert", ("50", "'x'"))]


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        ("50L id, 1 p, 'x' n", {}, "column 'n' was changed from integer to string"),
        ("50L id, 1 p, 1 n", {"partitionBy": "n"}, "partitioned by other columns"),
    ],
)
def test_c169_change_data_of_two_schemas_is_refused(
    delta_spark: SparkSession, tmp_path: Path, text: str, options: dict[str, Any], problem: str
) -> None:
    path = make(delta_spark, tmp_path / "t", **FEED)
    with DeltaTable.forPath(delta_spark, path).transaction() as txn:
        txn.delete("id = 3")
        before = {str(file) for file in Path(path).rglob("*.parquet")}
        with failing(InvalidOperationError, match=problem):
            frame = delta_spark.sql(f"select {text}")
            txn.overwrite(frame, overwriteSchema=True, **{"partitionBy": "p", **options})
        assert {str(file) for file in Path(path).rglob("*.parquet")} == before
    assert changes(path, ("id", "p", "n")) == [("delete", ("3", "0", "3"))]


def test_the_change_data_of_a_transaction_is_discarded_with_it(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = make(delta_spark, tmp_path / "t", **FEED)
    before = written(path)
    with failing(KeyError), DeltaTable.forPath(delta_spark, path).transaction() as txn:
        txn.update("id = 3", {"n": "0"})
        txn.update("id = 3", {"n": "1"})
        assert written(path) != before
        raise KeyError
    assert written(path) == before


def test_c163_only_a_transaction_stores_which_images_are_a_pair(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = make(delta_spark, tmp_path / "t", **FEED)
    before = written(path)
    DeltaTable.forPath(delta_spark, path).update("id = 3", {"n": "0"})
    (file,) = written(path) - before
    assert pq.read_schema(f"{path}/{file}").names == ["id", "n", "_change_type"]
