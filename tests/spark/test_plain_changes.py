"""UPDATE and DELETE that Arrow carries out by itself; `test_engines` compares what all engines do to a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import LongType, StringType, StructField, StructType
from tests.costs import ENGINES, TASKS, SetCost, engine_of
from tests.hand_made import HandMade, features, field, metadata
from tests.spark.test_row_changes import FEED, RANGE, REWRITE, ROW_IDS, VECTORS, all_rows, commit, content, row_ids

from pyspark_delta import DeltaTable, Table
from pyspark_delta.errors import ConstraintViolationError, DataFileError
from pyspark_delta.spark.engine.dml.target import SparkTarget as Target
from pyspark_delta.spark.engine.write.job import SparkTasks
from pyspark_delta.spark.engine.write.save import save


@pytest.fixture
def read_by_spark(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each statement read through Spark."""
    read: list[int] = []
    rows = Target.rows
    monkeypatch.setattr(Target, "rows", lambda target, files: read.append(files.num_rows) or rows(target, files))
    return read


def state(table: DeltaTable) -> dict[str, Any]:
    """What a statement has left behind, but for how rows are spread over files."""
    properties = Table.open(table._location).snapshot.configuration.properties
    metrics = commit(table, "commitInfo")[0]["operationMetrics"]
    found = {
        "rows": all_rows(table),
        "counts": [metrics.get(name) for name in ("numUpdatedRows", "numDeletedRows")],
        "metrics": sorted(metrics),
    }
    if properties.get("delta.enableRowTracking") == "true":
        found["ids"] = row_ids(table)
    if properties.get("delta.enableChangeDataFeed") == "true":
        newest = Table.open(table._location).version
        changes = Table.open(table._location).changes(starting_version=newest).to_arrow()
        found["changes"] = sorted(str(row) for row in changes.drop_columns(["_commit_timestamp"]).to_pylist())
    return found


def make(session: SparkSession, path: Path, *properties: dict[str, str], rows: str = RANGE.format(40)) -> DeltaTable:
    options = {name: value for one in properties for name, value in one.items()}
    save(session.sql(rows), str(path), options=options)
    return DeltaTable.forPath(session, str(path))


def limited(name: str, declared: str) -> StructField:
    return StructField(name, StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": declared})


@pytest.mark.parametrize("by_workers", [True, False])
def test_a_number_that_is_too_large_is_for_spark_to_say(
    delta_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cost: SetCost,
    read_by_spark: list[int],
    by_workers: bool,
) -> None:
    session = delta_spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    if by_workers:
        cost(session, **TASKS)
    table = make(session, tmp_path, VECTORS, FEED)
    table.update("id = 3 or id = 33", {"n": "2147483647"})
    files, left, rows = set(tmp_path.rglob("*.parquet")), [], Target.rows

    def recorded(target: Target, read: Any) -> Any:
        left.append(set(tmp_path.rglob("*.parquet")) - files)
        return rows(target, read)

    monkeypatch.setattr(Target, "rows", recorded)
    changes = [
        lambda: table.update("n > 1", {"n": "n + 1"}),
        lambda: table.update("n + 1 > 3", {"v": "'x'"}),
        lambda: table.delete("n + 1 < 0"),
    ]
    for change in changes:
        with pytest.raises((ArithmeticException, Py4JJavaError), match="overflow"):
            change()
    assert len(read_by_spark) == 3
    assert Table.open(str(tmp_path)).version == 1
    assert by_workers or left[0] == set()  # before Spark wrote files; workers leave those of tasks that did not fail
    session.conf.set("spark.sql.ansi.enabled", "false")
    assert [change().collect() for change in changes] == [[(21,)], [(19,)], [(2,)]]
    assert len(read_by_spark) == 4  # no number is too large for the others any more
    assert 3 not in content(table)


def test_texts_beside_numbers_are_for_spark_to_compare(
    delta_spark: SparkSession, tmp_path: Path, read_by_spark: list[int]
) -> None:
    """Without ANSI, they are numbers of the column's type, or the numbers are texts."""
    session = delta_spark.newSession()
    table = make(session, tmp_path, VECTORS)
    session.conf.set("spark.sql.ansi.enabled", "false")
    for condition in ("not n = '5000000000'", "not n + 0 = '5000000000'", "id in ('01', '2')", "n <=> '1e0'"):
        expected = table.toDF().where(condition).count()
        assert (condition, table.delete(condition, plan=True).rows_affected) == (condition, expected)
    assert len(read_by_spark) == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_c385_c416_conditions_see_null_for_partition_values_that_become_empty(
    delta_spark: SparkSession, tmp_path: Path, cost: SetCost, engine: str
) -> None:
    cost(delta_spark, **ENGINES[engine])
    table = (
        DeltaTable.create(delta_spark)
        .location(str(tmp_path))
        .addColumns(StructType.fromDDL("p string, b binary, m string not null, v string"))
        .partitionedBy("p", "b", "m")
        .property("delta.constraints.given", "coalesce(p is not null and b is not null, false) or v = 'any'")
        .execute()
    )
    rows = "values ('a', X'41', 'm', 'x'), ('c', X'43', 'm', 'any') as t(p, b, m, v)"
    save(delta_spark.sql(f"select * from {rows}"), str(tmp_path), "append")
    for values in ({"p": "''"}, {"b": "X''"}, {"m": "''"}, {"p": "substring(v, 9, 1)"}):
        with pytest.raises(ConstraintViolationError):
            table.update("v = 'x'", values)
    assert Table.open(str(tmp_path)).version == 1
    table.update("v = 'any'", {"p": "''"})
    table.update("v = 'any'", {"b": "X''"})
    assert engine_of(str(tmp_path)) == engine
    found = Table.open(str(tmp_path)).scan(where="v = 'any'").to_arrow().to_pylist()
    assert found == [{"p": None, "b": None, "m": "m", "v": "any"}]


@pytest.mark.parametrize("way", [VECTORS, REWRITE])
def test_small_statements_run_no_spark_job(
    delta_spark: SparkSession,
    tmp_path: Path,
    count_jobs: Callable[[Callable[[], object]], int],
    way: dict[str, str],
) -> None:
    save(delta_spark.sql(RANGE.format(40)), str(tmp_path / "t"), options=way, partition_by=["n"])
    delta_spark.sql("select 5L id, 1L n, 'new' v").write.parquet(str(tmp_path / "source"))
    table = DeltaTable.forPath(delta_spark, str(tmp_path / "t"))
    source = delta_spark.read.parquet(str(tmp_path / "source")).alias("s")
    counts: list[tuple[Any, ...]] = []

    def statements() -> None:
        results = [
            table.delete("n = 2"),  # whole files
            table.delete("id = 4"),
            table.update("id = 7", {"v": "'x'"}),
            table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
        ]
        counts.extend(tuple(result.collect()[0]) for result in results)

    assert count_jobs(statements) == 0
    assert counts == [(10,), (1,), (1,), (1, 1, 0, 0)]
    assert count_jobs(lambda: table.delete("initcap(v) = 'X'").collect()) > 0


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_whole_numbers_that_fit_a_narrower_column_need_no_spark(
    delta_spark: SparkSession, tmp_path: Path, read_by_spark: list[int], ansi: str
) -> None:
    session = delta_spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    save(session.sql("select id, cast(id as int) n, cast(id as tinyint) tiny from range(0, 9, 1, 2)"), str(tmp_path))
    table = DeltaTable.forPath(session, str(tmp_path))
    assert table.update("id > 5", {"n": "id * -2", "tiny": "n + 120 - 1"}).collect() == [(3,)]
    source = session.createDataFrame([(1, 7, -128), (100, None, 127)], "id bigint, n bigint, tiny bigint").alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert merge.execute().collect() == [(2, 1, 0, 1)]
    assert read_by_spark == []
    expected = [(0, 0, 0), (1, 7, -128), *((i, i, i) for i in range(2, 6))]
    expected += [(6, -12, 125), (7, -14, 126), (8, -16, 127), (100, None, 127)]
    assert content(table, "id", "n", "tiny") == expected
    for number in (128, -129):
        with pytest.raises(ConstraintViolationError, match="tiny"):
            table.update("id = 8", {"tiny": f"n + {number + 16}"})
    large = session.createDataFrame([(1, 1 << 31, 0)], source.schema).alias("s")
    with pytest.raises(ConstraintViolationError, match="n"):
        table.alias("t").merge(large, "t.id = s.id").whenMatchedUpdateAll().execute()
    assert content(table, "id", "n", "tiny") == expected


def test_values_that_are_left_to_spark(delta_spark: SparkSession, tmp_path: Path, read_by_spark: list[int]) -> None:
    schema = StructType.fromDDL("id bigint, n int, v string, d timestamp, s struct<x: int>, a array<int>")
    builder = DeltaTable.create(delta_spark).location(str(tmp_path)).property("delta.enableDeletionVectors", "true")
    table = builder.addColumns(schema).execute()
    row = "1L id, 2 n, 'v' v, timestamp'2024-01-01' d, named_struct('x', 1) s, array(1) a"
    save(delta_spark.sql(f"select {row}"), str(tmp_path), "append")
    plain: list[dict[str, Any]] = [
        {"v": "'x'", "n": "null"},
        {"v": F.lit("x"), "n": F.col("n") * 2, "id": F.expr("id + 1")},
        {"v": F.col("s.x"), "n": F.coalesce(F.col("s")["x"], F.lit(5))},
        *({"s.x": "5"}, {"s": "null"}, {"a": "null"}, {"d": "current_timestamp() - INTERVAL 1 DAY"}),
    ]
    by_spark: list[dict[str, Any]] = [
        *({"v": F.initcap("v")}, {"n": "cast(rand() as int)"}, {"v": "current_timezone()"}),
        {"n": "3", "v": "initcap(v)"},
    ]
    for values in plain:
        assert table.update("id > 0", values).collect() == [(1,)]
        assert read_by_spark == [], values
    for values in by_spark:
        assert table.update("id > 0", values).collect() == [(1,)]
        assert len(read_by_spark) == 1, values
        read_by_spark.clear()
    assert content(table, "id", "n", "s", "a") == [(2, 3, None, None)]


def test_columns_that_the_transaction_added(
    delta_spark: SparkSession, tmp_path: Path, cost: SetCost, read_by_spark: list[int]
) -> None:
    for name, limits in ENGINES.items():
        cost(delta_spark, **limits)
        table = make(delta_spark, tmp_path / name, VECTORS)
        with table.transaction() as txn:
            txn.append(delta_spark.sql("select 100L id, 1 more"), mergeSchema=True)
            txn.update("id = 1", {"n": "7"})
            txn.delete("id = 22")
        found = Table.open(str(tmp_path / name)).scan(where="id < 2 or id = 22 or id > 50").to_arrow().to_pylist()
        assert sorted(map(str, found)) == [
            "{'id': 0, 'n': 0, 'v': 'v0', 'more': None}",
            "{'id': 1, 'n': 7, 'v': 'v1', 'more': None}",
            "{'id': 100, 'n': None, 'v': None, 'more': 1}",
        ]
    assert len(read_by_spark) == 2


def test_computed_columns_and_texts_of_fixed_length_need_no_spark(
    delta_spark: SparkSession, tmp_path: Path, read_by_spark: list[int]
) -> None:
    builder = DeltaTable.create(delta_spark).location(str(tmp_path)).addColumn("id", "bigint").addColumn("n", "int")
    table = builder.addColumn("g", "bigint", generatedAlwaysAs="id + 1").execute()
    save(delta_spark.sql("select 1L id, 1 n"), str(tmp_path), "append")
    assert table.update("n = 1", {"id": "5"}).collect() == [(1,)]
    assert (content(table, "id", "g"), len(read_by_spark)) == ([(5, 6)], 0)
    fields = [StructField("id", LongType()), limited("c", "char(3)")]
    padded = DeltaTable.create(delta_spark).location(str(tmp_path / "c")).addColumns(StructType(fields)).execute()
    save(delta_spark.sql("select 1L id, 'a' c"), padded._location, "append")
    assert padded.update("id = 1", {"c": "'b'"}).collect() == [(1,)]
    assert read_by_spark == []
    assert content(padded, "id", "c") == [(1, "b  ")]


def test_large_files_are_updated_in_parts(
    delta_spark: SparkSession, tmp_path: Path, cost: SetCost, read_by_spark: list[int]
) -> None:
    cost(delta_spark, **TASKS, task_bytes=4000, file_open_bytes=1)
    made = HandMade(tmp_path / "t")
    made.commit(0, features("deletionVectors"), metadata(field("id"), field("row"), configuration=VECTORS))
    for number, start in enumerate((0, 5000, 10000), 1):
        rows = range(start, start + 5000)
        made.commit(number, made.data(f"{number}.parquet", {"id": rows, "row": rows}, row_group_size=500))
    table = DeltaTable.forPath(delta_spark, str(made.path))
    assert table.delete("row % 100 = 8", plan=True).rows_affected == 150
    assert table.update("row % 100 = 7", {"id": "-id"}).collect() == [(150,)]
    assert read_by_spark == []
    assert content(table) == sorted(-i if i % 100 == 7 else i for i in range(15000))
    assert len(commit(table, "add")) > 6  # three with vectors, and files of new rows
    assert table.update(set={"id": "row"}, plan=True).rows_affected == 15000


@pytest.mark.parametrize("properties", [{**VECTORS, **FEED, **ROW_IDS}, REWRITE])
def test_workers_write_rows_that_turn_out_to_be_many(
    delta_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cost: SetCost,
    properties: dict[str, str],
) -> None:
    written: list[int] = []
    run_each = SparkTasks.run_each
    monkeypatch.setattr(SparkTasks, "run_each", lambda *given: written.append(1) or run_each(*given))
    few, many = (make(delta_spark, tmp_path / name, properties) for name in ("few", "many"))
    assert few.update("id % 3 = 1", {"n": "n + 1"}).collect() == [(13,)]
    assert written == []
    cost(delta_spark, driver_written_bytes=100, driver_rewritten_files=0)
    assert many.update("id % 3 = 1", {"n": "n + 1"}).collect() == [(13,)]
    assert written == [1]
    assert state(few) == state(many)


def test_an_update_of_files_that_are_gone_leaves_nothing(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = make(delta_spark, tmp_path, VECTORS)
    file = sorted(tmp_path.glob("*.parquet"))[-1]
    file.write_bytes(file.read_bytes()[:100])
    files = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(DataFileError, match=file.name):
        table.update(set={"n": "n + 1"})
    assert set(tmp_path.rglob("*.parquet")) == files


def test_workers_share_what_there_is_to_do(delta_spark: SparkSession) -> None:
    schema = pa.schema([("number", pa.int64()), ("task", pa.int64()), ("failure", pa.binary())])

    def task(number: int, item: int) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        yield pa.RecordBatch.from_pylist([{"number": number - item, "task": task.partitionId()}], schema)

    before = delta_spark.conf.get("spark.sql.leafNodeDefaultParallelism", None)
    for count in (1, 2, 4, 9):
        found = SparkTasks(delta_spark).run_each(range(count), task, schema)
        assert found["number"].to_pylist() == [0] * count
        assert sorted(found["task"].to_pylist()) == list(range(count))
    assert delta_spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) == before


@pytest.mark.parametrize("engine", ENGINES)
def test_a_statement_says_which_engine_ran(
    delta_spark: SparkSession, tmp_path: Path, cost: SetCost, engine: str
) -> None:
    cost(delta_spark, **ENGINES[engine])
    table = make(delta_spark, tmp_path, VECTORS)
    plan = table.delete("id % 4 = 1", plan=True)
    assert (plan.engine, plan.engine_reason) == (engine, "")
    table.delete("id % 4 = 1")
    assert engine_of(str(tmp_path)) == engine
    table.update("id % 4 = 2", {"n": "n + 1"})
    assert engine_of(str(tmp_path)) == engine


def test_a_plan_says_why_arrow_does_not_run(delta_spark: SparkSession, tmp_path: Path) -> None:
    plan = make(delta_spark, tmp_path, VECTORS).delete("cbrt(id) = 2", plan=True)
    reason = (
        "Arrow: the condition is not one that Arrow computes exactly: Arrow does not compute cbrt(...) exactly as Spark"
    )
    assert plan.engine == "Spark"
    assert plan.engine_reason.startswith(reason)
