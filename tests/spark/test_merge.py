"""MERGE of a `DeltaTable`, on classic sessions and through Spark Connect."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from tests.costs import ENGINES, SPARK, SetCost
from tests.hand_made import field
from tests.lengths import FULL
from tests.spark.rule_cases import identity, mark_of, rows_in, table_of

from pyspark_delta import DeltaTable, Table
from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import (
    AppendOnlyTableError,
    ConstraintViolationError,
    DeltaError,
    InvalidOperationError,
    InvalidPredicateError,
    SchemaMismatchError,
)
from pyspark_delta.expressions.text import to_sql
from pyspark_delta.expressions.tree import Column
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.schema.types import BYTE, DATE, INTEGER, LONG, STRING
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.engine.dml.merge_source import find_keys
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.statements.merge.condition import Key
from pyspark_delta.statements.merge.keys import SourceKeys

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
COUNTS = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")


def make(session: SparkSession, path: Path, *properties: dict[str, str], **more: Any) -> DeltaTable:
    """The ids 0 to 39 in four files of ten, with n = 0 and v = 'old'."""
    options = {name: value for one in properties for name, value in one.items()}
    rows = session.sql("select id, 0 n, 'old' v from range(0, 40, 1, 4)")
    save(rows, str(path), options=options, **more)
    return DeltaTable.forPath(session, str(path)).alias("t")


def content(table: DeltaTable) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in Table.open(table._location).scan().to_arrow().to_pylist()), key=repr)


def commit(table: DeltaTable, kind: str) -> list[dict[str, Any]]:
    """The actions of one kind in the newest commit."""
    newest = max(Path(table._location, "_delta_log").glob("*.json"))
    return [action[kind] for action in map(json.loads, newest.read_text().splitlines()) if kind in action]


def version(table: DeltaTable) -> int:
    return Table.open(table._location).version


def row_ids(table: DeltaTable) -> dict[int, tuple[int, int]]:
    plan = plan_scan(Snapshot.load(table._location), ["id"], row_ids=True)
    return {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in read_plan(plan).read_all().to_pylist()}


def counts(result: DataFrame) -> tuple[int, ...]:
    [row] = result.collect()
    return tuple(row[name] for name in COUNTS)


class Forced:
    """Merges under one engine, on one kind of session."""

    engine = "Arrow in the driver"

    @pytest.fixture(autouse=True)
    def ran(
        self, request: pytest.FixtureRequest, session: SparkSession, cost: SetCost, caplog: pytest.LogCaptureFixture
    ) -> Iterator[None]:
        """Forces the engine, and checks that Spark ran what is for Spark."""
        is_for_spark = request.function.__qualname__.startswith(SparkMerges.__name__)
        cost(session, **ENGINES["Spark" if is_for_spark else self.engine])
        with caplog.at_level("INFO", logger="pyspark_delta.engines"):
            yield
        logged = [
            record.args for record in caplog.get_records("call") if record.name.startswith("pyspark_delta.engines")
        ]
        engines = {str(given[1]) for given in logged if isinstance(given, tuple) and given[0] == "MERGE"}
        if self.engine == "Spark" or is_for_spark:
            assert engines <= {"Spark"}


class Merges(Forced):
    """What every engine does; each runs them all."""

    def test_files_beyond_the_keys_of_the_source_are_not_read(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path, VECTORS)
        paths = {json.loads(a["stats"])["minValues"]["id"]: a["path"] for a in commit(table, "add")}
        for least in (10, 30):
            (tmp_path / paths[least]).unlink()
        # A source that has another key each time it is computed: were it looked at twice, its row would be inserted.
        changing = F.udf(lambda: os.urandom(1)[0] % 5, "long").asNondeterministic()
        source = session.range(1).select(changing().alias("id"), F.lit("new").alias("v"))
        merge = table.merge(source.alias("s"), "t.id = s.id")
        upsert = merge.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsert(values={"id": "s.id", "v": "v"})
        surface = upsert.plan().conflicts_with
        assert surface.startswith("commits that add rows that may match id ")
        assert surface.endswith(", or remove one of the 1 files that were read")
        for _ in range(3):
            assert counts(upsert.execute()) == (1, 1, 0, 0)
        metrics = commit(table, "commitInfo")[0]["operationMetrics"]
        assert (metrics["numSourceRows"], metrics["numTargetRowsUpdated"]) == ("1", "1")
        total, scan, rewrite = (int(metrics[f"{name}TimeMs"]) for name in ("execution", "scan", "rewrite"))
        assert total == scan + rewrite
        assert scan > 0
        # Both ends of the range, and none of what lies between.
        few = session.createDataFrame([(5,), (25,), (None,)], "k long")
        found = table.merge(few.alias("s"), "s.k = t.id and t.v <> 'gone'").whenMatchedDelete("s.k > 0").execute()
        assert counts(found) == (2, 0, 2, 0)
        assert {a["path"] for a in commit(table, "add")} == {paths[0], paths[20]}
        metrics = commit(table, "commitInfo")[0]["operationMetrics"]
        assert metrics["numTargetDeletionVectorsAdded"] == "2"
        for file in tmp_path.glob("*.parquet"):
            file.unlink()
        nothing = table.merge(few.alias("s"), "t.id = s.k and t.id > 100").whenMatchedDelete()
        assert counts(nothing.execute()) == (0, 0, 0, 0)
        before = version(table)
        inserted = table.merge(few.alias("s"), "t.id = s.k + 100 and t.id > 100").whenNotMatchedInsert(
            values={"id": F.col("s.k")}
        )
        assert counts(inserted.execute()) == (3, 0, 0, 3)
        assert version(table) == before + 1
        assert commit(table, "remove") == []

    def test_columns_of_a_source_that_is_kept(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path)
        source = session.range(38, 42).groupBy("id").agg(F.lit("new").alias("v"))
        merge = table.merge(source, F.col("t.id") == source["id"])
        merge = merge.whenMatchedUpdate(source["id"] > 38, {"v": source["v"]})
        merge = merge.whenNotMatchedInsert(values={"id": source["id"]})
        assert counts(merge.execute()) == (3, 1, 0, 2)
        values = {row[0]: row[1:] for row in content(table)}
        assert (values[39], values[40], values[41]) == ((0, "new"), (None, None), (None, None))
        assert len(commit(table, "remove")) == 1
        # Rows of the source that match none are of no concern, rows of the table that match none are.
        old = table.merge(source, F.col("t.id") == source["id"]).whenMatchedDelete(source["id"] == 40)
        assert counts(old.whenNotMatchedBySourceUpdate("t.id < 2", {"v": "'alone'"}).execute()) == (3, 2, 1, 0)
        found = {row[0]: row[2] for row in content(table)}
        assert (found.keys(), found[0], found[1], found[2]) == ({*range(40), 41}, "alone", "alone", "old")
        twice = session.sql("select 5L id union all select 5 union all select 50").alias("s")
        goes = table.merge(twice, "t.id = s.id").whenMatchedDelete().whenNotMatchedInsert(values={"id": "s.id"})
        assert counts(goes.execute()) == (2, 0, 1, 1)  # one row went, however many rows it matched
        alone = table.merge(twice, "t.id = s.id").whenMatchedDelete().whenNotMatchedBySourceDelete("t.id = 3")
        alone = alone.whenNotMatchedBySourceUpdate("t.id = 4", {"v": "'alone'"})
        assert counts(alone.execute()) == (3, 1, 2, 0)
        metrics = commit(table, "commitInfo")[0]["operationMetrics"]
        deleted = ("numTargetRowsMatchedDeleted", "numTargetRowsNotMatchedBySourceDeleted")
        assert [metrics[name] for name in deleted] == ["1", "1"]

    @pytest.mark.parametrize("partition_by", [[], ["n"]])
    def test_c164_c324_c341_ids_and_changes(
        self, session: SparkSession, tmp_path: Path, partition_by: list[str]
    ) -> None:
        table = make(session, tmp_path, VECTORS, FEED, ROW_IDS, partition_by=partition_by)
        before = row_ids(table)
        source = session.sql("select id, id + 100 as new, 1 m from range(38, 42)")
        merge = (
            table.merge(source.alias("s"), F.col("t.id") == source["id"])
            .whenMatchedUpdate("s.id = 38", {"n": F.col("s.m"), "t.v": "concat(t.v, s.new)"})
            .whenMatchedDelete()
            .whenNotMatchedInsert(F.col("s.id") > 40, {"id": "new", "v": "'in'"})
            .whenNotMatchedBySourceUpdate("t.id < 2", {"v": "'by source'"})
            .whenNotMatchedBySourceDelete("t.id = 2")
        )
        plan = merge.plan()
        assert (plan.operation, plan.rows_affected, plan.rows_written) == ("MERGE", 6, 4)
        assert counts(plan.execute()) == (6, 3, 2, 1)
        rows = {row[0]: row[1:] for row in content(table)}
        assert {i: rows[i] for i in (0, 1, 38, 141)} == {
            0: (0, "by source"), 1: (0, "by source"), 38: (1, "old138"), 141: (None, "in"),
        }  # fmt: skip
        assert rows.keys() == {*range(40), 141} - {2, 39}
        ids = row_ids(table)
        assert {i: ids[i][0] for i in (0, 38, 7)} == {i: before[i][0] for i in (0, 38, 7)}
        assert (ids[38][1], ids[7][1], ids[141][0] >= 40) == (1, 0, True)
        changes = [
            {**row, **c["partitionValues"]}
            for c in commit(table, "cdc")
            for row in pq.read_table(tmp_path / c["path"], partitioning=None).to_pylist()
        ]
        assert sorted((row["id"], row["_change_type"]) for row in changes) == [
            (0, "update_postimage"), (0, "update_preimage"), (1, "update_postimage"), (1, "update_preimage"),
            (2, "delete"), (38, "update_postimage"), (38, "update_preimage"), (39, "delete"), (141, "insert"),
        ]  # fmt: skip
        images = {row["_change_type"]: (int(row["n"]), row["v"]) for row in changes if row["id"] == 38}
        assert images == {"update_preimage": (0, "old"), "update_postimage": (1, "old138")}
        info = commit(table, "commitInfo")[0]
        assert json.loads(info["operationParameters"]["matchedPredicates"])[1] == {"actionType": "delete"}
        assert len(json.loads(info["operationParameters"]["notMatchedPredicates"])) == 1
        assert len(json.loads(info["operationParameters"]["notMatchedBySourcePredicates"])) == 2
        assert info["operationMetrics"]["numSourceRows"] == "4"
        table.merge(source.alias("s"), "t.id = s.new").whenNotMatchedInsert(values={"id": "s.new"}).execute()
        assert commit(table, "cdc") == []  # rows were added, and nothing else

    def test_a_source_without_rows(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path, VECTORS)
        for number, empty in enumerate((session.createDataFrame([], "id long"), session.range(5).where("id > 9"))):
            merge = table.merge(empty.alias("s"), "t.id = s.id").whenMatchedDelete()
            assert counts(merge.execute()) == (0, 0, 0, 0)
            merge = merge.whenNotMatchedBySourceUpdate(f"t.id % 10 = {number}", {"v": "'alone'"})
            assert counts(merge.execute()) == (4, 4, 0, 0)
        assert sorted(row[0] for row in content(table) if row[2] == "alone") == [0, 1, 10, 11, 20, 21, 30, 31]

    def test_several_rows_that_match_one(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path, FEED)
        files = len(list(tmp_path.rglob("*.parquet")))
        source = session.sql("select 1 id, 'a' v union all select 1, 'b' union all select 5, 'c'").alias("s")
        merge = table.merge(source, "t.id = s.id")
        for ambiguous in (
            merge.whenMatchedUpdate(set={"v": "s.v"}),
            merge.whenMatchedDelete("s.v < 'x'"),
            merge.whenMatchedDelete("s.v = 'a'").whenMatchedUpdate(set={"v": "s.v"}),
        ):
            with pytest.raises(InvalidOperationError, match=r"\(id=1\): 2 rows\.") as caught:
                ambiguous.execute()
            assert caught.value.error_class == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
            assert caught.value.sqlstate == "21506"
        added = source.union(session.sql("select 50, 'd' union all select 51, 'e' union all select 52, 'f'"))
        upsert = table.merge(added.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"})
        with pytest.raises(InvalidOperationError, match=r"Found for \(id=1\): 2 rows\. Leave"):
            upsert.whenNotMatchedInsert(values={"id": "s.id"}).execute()
        assert (version(table), len(list(tmp_path.rglob("*.parquet")))) == (0, files)
        goes = merge.whenMatchedDelete().whenNotMatchedInsert(values={"id": "s.id"})
        assert counts(goes.execute()) == (2, 0, 2, 0)
        changes = [
            row
            for c in commit(table, "cdc")
            for row in pq.read_table(tmp_path / c["path"], partitioning=None).to_pylist()
        ]
        assert sorted(row["id"] for row in changes) == [1, 5]
        assert counts(goes.execute()) == (3, 0, 0, 3)
        assert commit(table, "cdc") == []  # rows were added, and nothing else
        # One of them changes the row: nothing is ambiguous.
        assert counts(merge.whenMatchedUpdate("s.v <> 'a'", {"v": "s.v"}).execute()) == (3, 3, 0, 0)
        # Files are written anew for rows that only go, so readers need to be told which.
        assert counts(table.merge(source.where("id = 5"), "t.id = s.id").whenMatchedDelete().execute()) == (1, 0, 1, 0)
        changes = [
            row
            for c in commit(table, "cdc")
            for row in pq.read_table(tmp_path / c["path"], partitioning=None).to_pylist()
        ]
        assert [(row["id"], row["_change_type"]) for row in changes] == [(5, "delete")]


class SparkMerges(Forced):
    """Merges that Arrow leaves to Spark, so that they need not run under each engine."""

    def test_values_are_computed_for_the_rows_that_clauses_take(self, session: SparkSession, tmp_path: Path) -> None:
        """Names without a qualifier mean the only side that a clause sees, though both sides have them."""
        table = make(session, tmp_path)
        source = session.sql("select id, 7 n, 'new' v from values 0L, 1L, 50L, 60L as k(id)").alias("s")
        merge = table.merge(source, "t.id = s.id").whenMatchedDelete("s.v <> 'new'")
        forms: list[tuple[Any, Any]] = [
            ("id >= 10 div id", "10 div (id - 60)"),
            (F.expr("`ID` >= 10 div id"), F.expr("10 div (`s`.`id` - 60)")),
            (F.col("id") >= F.lit(10) / F.col("id"), (F.lit(10) / (F.col("id") - 60)).cast("int")),
            (F.transform(F.array(F.lit(10)), lambda x: x / F.col("id"))[0] < 1,
             F.when(F.col("s.id") > 0, F.floor(F.lit(10) / (F.col("id") - 60)))),
            ("id >= transform(array(10), x -> x div id)[0]", "transform(array(10), n -> n div (id - 60))[0]"),
        ]  # fmt: skip
        # Through Spark Connect, what differs are columns.
        for condition, value in forms[1:4] if hasattr(session, "session_id") and not FULL else forms:
            # The row of id 0 matches, and the value is not for the row of id 60.
            inserted = merge.whenNotMatchedInsert("id = 60", {"id": "id", "v": "v"}).whenNotMatchedInsert(
                condition, {"ID": F.col("id"), "n": value, "v": "concat(s.v, V)"}
            )
            assert counts(inserted.execute()) == (2, 0, 0, 2)
            found = {row[0]: row[1:] for row in content(table)}
            assert (found[50], found[60]) == ((-1, "newnew"), (None, "new"))
            goes = table.merge(session.range(40).alias("s"), "t.id = s.id").whenMatchedUpdate("s.id = 0", {"n": "t.n"})
            assert counts(goes.whenNotMatchedBySourceDelete("10 div id = 0").execute()) == (3, 1, 2, 0)
        zero = table.merge(session.sql("select 0L id, 1 n"), "t.id = 0").whenMatchedDelete("v is null")
        zero = zero.whenNotMatchedInsert("1 div id = 0", {"id": "id"})
        both = zero.whenNotMatchedBySourceUpdate("id < 3 and 10 div id > 0", {"n": "n + 10 div id"})
        assert counts(both.execute()) == (2, 2, 0, 0)
        assert {row[0]: row[1] for row in content(table) if row[1]} == {1: 10, 2: 5}
        alone = table.merge(session.sql("select 0L id, 1 n"), "t.id = 0")
        assert counts(alone.whenNotMatchedInsert(values={"id": "10 div id"}).execute()) == (0, 0, 0, 0)
        by_source = alone.whenNotMatchedBySourceUpdate("id < 3", {"n": (F.lit(30) / F.col("id")).cast("int")})
        assert counts(by_source.execute()) == (2, 2, 0, 0)
        assert {row[0]: row[1] for row in content(table) if row[1]} == {1: 30, 2: 15}

    def test_names_of_a_side_that_are_also_names_of_columns(self, session: SparkSession, tmp_path: Path) -> None:
        rows = session.sql("select 1L id, named_struct('id', 10L, 'x', 1) s, 'old' `a.b``c`")
        save(rows, str(tmp_path))
        table = DeltaTable.forPath(session, str(tmp_path)).alias("t")
        source = session.sql("select 2L id, named_struct('id', 20L, 'x', 2) s, 'new' `a.b``c`")
        value = {"id": "s.id", "s": "named_struct('id', id, 'x', s.x)", "`a.b``c`": "concat(`a.b``c`, id)"}
        values = {"id": F.col("s.id"), "s": F.struct("id", "s.x"), "`a.b``c`": F.concat("`a.b``c`", "id")}
        for given in (value, values):
            for frame, found in ((source, (20, 2)), (source.alias("s"), (2, 2))):
                merge = table.merge(frame, "t.id = -1").whenNotMatchedInsert(values=given)  # type: ignore[arg-type]
                assert counts(merge.execute()) == (1, 0, 0, 1)
                [row] = [row for row in content(table) if row[0] != 1]
                assert row == (found[0], {"id": found[1], "x": 2}, "new2")
                table.delete("id <> 1")

    def test_what_cannot_be_told_by_copies_is_computed_early(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path)
        source = session.sql("select 50L id, 7 n, 'new' v").alias("s")
        longer = F.udf(lambda text: text + "er", "string")  # fails for null, as in rows that the table alone has
        queried = {"id": "id + (select max(r.id) from range(3) r where r.id <= n)"}
        for values, found in (
            (queried, (52, None, None)),
            ({"id": "id", "v": longer(F.col("v"))}, (50, None, "newer")),
        ):
            merge = table.merge(source, "t.id = s.id").whenNotMatchedInsert(values=values)  # type: ignore[arg-type]
            merge = merge.whenNotMatchedBySourceUpdate("t.id = 1", {"n": "5"})
            assert counts(merge.whenMatchedDelete().execute()) == (2, 1, 0, 1)
            assert found in content(table)

    def test_c381_c390_c392_c399_rules_of_rows(self, session: SparkSession, tmp_path: Path) -> None:
        location = table_of(
            tmp_path / "t",
            identity("i", 10, 5),
            field("k", "integer"),
            field("a", "integer", **{"delta.invariants": '{"expression":{"expression":"a > 0"}}'}),
            field("g", "long", **{"delta.generationExpression": "a * 2"}),
            field("d", "string", CURRENT_DEFAULT="'ü'"),
        )
        table = DeltaTable.forPath(session, location).alias("t")
        source = session.sql("select 1 k, 5 a union all select 2, 6").alias("s")
        merge = table.merge(source, "t.k = s.k")
        upsert = merge.whenMatchedUpdate(set={"a": "s.a + t.a"}).whenNotMatchedInsertAll()
        assert counts(upsert.execute()) == (2, 0, 0, 2)
        found = sorted(rows_in(location), key=lambda row: row["k"])
        assert [(r["k"], r["a"], r["g"], r["d"]) for r in found] == [(1, 5, 10, "ü"), (2, 6, 12, "ü")]
        numbers = {row["k"]: row["i"] for row in found}
        assert len(set(numbers.values())) == 2
        assert all(i >= 10 and i % 5 == 0 for i in numbers.values())
        assert mark_of(location, "i") == max(numbers.values())
        source_of_three = session.sql("select 2 k, 1 a union all select 3, 7").alias("s")
        upsert = table.merge(source_of_three, "t.k = s.k")
        upsert = upsert.whenMatchedUpdate(set={"a": "s.a + t.a"})
        upsert = upsert.whenNotMatchedInsert(values={"k": "k", "a": "a", "d": "null", "g": "14L"})
        assert counts(upsert.execute()) == (2, 1, 0, 1)
        found = sorted(rows_in(location), key=lambda row: row["k"])
        assert [(r["a"], r["g"], r["d"]) for r in found] == [(5, 10, "ü"), (7, 14, "ü"), (7, 14, None)]
        assert [r["i"] for r in found][:2] == [numbers[1], numbers[2]]
        assert found[2]["i"] > max(numbers.values())
        assert mark_of(location, "i") == found[2]["i"]
        for broken, kind in (
            (merge.whenMatchedUpdate(set={"a": "-1"}), ConstraintViolationError),
            (merge.whenMatchedUpdate(set={"g": "1L"}), ConstraintViolationError),
            (merge.whenMatchedUpdate(set={"i": "1L"}), InvalidOperationError),
            (merge.whenNotMatchedInsert(values={"i": "1L"}), InvalidOperationError),
        ):
            with pytest.raises(kind):
                broken.execute()
        assert version(table) == 2
        location = table_of(tmp_path / "free", field("k", "integer"), identity("i", 10, 5, explicit=True))
        free = DeltaTable.forPath(session, location).alias("t")
        merge = free.merge(source, "t.k = s.k").whenNotMatchedInsert("s.k = 1", {"k": "k", "i": "7L"})
        merge.whenNotMatchedInsert(values={"k": "k"}).execute()
        assert sorted((row["k"], row["i"] == 7) for row in rows_in(location)) == [(1, True), (2, False)]

    def test_schema_evolution(self, session: SparkSession, tmp_path: Path) -> None:
        mapping = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
        table = make(session, tmp_path, mapping, FEED)
        source = session.sql("select 39L id, 5000000000L n, named_struct('x', 1) more union all select 40, 1, null")
        merge = table.merge(source.alias("s"), "t.id = s.id")
        upsert = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
        with pytest.raises(InvalidOperationError, match="no column 'v'"):
            upsert.execute()
        assert counts(upsert.withSchemaEvolution().execute()) == (2, 1, 0, 1)
        assert str(Table.open(str(tmp_path)).schema) == "struct<id:long,n:long,v:string,more:struct<x:integer>>"
        found = {row[0]: row[1:] for row in content(table)}
        assert (found[39], found[40], found[0]) == (
            (5000000000, "old", {"x": 1}), (1, None, None), (0, "old", None),
        )  # fmt: skip
        nested = session.sql(
            "select 39L id, named_struct('x', 2, 'y', 3, 'at', timestamp_ntz'2024-01-01') more, 1 unused"
        ).alias("s")
        merge = table.merge(nested, "t.id = s.id")
        merge = merge.whenMatchedUpdate(set={"more.y": "s.more.y", "more.at": "s.more.at"})
        with pytest.raises(InvalidOperationError, match=r"more\.y"):
            merge.execute()
        session.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
        try:
            assert counts(merge.execute()) == (1, 1, 0, 0)
        finally:
            session.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
        assert {row[0]: row[3] for row in content(table)}[39] == {"x": 1, "y": 3, "at": datetime(2024, 1, 1)}
        assert "timestampNtz" in Table.open(str(tmp_path)).snapshot.configuration.protocol.writer_features
        assert "unused" not in Table.open(str(tmp_path)).schema.names

    def test_what_structs_of_the_source_lack_stays_as_it_was(self, session: SparkSession, tmp_path: Path) -> None:
        rows = "select id, named_struct('a', 1, 'b', 'old', 'c', named_struct('x', 2, 'y', 3)) s from range(4)"
        save(session.sql(rows), str(tmp_path), options=FEED)
        table = DeltaTable.forPath(session, str(tmp_path)).alias("t")
        source = session.sql(
            "select id, if(id = 3, null, named_struct('C', if(id = 2, null, named_struct('z', 9, 'x', id)))) S "
            "from range(1, 5)"
        )
        merge = table.merge(source.alias("s"), "t.id = s.id")
        with pytest.raises(SchemaMismatchError, match=r"lacks s\.a, s\.b, s\.c\.y") as caught:
            merge.whenMatchedUpdate(set={"s": "named_struct('c', named_struct('x', s.s.c.x))"}).execute()
        assert caught.value.error_class == "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"
        merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
        assert counts(merge.withSchemaEvolution().execute()) == (4, 3, 0, 1)
        old = {"a": 1, "b": "old"}
        assert [row[1] for row in sorted(content(table), key=lambda row: row[0])] == [
            {**old, "c": {"x": 2, "y": 3, "z": None}},
            {**old, "c": {"x": 1, "y": 3, "z": 9}},
            {**old, "c": {"x": None, "y": 3, "z": None}},
            {**old, "c": {"x": None, "y": 3, "z": None}},
            {"a": None, "b": None, "c": {"x": 4, "y": None, "z": 9}},
        ]
        inserts = table.merge(source.where("id = 4").alias("s"), "t.id = s.id + 100")  # whose rows were nothing before
        inserts.whenNotMatchedInsertAll().withSchemaEvolution().execute()
        inserts.whenNotMatchedInsert(values={"id": "s.id + 1", "s.c.y": "7"}).execute()
        assert [row[1] for row in sorted(content(table), key=lambda row: row[0])][4:] == [
            {"a": None, "b": None, "c": {"x": 4, "y": None, "z": 9}},
            {"a": None, "b": None, "c": {"x": 4, "y": None, "z": 9}},
            {"a": None, "b": None, "c": {"x": None, "y": 7, "z": None}},
        ]
        whole = session.sql(
            "select 0L id, cast(null as struct<a: int, b: string, c: struct<x: int, y: int, z: int>>) s"
        )
        nulled = table.merge(whole.alias("s"), "t.id = s.id").whenMatchedUpdateAll().withSchemaEvolution()
        assert counts(nulled.execute()) == (1, 1, 0, 0)  # null is the value of all members, where none is lacking
        assert [row[1] for row in content(table) if row[0] == 0] == [None]

    def test_bad_merges(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path)
        source = session.sql("select 1L id, 'a' v, 2 w").alias("s")
        merge = table.merge(source, "t.id = s.id")
        wrong: list[tuple[Any, type[Exception], str]] = [
            (merge, InvalidOperationError, "DELTA_MERGE_MISSING_WHEN"),
            (merge.whenMatchedDelete().whenMatchedUpdate(set={"v": "'x'"}), InvalidOperationError,
             "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
            (merge.whenMatchedDelete("t.idd = 1"), InvalidOperationError, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
            (merge.whenNotMatchedInsert("t.id = 1", {"id": "s.id"}), InvalidOperationError,
             "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
            (merge.whenNotMatchedBySourceDelete("s.id = 1"), InvalidOperationError,
             "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
            (merge.whenMatchedUpdateAll(), InvalidOperationError, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
            (table.merge(session.sql("select 1L id, 2 n, 'a' v, 'b' V").alias("s"), "t.id = s.id")
             .whenMatchedUpdateAll(), InvalidOperationError, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
            (table.merge(session.sql("select 1L id, 2 n, 'a' v, 'b' V").alias("s"), "t.id = s.id")
             .withSchemaEvolution().whenMatchedUpdateAll(), InvalidOperationError, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
            (merge.whenMatchedUpdate(set={"w": "s.w"}), InvalidOperationError, "DELTA_MISSING_SET_COLUMN"),
            (merge.whenMatchedUpdate(set={"v": "s.v", "t.V": "s.v"}), InvalidOperationError,
             "DELTA_CONFLICT_SET_COLUMN"),
            (merge.whenMatchedDelete("rand() > 0.5"), InvalidPredicateError,
             "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"),
            (table.merge(source, F.col("t.id") == F.floor(F.rand())).whenMatchedDelete(), InvalidPredicateError,
             "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"),
            (table.merge(source, "t.id = s.nope").whenMatchedDelete(), InvalidOperationError,
             "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
            (merge.whenMatchedUpdate(set={"n": "array(1)"}), SchemaMismatchError, "DELTA_FAILED_TO_MERGE_FIELDS"),
            (merge.whenMatchedUpdate(set={"n": "3000000000L"}), ConstraintViolationError,
             "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"),
        ]  # fmt: skip
        for builder, kind, error_class in wrong:
            with pytest.raises(kind) as caught:
                builder.execute()
            assert isinstance(caught.value, DeltaError)
            assert caught.value.error_class == error_class
        with pytest.raises(InvalidOperationError, match=r"Did you mean one of .*t`?\.`?id"):
            merge.whenMatchedDelete("t.idd = 1").execute()
        with pytest.raises(AnalysisException, match="ambiguous"):
            merge.whenMatchedDelete("v = 'a'").execute()
        for call in (lambda: merge.whenMatchedDelete(3), lambda: table.merge("s", "true")):  # type: ignore[arg-type]
            with pytest.raises(TypeError, match=r"(condition|source) is "):
                call()
        with pytest.raises(ValueError, match="set is needed"):
            merge.whenMatchedUpdate("true")
        with pytest.raises(ValueError, match="condition of a merge cannot be None"):
            table.merge(source, None)  # type: ignore[arg-type]
        assert version(table) == 0
        table.alter().setProperties({"delta.appendOnly": "true"})
        with pytest.raises(AppendOnlyTableError):
            merge.whenMatchedDelete().execute()
        insert = table.merge(source, "t.id = s.w + 50").whenNotMatchedInsert(values={"id": "id + 60"})
        assert counts(insert.execute()) == (1, 0, 0, 1)


@pytest.mark.usefixtures("by_text")
class TestClassicBySpark(Merges):
    """On a classic session, with Spark alone; statements are SQL text."""

    engine = "Spark"

    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


@pytest.mark.usefixtures("by_text")
class TestClassicInTasks(Merges):
    """On a classic session, with SQL text; tasks find the rows that match, and the driver joins the two sides."""

    engine = "Arrow in tasks"
    USUAL = ("test_files_beyond_the_keys_of_the_source_are_not_read", "test_c164_c324_c341_ids_and_changes")

    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestClassic(Merges, SparkMerges):
    """On a classic session."""

    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark

    def test_keys_of_a_source_are_its_values_where_they_are_few(self, session: SparkSession) -> None:
        source = session.sql("select col k from values (127), (128), (-128), (-129), (null) v(col)")
        key = Key(Column(("b",), BYTE), ("k",), INTEGER)
        assert _shown(find_keys(source, [key], "UTC")) == (5, "b = b AND b = b AND b IN (-128Y, 127Y)")
        assert _shown(find_keys(source.where("k is null"), [key], "UTC")) == (1, "FALSE")
        assert _shown(find_keys(source.where("k = 0"), [key], "UTC")) == (0, "FALSE")
        few = session.range(0, 1000, 1, 3).selectExpr("cast(id % 50 as int) k")
        assert _shown(find_keys(few, [key], "UTC"))[1].startswith("b >= 0Y AND b <= 49Y AND b IN (0Y, 1Y, 2Y")

    def test_keys_of_a_source_are_ranges_where_they_are_many(self, session: SparkSession) -> None:
        key = Key(Column(("b",), LONG), ("k",), LONG)
        source = session.range(0, 2000, 1, 3).selectExpr("if(id < 1500, id, 1000000 + id * 10) k")
        [rows, shown] = _shown(find_keys(source, [key], "UTC"))
        assert rows == 2000
        assert shown.startswith("(b >= 0L AND b <= 1499L) OR (b >= 1015000L AND ")
        assert shown.endswith(" AND b <= 1019990L)")
        days = Key(Column(("b",), DATE), ("k",), DATE)
        source = session.range(1001).selectExpr("make_date(cast(if(id = 7, 12000, 2000 + id) as int), 1, 1) k")
        assert find_keys(source, [days], "UTC").predicate is None  # a year that Python does not have
        texts = Key(Column(("b",), STRING), ("k",), STRING)
        source = session.range(1500).selectExpr("cast(unhex(hex(65000 + id)) as string) k")
        for rows in (3, 1500):
            assert find_keys(source.where(f"id < {rows}"), [texts], "UTC") == SourceKeys(rows, None)  # no UTF-8

    def test_a_merge_with_new_rows_reads_no_file_between_keys(self, session: SparkSession, tmp_path: Path) -> None:
        """The keys of new rows are far from those of old ones, and most of the table lies between."""
        save(session.range(0, 40_000, 1, 8).selectExpr("id", "0 v"), str(tmp_path))
        for file in tmp_path.glob("*.parquet"):
            if pq.read_table(file)["id"][0].as_py() >= 5000:
                file.unlink()
        table = DeltaTable.forPath(session, str(tmp_path)).alias("t")
        source = session.range(2200).selectExpr("if(id < 2000, id, 100000 + id) id", "1 v").alias("s")
        merge = table.merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
        assert merge.execute().collect() == [(2200, 2000, 0, 200)]

    def test_an_upsert_looks_for_rows_that_match_before_it_keeps_the_source(
        self, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost: SetCost
    ) -> None:
        from pyspark_delta.spark.engine.dml import merge

        plans = []

        def watched(frame: Any, context: Any) -> Any:
            plans.append(frame._jdf.queryExecution().optimizedPlan().toString())
            return change_rows(frame, context)

        change_rows = merge.change_rows
        monkeypatch.setattr(merge, "change_rows", watched)
        cost(session, **SPARK)
        table = make(session, tmp_path, VECTORS)
        rows = [(5, "new"), (25, "new"), (99, "new"), (None, "new")]
        source = session.createDataFrame(rows, "id long, v string")
        upsert = table.merge(source.alias("s"), "t.id = s.id and t.v <> s.v")
        upsert = upsert.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsert(values={"id": "s.id", "v": "s.v"})
        assert counts(upsert.execute()) == (4, 2, 0, 2)
        inserts = table.merge(source.alias("s"), "t.id = s.id").whenNotMatchedInsert(values={"id": "s.id"})
        assert counts(inserts.execute()) == (1, 0, 0, 1)
        assert all("Join LeftSemi" in plan for plan in plans)
        cost(session, **SPARK, broadcast_rows=3)
        assert counts(inserts.execute()) == (1, 0, 0, 1)
        assert "LeftSemi" not in plans[2]
        assert sorted(row[0] for row in content(table) if row[2] == "new" and row[0] is not None) == [5, 25, 99]


def _shown(keys: SourceKeys) -> tuple[int, str]:
    assert keys.predicate is not None
    return keys.rows, to_sql(keys.predicate)


class TestConnect(Merges, SparkMerges):
    """Through Spark Connect, where frames, columns, errors and tasks take another way."""

    USUAL = (
        "test_files_beyond_the_keys_of_the_source_are_not_read",
        "test_columns_of_a_source_that_is_kept",
        "test_c164_c324_c341_ids_and_changes",
        "test_several_rows_that_match_one",
        "test_values_are_computed_for_the_rows_that_clauses_take",
        "test_names_of_a_side_that_are_also_names_of_columns",
        "test_what_cannot_be_told_by_copies_is_computed_early",
        "test_schema_evolution",
        "test_bad_merges",
    )

    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect


class TestConnectBySpark(Merges):
    """Through Spark Connect, with Spark alone."""

    engine = "Spark"
    USUAL = ("test_columns_of_a_source_that_is_kept", "test_c164_c324_c341_ids_and_changes")

    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
