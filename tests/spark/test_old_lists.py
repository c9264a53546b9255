"""Lists in lists as old writers store them, without a level for elements: Spark reads them, and Arrow does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType
from tests.costs import SetCost
from tests.lengths import FULL

from pyspark_delta import DeltaTable
from pyspark_delta.errors import UnsupportedDataFileError
from pyspark_delta.table import Table

LISTS = ArrayType(ArrayType(IntegerType()), containsNull=False)
ROWS = StructType([StructField("id", LongType()), StructField("x", LISTS)])
KINDS = {
    "rewriting": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "row ids and changes": {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"},
    "partitions": {},
}
OLD_FORM = "spark.sql.parquet.writeLegacyFormat"
Values = dict[int, list[list[int | None]]]


def _store_as_old_writers_do(spark: SparkSession, table: Path) -> None:
    """Write the file of version 1 anew: the same rows, without a level for elements."""
    commit = table / "_delta_log" / f"{1:020}.json"
    lines = commit.read_text().splitlines()
    (number,) = (n for n, line in enumerate(lines) if '"add"' in line)
    action = json.loads(lines[number])
    path = table / action["add"]["path"]
    rows = spark.createDataFrame(spark.read.schema(ROWS).parquet(str(path)).collect(), ROWS).coalesce(1)
    spark.conf.set(OLD_FORM, "true")
    try:
        rows.write.parquet(str(table.parent / "old"))
    finally:
        spark.conf.unset(OLD_FORM)
    (old,) = (table.parent / "old").glob("*.parquet")
    shutil.copy(old, path)
    action["add"]["size"] = path.stat().st_size
    lines[number] = json.dumps(action)
    commit.write_text("\n".join(lines) + "\n")
    for checksum in (table / "_delta_log").glob("*.crc"):  # they have the old size
        checksum.unlink()


def _values(table: DeltaTable) -> Values:
    return {row["id"]: row["x"] for row in table.toDF().collect()}


def _of(*ids: int) -> Values:
    return {number: [[number, None], []] for number in ids}


def _delete(table: DeltaTable, session: SparkSession) -> Values:
    assert table.delete("id = 2 or id = 4").collect()[0]["num_affected_rows"] == 2
    return _of(1, 3, 5)


def _delete_as_spark_says(table: DeltaTable, session: SparkSession) -> Values:
    assert table.delete("size(x) = 2 and id < 3").collect()[0]["num_affected_rows"] == 2
    return _of(3, 4, 5)


def _update(table: DeltaTable, session: SparkSession) -> Values:
    assert table.update("id = 2", {"id": "20"}).collect()[0]["num_affected_rows"] == 1
    return {**_of(1, 3, 4, 5), 20: [[2, None], []]}


def _update_all(table: DeltaTable, session: SparkSession) -> Values:
    assert table.update(set={"id": "id + 10"}).collect()[0]["num_affected_rows"] == 5
    return {number + 10: value for number, value in _of(1, 2, 3, 4, 5).items()}


def _merge(table: DeltaTable, session: SparkSession) -> Values:
    source = session.createDataFrame([(2, [[7]]), (4, [[8]]), (9, [])], ROWS)
    values = {"id": "s.id", "x": "s.x"}
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set=values).whenNotMatchedInsert(values=values).execute()
    return {**_of(1, 3, 5), 2: [[7]], 4: [[8]], 9: []}


def _merge_that_deletes(table: DeltaTable, session: SparkSession) -> Values:
    source = session.createDataFrame([(3,), (5,)], "id long")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    assert merge.whenMatchedDelete().execute().collect()[0]["num_deleted_rows"] == 2
    return _of(1, 2, 4)


STATEMENTS = [_delete, _delete_as_spark_says, _update, _update_all, _merge, _merge_that_deletes]
CHANGED: dict[str, list[Callable[[DeltaTable, SparkSession], Values]]] = {
    "rewriting": [_delete, _update_all, _merge],
    "vectors": [_delete_as_spark_says, _update, _merge],
    "row ids and changes": [_delete, _update_all, _merge],
    "partitions": [_delete_as_spark_says, _update, _merge_that_deletes],
}
"""The statements that change each kind of table at the usual length: of each kind one statement of either sort."""
CHANGED_BY_CONNECT = {"rewriting": [_update], "vectors": [_delete], "row ids and changes": [_merge]}
"""The same through Spark Connect, where the statements run as on classic sessions once files are read."""


def _make(session: SparkSession, kind: str, table: Path) -> None:
    """A file with the rows 1 to 3 as old writers store them, and one with the rows 4 and 5 as they are today."""
    builder = DeltaTable.create(session).location(str(table)).addColumns(ROWS)
    if kind == "partitions":
        builder = builder.addColumn("part", "string").partitionedBy("part")
    for name, value in KINDS[kind].items():
        builder = builder.property(name, value)
    builder.execute()
    for ids in ((1, 2, 3), (4, 5)):
        rows = session.createDataFrame([(i, [[i, None], []]) for i in ids], ROWS).coalesce(1)
        if kind == "partitions":
            rows = rows.withColumn("part", sf.lit("a"))
        rows.write.format("delta").mode("append").save(str(table))
    _store_as_old_writers_do(session, table)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[SparkSession, str], Path]:
    """The table of a kind, made once by the kind of session that this process has."""
    made: dict[str, Path] = {}

    def find(session: SparkSession, kind: str) -> Path:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp("old lists") / "t"
            _make(session, kind, made[kind])
        return made[kind]

    return find


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The kinds of tables of a test, and the statements that change them."""
    kinds = list(KINDS) if FULL or metafunc.cls is TestClassic else list(CHANGED_BY_CONNECT)
    if "change" in metafunc.fixturenames:
        changed = CHANGED if metafunc.cls is TestClassic else CHANGED_BY_CONNECT
        pairs = [(kind, change) for kind in kinds for change in (STATEMENTS if FULL else changed[kind])]
        metafunc.parametrize(("table", "change"), pairs, indirect=["table"])
    elif "table" in metafunc.fixturenames:
        everywhere = FULL or metafunc.function.__name__ == "test_optimize_leaves_such_files_to_spark"
        metafunc.parametrize("table", kinds if everywhere else kinds[:1], indirect=True)


class OldLists:
    @pytest.fixture
    def table(
        self,
        request: pytest.FixtureRequest,
        session: SparkSession,
        tmp_path: Path,
        made: Callable[[SparkSession, str], Path],
    ) -> DeltaTable:
        shutil.copytree(made(session, request.param), tmp_path / "t")
        return DeltaTable.forPath(session, str(tmp_path / "t"))

    @pytest.fixture
    def ids(self, session: SparkSession, tmp_path: Path, table: DeltaTable) -> Callable[[], dict[str, int | None]]:
        """The row ids, where rows have some, by the value of the other column."""
        tracked = table.detail().collect()[0]["properties"].get("delta.enableRowTracking") == "true"

        def found() -> dict[str, int | None]:
            reader = session.read.format("delta").option("includeRowTracking", str(tracked).lower())
            columns = sf.to_json("x"), sf.col("_row_id") if tracked else sf.lit(None)
            return dict(map(tuple, reader.load(str(tmp_path / "t")).select(*columns).collect()))

        return found

    def test_only_spark_reads_them(self, table: DeltaTable, tmp_path: Path) -> None:
        with pytest.raises(UnsupportedDataFileError, match=r"feature of Parquet that Arrow cannot read.*Spark can"):
            Table.open(tmp_path / "t").scan().to_arrow()
        assert _values(table) == _of(1, 2, 3, 4, 5)

    def test_statements_leave_such_files_to_spark(
        self,
        table: DeltaTable,
        session: SparkSession,
        ids: Callable[[], dict[str, int | None]],
        change: Callable[[DeltaTable, SparkSession], Values],
    ) -> None:
        before = ids()
        expected = change(table, session)
        assert _values(table) == expected
        after = ids()
        kept = before.keys() & after.keys()
        assert kept
        assert {key: before[key] for key in kept} == {key: after[key] for key in kept}

    def test_optimize_leaves_such_files_to_spark(
        self,
        table: DeltaTable,
        session: SparkSession,
        ids: Callable[[], dict[str, int | None]],
        tmp_path: Path,
        cost: SetCost,
    ) -> None:
        """In this process and in tasks. What is deleted meanwhile is deleted in the new file."""
        detail = table.detail().collect()[0]
        has_vectors = detail["properties"].get("delta.enableDeletionVectors") == "true"
        if has_vectors:
            table.delete("id = 2")
        cost(session, **({"driver_local_bytes": 0} if has_vectors or detail["partitionColumns"] else {}))
        before, plan = ids(), table.optimize().plan()
        cost(session)
        if has_vectors:
            table.delete("id = 4")
        result = plan.execute()
        assert (result.removed.count, result.added.count, result.bins_given_up) == (2, 1, 0)
        left = [1, 3, 5] if has_vectors else [1, 2, 3, 4, 5]
        assert [row["id"] for row in Table.open(tmp_path / "t").scan().to_arrow().to_pylist()] == left
        assert _values(table) == _of(*left)
        assert ids() == {text: before[text] for text in ids()}

    def test_a_plan_counts_rows_of_such_files(self, table: DeltaTable) -> None:
        assert table.delete("id = 2", plan=True).rows_affected == 1
        assert table.update("id = 2", {"id": "20"}, plan=True).rows_affected == 1


class TestClassic(OldLists):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(OldLists):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
