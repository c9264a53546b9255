"""DELETE and UPDATE of a `DeltaTable`, on classic sessions and through Spark Connect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from tests.costs import ENGINES, TASKS, SetCost
from tests.hand_made import PLAIN, HandMade, features, field, metadata
from tests.lengths import FULL

from pyspark_delta import DeltaTable, Table
from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import (
    AppendOnlyTableError,
    CommitConflictError,
    ConcurrentAppendError,
    ConcurrentTransactionError,
    ConstraintViolationError,
    DataFileError,
    InvalidOperationError,
    InvalidOptionError,
    InvalidPredicateError,
    SchemaMismatchError,
)
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.api.builder import IdentityGenerator
from pyspark_delta.spark.conf.cores import cores_of
from pyspark_delta.spark.conf.limits import REEXECUTIONS
from pyspark_delta.spark.engine.dml.target import SparkTarget as Target
from pyspark_delta.spark.engine.write.save import save

VECTORS = {"delta.enableDeletionVectors": "true"}
REWRITE = {"delta.enableDeletionVectors": "false"}
FEED = {"delta.enableChangeDataFeed": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
RANGE = "select id, cast(id % 4 as int) n, concat('v', id) v from range(0, {}, 1, 2)"


def make(session: SparkSession, path: Path, *properties: dict[str, str], rows: int = 40, **more: Any) -> DeltaTable:
    """A table of the ids 0 to `rows`, in two files."""
    options = {name: value for one in properties for name, value in one.items()}
    save(session.sql(RANGE.format(rows)), str(path), options=options, **more)
    return DeltaTable.forPath(session, str(path))


def content(table: DeltaTable, *columns: str) -> list[Any]:
    found = Table.open(table._location).scan(columns=columns or ("id",)).to_arrow().to_pylist()
    return sorted(tuple(row.values()) if columns else row["id"] for row in found)


def _with_times(value: Any) -> Any:
    """Statistics in which a time is the same, however many digits of it are written."""
    if isinstance(value, dict):
        return {name: _with_times(member) for name, member in value.items()}
    is_time = isinstance(value, str) and value[10:11] == "T"
    return datetime.fromisoformat(value) if is_time else value


def all_rows(table: DeltaTable) -> list[str]:
    """As text, in which even NaN is equal to itself."""
    return [str(row) for row in Table.open(table._location).scan().to_arrow().sort_by("id").to_pylist()]


def commit(table: DeltaTable, kind: str) -> list[dict[str, Any]]:
    """The actions of one kind in the newest commit."""
    newest = max(Path(table._location, "_delta_log").glob("*.json"))
    return [action[kind] for action in map(json.loads, newest.read_text().splitlines()) if kind in action]


def version(table: DeltaTable) -> int:
    return Table.open(table._location).version


def row_ids(table: DeltaTable) -> dict[int, tuple[int, int]]:
    plan = plan_scan(Snapshot.load(table._location), ["id"], row_ids=True)
    return {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in read_plan(plan).read_all().to_pylist()}


class Forced:
    """Tests under one engine, on one kind of session."""

    engine = "Arrow in the driver"

    @pytest.fixture(autouse=True)
    def _engine(self, session: SparkSession, cost: SetCost, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
        cost(session, **ENGINES[self.engine])
        with caplog.at_level("INFO", logger="pyspark_delta.engines"):
            yield
        logged = [
            record.args for record in caplog.get_records("call") if record.name.startswith("pyspark_delta.engines")
        ]
        ran = {given[1] for given in logged if isinstance(given, tuple) and given[0] in ("DELETE", "UPDATE")}
        assert ran <= {self.engine, "Spark", "none"} or self.engine == "Arrow in the driver"


class RowChanges(Forced):
    """What every engine does; each runs them all."""

    """The tests; a session of each kind runs them all."""

    @pytest.mark.parametrize("way", [VECTORS, REWRITE], ids=["vectors", "rewrite"])
    def test_c321_rows_keep_their_ids_in_a_table_and_from_a_source_with_columns_of_that_name(
        self, session: SparkSession, tmp_path: Path, way: dict[str, str]
    ) -> None:
        options = {**way, **ROW_IDS, **FEED, "delta.columnMapping.mode": "name"}
        rows = "select id, cast(id as string) _row_id, 'v' _Row_Commit_Version from range(0, 6, 1, 2)"
        save(session.sql(rows), str(tmp_path), options=options)
        table = DeltaTable.forPath(session, str(tmp_path))
        assert table.update("_row_id = '1'", {"_row_id": "'one'"}).collect() == [(1,)]
        assert table.delete("id = 5").collect() == [(1,)]
        source = session.sql("select id + 2 id, 'two' _row_id from range(1)")
        merge = table.alias("t").merge(source.alias("s"), "s.id = t.id and s._row_id <> t._row_id")
        merge.whenMatchedUpdate(set={"_row_id": "s._row_id"}).execute()
        table.optimize().executeCompaction()
        replaced = session.sql("select 4L id, 'four' _row_id, 'v' _row_commit_version")
        save(replaced, str(tmp_path), "overwrite", options={"replaceWhere": "id = 4"})
        assert content(table, "id", "_row_id") == [(0, "0"), (1, "one"), (2, "two"), (3, "3"), (4, "four")]
        Table.open(tmp_path).alter().rename_column("_row_id", "a").rename_column("_row_commit_version", "b")
        found = row_ids(table)
        assert found.pop(4)[0] > 5
        assert found == {0: (0, 0), 1: (1, 1), 2: (2, 3), 3: (3, 0)}

    # -------------------------------------------------------------------------------------------------- vectors
    def test_c161_c252_c256_c413_vectors_are_merged_and_share_a_file(
        self, session: SparkSession, tmp_path: Path
    ) -> None:
        table = make(session, tmp_path, VECTORS)
        [before] = [{a["path"]: a for a in commit(table, "add")}]
        assert table.delete("id % 10 = 3").collect() == [(4,)]
        first = {a["path"]: a for a in commit(table, "add")}
        assert first.keys() == before.keys()
        assert len({a["deletionVector"]["pathOrInlineDv"] for a in first.values()}) == 1
        assert [a["deletionVector"]["cardinality"] for a in first.values()] == [2, 2]
        for path, add in first.items():
            stats, old = (json.loads(a["stats"]) for a in (add, before[path]))
            assert stats["tightBounds"] is False
            assert {**stats, "tightBounds": True} == {**old, "tightBounds": True}
            assert (add["size"], add["modificationTime"]) == (before[path]["size"], before[path]["modificationTime"])
        assert [("deletionVector" in r) for r in commit(table, "remove")] == [False, False]
        assert table.delete(F.col("id").between(0, 3)).collect() == [(3,)]
        [add], [remove] = commit(table, "add"), commit(table, "remove")
        assert add["deletionVector"]["cardinality"] == 5
        assert remove["deletionVector"] == first[add["path"]]["deletionVector"]
        metrics = commit(table, "commitInfo")[0]["operationMetrics"]
        assert (metrics["numDeletionVectorsUpdated"], metrics["numRemovedFiles"]) == ("1", "0")
        assert content(table) == [i for i in range(4, 40) if i % 10 != 3]

    @pytest.mark.parametrize("mapping", ["none", "name"])
    def test_c053_c256_c413_statistics_of_a_checkpoint_that_has_them_as_columns_stay(
        self, session: SparkSession, tmp_path: Path, mapping: str
    ) -> None:
        columns = (
            "cast(id as byte) b", "cast(id as short) h", "id / 3 f", "cast(id as float) g", "id % 2 = 0 q",
            "cast(id as decimal(38, 3)) + 1.125 e", "cast(id as decimal(9, 2)) k", "date '2024-01-01' + int(id) day",
            "timestamp_micros(id * 1000000 + 1000) at", "cast(timestamp_micros(id * 1000) as timestamp_ntz) ntz",
            "named_struct('x', id, 'z', concat('\"ü', id)) s", "if(id % 3 = 0, null, id) m", "array(id) a",
        )  # fmt: skip
        rows = session.sql(RANGE.format(40)).selectExpr("*", *columns)
        form = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
        save(rows, str(tmp_path), options={**VECTORS, **form, "delta.columnMapping.mode": mapping})
        table = DeltaTable.forPath(session, str(tmp_path))
        before = {a["path"]: json.loads(a["stats"]) for a in commit(table, "add")}
        assert [len(stats["minValues"]) for stats in before.values()] == [14, 14]  # none of booleans and arrays
        changes = {
            "delete": lambda: table.delete("id % 10 = 3"),
            "update": lambda: table.update("id % 10 = 4", {"v": "concat(v, 'x')"}),
            "merge": lambda: table.alias("t").merge(session.range(5, 40, 10).alias("s"), "t.id = s.id")
            .whenMatchedDelete().execute(),
        }  # fmt: skip
        for change in changes.values():
            Table.open(str(tmp_path)).checkpoint()
            change()
            marked = [a for a in commit(table, "add") if "deletionVector" in a]
            assert {a["path"] for a in marked} == before.keys()
            for add in marked:
                expected = {**before[add["path"]], "tightBounds": False}
                assert _with_times(json.loads(add["stats"])) == _with_times(expected)
        assert len(plan_scan(Snapshot.load(str(tmp_path)), where="id < 3 and s.z < 'a'").files) == 1
        assert plan_scan(Snapshot.load(str(tmp_path)), where="at > timestamp '2025-01-01'").files.num_rows == 0

    def test_c252_files_of_which_all_rows_go_are_removed(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path, VECTORS)
        assert table.delete("id < 19 or id = 25").collect() == [(20,)]
        assert table.delete("v = 'v19'").collect() == [(1,)]
        assert (len(commit(table, "remove")), commit(table, "add")) == (1, [])
        assert content(table) == [i for i in range(20, 40) if i != 25]
        table.alter().setProperties(REWRITE)
        table.delete("id = 30")
        [add] = commit(table, "add")
        assert "deletionVector" not in add
        assert content(table) == [i for i in range(20, 40) if i not in (25, 30)]

    def test_c252_files_of_partitions_with_any_name_are_written_anew(
        self, session: SparkSession, tmp_path: Path
    ) -> None:
        rows = session.range(0, 8, 1, 2).selectExpr("id", "id % 2 as `.p`", "id % 3 as `q.r`")
        save(rows, str(tmp_path), options=REWRITE, partition_by=[".p", "q.r"])
        table = DeltaTable.forPath(session, str(tmp_path))
        assert table.delete("id in (0, 5)").collect() == [(2,)]
        assert table.update("id = 7", {"id": "id + 1"}).collect() == [(1,)]
        assert content(table, "id", ".p", "q.r") == sorted((i + i // 7, i % 2, i % 3) for i in (1, 2, 3, 4, 6, 7))

    # ----------------------------------------------------------------------------------------------- new values
    @pytest.mark.parametrize("way", [VECTORS, REWRITE])
    def test_update_any_column(self, session: SparkSession, tmp_path: Path, way: dict[str, str]) -> None:
        table = make(session, tmp_path, way, partition_by=["n"])
        expected = {i: (i % 4, f"v{i}") for i in range(40)}
        assert table.update("id < 6 and n = 1", {"N": "3", "`v`": F.lit("new")}).collect() == [(2,)]
        expected.update(dict.fromkeys((1, 5), (3, "new")))
        assert table.alias("t").update(set={"t.v": F.concat("v", F.lit("."))}).collect() == [(40,)]
        expected = {i: (n, v + ".") for i, (n, v) in expected.items()}
        assert table.update(F.col("id") == 7, {"v": "null", "n": "cast('2' as bigint)"}).collect() == [(1,)]
        expected[7] = (2, None)
        assert content(table, "id", "n", "v") == [(i, *values) for i, values in sorted(expected.items())]
        metrics = commit(table, "commitInfo")[0]["operationMetrics"]
        [removed] = commit(table, "remove")
        [before] = [add for add in adds(str(tmp_path), 2) if add["path"] == removed["path"]]
        stayed = json.loads(before["stats"])["numRecords"] - 1
        assert stayed > 1
        assert (metrics["numUpdatedRows"], metrics["numCopiedRows"]) == ("1", "0" if way is VECTORS else str(stayed))
        assert metrics["numRemovedFiles"] == "1"  # though it comes back with a vector, unlike for DELETE
        assert metrics["numAddedFiles"] == ("1" if way is VECTORS else "2")  # of new rows, and of those that stay

    def test_columns_may_be_named_with_the_alias_of_the_table(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path, VECTORS).alias("t")
        assert table.update(F.col("t.id") < 2, {"t.v": F.col("t.n")}).collect() == [(2,)]
        assert table.delete(F.expr("t.id = 1")).collect() == [(1,)]
        [predicate] = json.loads(commit(table, "commitInfo")[0]["operationParameters"]["predicate"])
        assert predicate.startswith("(t.id = ") or predicate == "t.id = 1"  # the latter is the text of a statement
        assert content(table, "id", "v")[:2] == [(0, "0"), (2, "v2")]

    def test_nan_is_found_in_what_was_written_before(self, session: SparkSession, tmp_path: Path) -> None:
        rows = "select id, if(id % 2 = 1, double('NaN'), 8.0D) f from range(0, 6, 1, 1)"
        save(session.sql(rows), str(tmp_path), options=REWRITE)
        table = DeltaTable.forPath(session, str(tmp_path))
        assert table.update("f > 9 and id > 2", {"f": "f + 1"}).collect() == [(2,)]
        assert table.delete("f = double('NaN')").collect() == [(3,)]
        assert content(table) == [0, 2, 4]

    def test_c392_default_is_the_default_of_the_column(self, session: SparkSession, tmp_path: Path) -> None:
        rows = session.sql("select id, 1 n, 'x' v from range(3)")
        save(rows, str(tmp_path), options={"delta.feature.allowColumnDefaults": "supported"})
        table = DeltaTable.forPath(session, str(tmp_path)).alias("t")
        table.alter().setDefault("n", "3 + 4")
        table.update("id = 0", {"n": "default", "t.v": " DEFAULT "})
        table.update("id = 1", {"n": F.col("default"), "v": F.lit("default")})
        table.update("id = 0", {"n": F.expr("Default")})
        merge = table.merge(session.range(2, 4).alias("s"), "t.id = s.id").whenMatchedUpdate(set={"n": "default"})
        merge.whenNotMatchedInsert(values={"id": "s.id", "t.n": "default", "v": "default"}).execute()
        assert content(table, "id", "n", "v") == [(0, 7, None), (1, 7, "default"), (2, 7, "x"), (3, 7, None)]
        table.alias("default").update("id = 3", {"n": F.col("default.id")})
        save(
            session.sql("select 4L id, 5 n, 'y' v, 6 default"), str(tmp_path), "append", options={"mergeSchema": "true"}
        )
        table.update("id = 4", {"n": "default"})  # the word is the name of a column now
        assert content(table, "id", "n")[3:] == [(3, 3), (4, 6)]

    # ------------------------------------------------------------------------------------- row ids and the feed
    @pytest.mark.parametrize("way", [VECTORS, REWRITE])
    def test_c321_c324_c326_c338_c339_c340_c341_rows_keep_their_ids(
        self, session: SparkSession, tmp_path: Path, way: dict[str, str]
    ) -> None:
        table = make(session, tmp_path, way, ROW_IDS)
        before = row_ids(table)
        table.update("n = 1", {"v": "'x'"})
        table.delete("id in (5, 6)")
        after = row_ids(table)
        assert {i: row for i, (row, _) in after.items()} == {i: r for i, (r, _) in before.items() if i not in (5, 6)}
        assert {i for i, (_, changed) in after.items() if changed == 1} == {i for i in after if i % 4 == 1}
        assert {changed for i, (_, changed) in after.items() if i % 4 != 1} == {0}
        assert commit(table, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}

    def test_c162_c167_c169_change_data_files_where_readers_need_them(
        self, session: SparkSession, tmp_path: Path
    ) -> None:
        rewritten, marked = make(session, tmp_path / "r", REWRITE, FEED), make(session, tmp_path / "m", VECTORS, FEED)
        for table in (rewritten, marked):
            table.update("id in (1, 30)", {"v": "'new'"})
            changes = [row for cdc in commit(table, "cdc") for row in read(table, cdc)]
            assert sorted((r["id"], r["_change_type"], r["v"]) for r in changes) == [
                (1, "update_postimage", "new"),
                (1, "update_preimage", "v1"),
                (30, "update_postimage", "new"),
                (30, "update_preimage", "v30"),
            ]
            table.delete("id in (2, 3) or id >= 20")  # all rows of a file, and a part of others
            changes = [row for cdc in commit(table, "cdc") for row in read(table, cdc)]
            gone = (2, 3, *range(20, 40)) if table is rewritten else ()
            assert sorted((r["id"], r["_change_type"]) for r in changes) == [(i, "delete") for i in gone]
            table.update({"v": "'all'"})  # no row stays in its file
            changes = [row["_change_type"] for cdc in commit(table, "cdc") for row in read(table, cdc)]
            assert changes.count("update_preimage") == changes.count("update_postimage") == len(content(table))
            before = set(Path(table._location, "_change_data").iterdir())
            table.delete("v is not null and length(v) > 0")  # which no statistics decide, and every row meets
            assert (commit(table, "cdc"), content(table)) == ([], [])
            assert set(Path(table._location, "_change_data").iterdir()) == before

    # ------------------------------------------------------------------------------------------------ conflicts
    def test_run_again_after_a_conflict(self, session: SparkSession, tmp_path: Path) -> None:
        table, path = make(session, tmp_path, VECTORS), str(tmp_path)
        other = DeltaTable.forPath(session, path)
        meanwhile = iter(
            [lambda: save(session.sql("select 50L id, 3 n, 'v50' v"), path, "append"), lambda: other.delete("id = 3")]
        )

        def once(snapshot: Snapshot) -> Snapshot:
            next(meanwhile, lambda: None)()
            return snapshot

        racing = Racing(table, once)
        assert racing.delete("n = 3").collect() == [(10,)]
        assert content(table) == [i for i in range(40) if i % 4 != 3]
        meanwhile = iter([lambda: save(session.sql("select 51L id, 2 n, 'v' v"), path, "append")])
        session.conf.set(REEXECUTIONS, " 0 ")
        try:
            with pytest.raises(ConcurrentAppendError, match="n = 2"):
                Racing(table, once).update("n = 2", {"v": "'y'"})
            for wrong in ("often", "-1", "\N{SUPERSCRIPT TWO}"):
                session.conf.set(REEXECUTIONS, wrong)
                with pytest.raises(InvalidOptionError, match="a number of times"):
                    table.delete("n = 3")
        finally:
            session.conf.unset(REEXECUTIONS)
        named = {add["path"] for v in range(version(table) + 1) for add in adds(path, v)}
        assert {f.name for f in tmp_path.glob("*.parquet")} == named
        vectors = {
            add["deletionVector"]["pathOrInlineDv"]
            for v in range(version(table) + 1)
            for add in adds(path, v)
            if "deletionVector" in add
        }
        assert len(list(tmp_path.glob("deletion_vector_*.bin"))) == len(vectors) > 0

    # ----------------------------------------------------------------------------------------------------- plans
    @pytest.mark.parametrize("way", [VECTORS, REWRITE])
    def test_a_plan_changes_nothing_until_it_is_executed(
        self, session: SparkSession, tmp_path: Path, way: dict[str, str]
    ) -> None:
        table = make(session, tmp_path, way)
        files = set(tmp_path.rglob("*"))
        plan = table.update("id = 1 or id >= 20", {"v": "'x'"}, plan=True)
        assert plan.facts() == {
            "operation": "UPDATE",
            "version": 0,
            "method": "deletion vectors" if way is VECTORS else "rewrite of files",
            "rows_affected": 21,
            "rows_written": 21,
            "rows_copied": 0 if way is VECTORS else 19,
            "files_removed": 1,
            "files_changed": 1,
            "files_untouched": 0,
            "bytes_removed": plan.bytes_removed,
            "bytes_rewritten": 0 if way is VECTORS else plan.bytes_rewritten,
            "conflicts_with": "commits that add rows that may match id = 1L OR id >= 20L, or remove one of the 1 files "
            "that were read",
            "engine": self.engine,
            "engine_reason": "",
        }
        assert "files untouched" in str(plan)
        assert set(tmp_path.rglob("*")) == files
        other = table.delete("id = 0", plan=True)
        assert plan.execute().collect() == [(21,)]
        with pytest.raises(CommitConflictError, match="version 0"):
            other.execute()
        nothing = table.delete("id < 0", plan=True)
        assert (nothing.method, nothing.conflicts_with) == ("nothing", "commits that add rows that may match id < 0L")
        assert "id &lt; 0L" in nothing._repr_html_()
        assert table.delete("length(v) > 0", plan=True).method == "whole files"  # whose rows were looked at
        assert table.delete(plan=True).method == "whole files"
        assert version(table) == 1


class Searches(Forced):
    """What Arrow does in the driver and in tasks."""

    @pytest.mark.since("4.0")  # for VARIANT
    def test_rows_that_stay_are_as_they_were(self, session: SparkSession, tmp_path: Path) -> None:
        """Of all types, and in partitions of values that are not their own text."""
        rows = (
            "select id, named_struct('x', id, 'y', array(map('k', cast(null as string)))) s, "
            "cast('1500-03-01' as date) d, timestamp'0001-01-01 01:02:03.000004' t, timestamp_ntz'9999-12-31' u, "
            "cast('nan' as double) f, cast(id as decimal(38, 18)) e, cast('' as binary) b, parse_json('[1, {}]') j, "
            "cast(null as void) v, "
            "timestamp_seconds(id % 3 + 0.25) p, if(id % 2 = 0, null, 'a b/c=ü%') q, cast(id % 2 as decimal(9, 4)) r "
            "from range(0, 60, 1, 3)"
        )
        properties = {**REWRITE, **ROW_IDS, "delta.randomizeFilePrefixes": "true"}
        zone = session.conf.get("spark.sql.session.timeZone")
        session.conf.set("spark.sql.session.timeZone", "America/New_York")
        try:
            save(session.sql(rows), str(tmp_path), options=properties, partition_by=["p", "q", "r"])
            table = DeltaTable.forPath(session, str(tmp_path))
            before, ids = all_rows(table), row_ids(table)
            known = [dict(sorted(add["partitionValues"].items())) for add in commit(table, "add")]
            table.delete("id % 30 between 0 and 5")
        finally:
            session.conf.set("spark.sql.session.timeZone", zone or "UTC")
        assert all_rows(table) == [text for i, text in enumerate(before) if i % 30 > 5]
        assert row_ids(table) == {i: known for i, known in ids.items() if i % 30 > 5}
        assert "numCopiedRows': '48'" in str(commit(table, "commitInfo")[0]["operationMetrics"])
        added = [dict(sorted(add["partitionValues"].items())) for add in commit(table, "add")]
        assert all(values in known for values in added)
        assert len(added) == len({str(values) for values in added}) == 6  # the files of a partition become one

    def test_plain_conditions_find_the_rows_that_spark_finds(self, session: SparkSession, tmp_path: Path) -> None:
        rows = session.sql(
            "select id, if(id % 7 = 0, null, id % 5) n, if(id % 4 = 0, cast('nan' as double), id / 3 - 5) f, "
            "if(id % 6 = 0, null, concat('v', id % 9)) v, cast(id % 10 as decimal(12, 2)) e, id % 3 p, "
            "date'2024-02-28' + cast(id % 4 as int) d, timestamp'2024-03-01 00:00:00' + make_dt_interval(0, id) t, "
            "named_struct('x', id % 8) s, id % 2 = 0 b from range(0, 100, 1, 4)"
        )
        save(rows, str(tmp_path), options=VECTORS, partition_by=["p"])
        table = DeltaTable.forPath(session, str(tmp_path))
        table.delete("id % 10 = 1")  # so that there are vectors, and positions are not row numbers
        found = session.read.format("delta").load(str(tmp_path))
        conditions = [
            *("id = 42", "id in (3, 11, 77, 500)", "n in (1, null)", "n not in (1, 2)", "n is null", "not n <=> null"),
            *("f > 9", "f = cast('nan' as double)", "f <= 0 or n = 3", "not (f < 2 and n > 1)", "f in (-5.0, -4D)"),
            *("v like 'v1%'", "v between 'v2' and 'v4'", "v <> 'v3' and e >= 3.5", "e = 3", "d = '2024-02-29'"),
            *("t >= '2024-03-03 05:00:00'", "t < timestamp'2024-03-02'", "s.x = 3 or s.x is null", "b", "not b"),
            *("p = 1 and n = 2", "p = 2 or id < 5", "id > n", "n = e", "id % 7 = 3", "upper(v) = 'V3'", "id + 1 = 8"),
        ]
        if self.engine == "Arrow in tasks" and not FULL:  # they evaluate conditions as the driver does
            conditions = conditions[::4]
        counts = [(condition, found.where(condition).count()) for condition in conditions]
        assert [(c, table.delete(c, plan=True).rows_affected) for c in conditions] == counts
        assert table.delete("n = 3 and v <> 'v3'").collect() == [(found.where("n = 3 and v <> 'v3'").count(),)]
        left = session.read.format("delta").load(str(tmp_path))
        assert sorted(left.select("id").collect()) == sorted(
            found.where("not coalesce(n = 3 and v <> 'v3', false)").select("id").collect()
        )


class Others(Forced):
    """What is the same under every engine, or concerns one of them."""

    def test_nothing_is_read_where_statistics_decide(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path, VECTORS, partition_by=["n"])
        for file in tmp_path.rglob("*.parquet"):
            file.unlink()
        assert table.delete("n = 2").collect() == [(10,)]
        assert table.delete("id > 100").collect() == [(0,)]
        assert version(table) == 1
        assert table.delete().collect() == [(30,)]
        assert commit(table, "commitInfo")[0]["operationParameters"] == {"predicate": '["true"]'}

    def test_files_are_shared_by_all_cores(self, session: SparkSession, tmp_path: Path) -> None:
        tasks = session.range(100_000).selectExpr("spark_partition_id()").distinct().count()
        assert cores_of(session) == cores_of(session) == tasks

    def test_large_files_are_rewritten_in_parts(self, session: SparkSession, tmp_path: Path, cost: SetCost) -> None:
        cost(session, **TASKS, task_bytes=4000)
        made = HandMade(tmp_path / "t")
        made.commit(0, PLAIN, metadata(field("id")))
        made.commit(1, made.data("a.parquet", {"id": range(5000)}, row_group_size=500))
        table = DeltaTable.forPath(session, str(made.path))
        table.delete("id % 100 = 7")
        assert content(table) == [i for i in range(5000) if i % 100 != 7]
        assert len(commit(table, "remove")) == 1
        assert len(commit(table, "add")) > 1

    def test_an_update_by_a_plain_condition_reads_only_files_that_have_such_rows(
        self, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read, rows = [], Target.rows
        monkeypatch.setattr(Target, "rows", lambda target, files: read.append(files.num_rows) or rows(target, files))
        table = make(session, tmp_path, VECTORS)
        assert table.update("v in ('v1', 'v30') and n <> 1", {"n": "length(md5('a')) - 25"}).collect() == [(1,)]
        assert table.update("initcap(v) = 'V1'", {"n": "8"}).collect() == [(1,)]
        assert table.update("v = 'v25x'", {"n": "length(md5('a'))"}).collect() == [(0,)]
        assert read == [1, 3]
        assert content(table, "n").count((7,)) == content(table, "n").count((8,)) == 1

    def test_a_plain_condition_reads_nothing_through_spark(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path, VECTORS)
        file = next(tmp_path.glob("*.parquet"))
        file.write_bytes(file.read_bytes()[:100])
        with pytest.raises(DataFileError, match=file.name):
            table.delete("v = 'v1' or v = 'v30'")

    def test_parts_of_structs(self, session: SparkSession, tmp_path: Path) -> None:
        select = (
            "select id, if(id = 1, null, named_struct('a', id, 'b', named_struct('c', 1, 'd', 'x'))) s from range(3)"
        )
        save(session.sql(select), str(tmp_path), options=VECTORS)
        table = DeltaTable.forPath(session, str(tmp_path))
        table.update("id > 0", {"s.b.c": "s.b.c + 1", "s.a": "7"})
        assert [
            row["s"] for row in sorted(Table.open(str(tmp_path)).scan().to_arrow().to_pylist(), key=lambda r: r["id"])
        ] == [
            {"a": 0, "b": {"c": 1, "d": "x"}},
            {"a": 7, "b": {"c": None, "d": None}},
            {"a": 7, "b": {"c": 2, "d": "x"}},
        ]
        table.update("id = 2", {"s": "named_struct('b', named_struct('D', 5, 'C', '12'), 'A', 1.0)"})
        assert {"a": 1, "b": {"c": 12, "d": "5"}} in Table.open(str(tmp_path)).scan(columns=["s"]).to_arrow()[
            "s"
        ].to_pylist()
        table.alias("s").update("id = 2", {"s.a": "5", "s.s.b.d": "'y'"})  # its alias, or its column
        assert {"a": 5, "b": {"c": 12, "d": "y"}} in [s for _, s in content(table, "id", "s")]
        with pytest.raises(ConstraintViolationError, match="ten") as unfit:
            table.update(set={"s.a": "'7'", "s.b.c": "'ten'"})
        assert unfit.value.error_class == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
        with pytest.raises(
            InvalidOperationError, match=r"'s\.b\.c' two values, one of them as a part of 's\.b'"
        ) as caught:
            table.update(set={"s.b": "null", "s.b.c": "1"})
        assert caught.value.error_class == "DELTA_CONFLICT_SET_COLUMN"

    def test_parts_of_collections_are_cast_or_refused(self, session: SparkSession, tmp_path: Path) -> None:
        select = "select id, map('a', 1) m, array(named_struct('k', 'x', 'v', array(1Y))) l from range(2)"
        save(session.sql(select), str(tmp_path), options={**VECTORS, **FEED})
        table = DeltaTable.forPath(session, str(tmp_path))
        table.update(
            "id = 1", {"m": "map(1, '5', 2, null)", "l": "array(null, named_struct('V', array('7', null), 'K', id))"}
        )
        [changed] = Table.open(str(tmp_path)).scan(where="id = 1").to_arrow().to_pylist()
        assert changed["m"] == [("1", 5), ("2", None)]
        assert changed["l"] == [None, {"k": "1", "v": [7, None]}]
        bad = ({"m": "map('a', 'x')"}, "x"), ({"l": "array(named_struct('k', 'x', 'v', array(id * 300)))"}, "300")
        for new, shown in bad:
            with pytest.raises(ConstraintViolationError, match=shown) as caught:
                table.update("id = 1", new)
            assert caught.value.error_class == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
        assert table.update("id = 0", bad[1][0]).collect() == [(1,)]
        with pytest.raises(AnalysisException, match="cannot cast"):  # also where no row is concerned
            table.update("id > 100", {"id": "current_date()"})
        for new, shown in (
            ({"l": "array(named_struct('k', 'x', 'v', null, 'z', 1))"}, r"l\.element\.z"),
            ({"m": "array(1)"}, "a different kind of type"),
            ({"l": "array(named_struct('k', 'x'))"}, r"lacks l\.element\.v"),
        ):
            with pytest.raises(SchemaMismatchError, match=shown):
                table.update(set=new)

    @pytest.mark.since("4.0")
    def test_values_become_variants_and_variants_values(self, session: SparkSession, tmp_path: Path) -> None:
        rows = session.sql("select 1 id, parse_json('5') v, 0 n")
        save(rows, str(tmp_path / "t"))
        table = DeltaTable.forPath(session, str(tmp_path / "t"))
        table.update(set={"n": "v", "v": "id + 6"})
        stored = session.read.format("delta").load(str(tmp_path / "t"))
        assert stored.selectExpr("n", "to_json(v)").collect() == [(5, "7")]

    def test_c396_rules_hold(self, session: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path)
        DeltaTable.create(session).location(path).addColumn(
            "id", "bigint", generatedByDefaultAs=IdentityGenerator()
        ).addColumn("n", "int", nullable=False).addColumn("twice", "bigint", generatedAlwaysAs="n * 2L").addColumn(
            "small", "tinyint"
        ).property("delta.constraints.positive", "n > 0").execute()
        save(session.sql("select id, cast(id + 1 as int) n from range(5)"), path, "append")
        table = DeltaTable.forPath(session, path)
        table.update("id = 2", {"n": "30"})
        assert content(table, "id", "twice") == [(0, 2), (1, 4), (2, 60), (3, 8), (4, 10)]
        for given, error in (
            ({"n": "n - 1"}, "positive"),
            ({"n": "null"}, "n"),
            ({"twice": "5L"}, "twice"),
            ({"small": "300"}, "small"),
        ):
            with pytest.raises(ConstraintViolationError, match=error):
                table.update(set=given)
        table.update("id = 0", {"n": "9", "twice": "18"})
        with pytest.raises(InvalidOperationError, match="identity"):
            table.update(set={"id": "1"})
        assert version(table) == 3
        identity = Table.open(path).schema.fields[0].metadata
        assert (identity["delta.identity.start"], identity["delta.identity.step"]) == (1, 1)

    def test_refused_before_anything_is_written(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path, VECTORS)
        files = set(tmp_path.rglob("*"))
        conditions: list[tuple[str | Column, type[Exception], str]] = [
            ("idd = 1", AnalysisException, "`id`"),
            ("id +", ParseException, "id"),
            ("v", AnalysisException, "BOOL"),
            ("rand() > 0.5", InvalidPredicateError, "rand"),
            (F.rand() > 0.5, InvalidPredicateError, "deterministic"),
            (F.expr("RAND() > 0.5"), InvalidPredicateError, "deterministic"),
        ]
        for condition, error, match in conditions:
            with pytest.raises(error, match=match):
                table.delete(condition)
            with pytest.raises(error, match=match):
                table.update(condition, {"v": "'x'"})
        values: list[tuple[dict[Any, Any], type[Exception], str]] = [
            ({"idd": "1"}, InvalidOperationError, "'id'"),
            ({"v": "idd"}, AnalysisException, "`id`"),
            ({"n": "array(1)"}, SchemaMismatchError, "n"),
            ({}, ValueError, "set needs at least one column"),
            ({1: "1"}, TypeError, "set takes the names of columns as str, found int 1"),
            ({"t": "1"}, InvalidOperationError, "no column 't'"),
            ({"v": "'x'", "V": "'y'"}, InvalidOperationError, "two values"),
        ]
        for given, error, match in values:
            with pytest.raises(error, match=match):
                table.alias("t").update("id = 1", given)
        with pytest.raises(ValueError, match="set is needed"):
            table.update("id = 1")
        with pytest.raises(TypeError, match="condition is SQL text or a Column, found int 1"):
            table.delete(1)  # type: ignore[arg-type]
        table.alter().setProperties({"delta.appendOnly": "true"})
        for change in (lambda: table.delete("id = 1"), lambda: table.update(set={"v": "'x'"})):
            with pytest.raises(AppendOnlyTableError, match="appendOnly"):
                change()
        others = [{f for f in found if "_delta_log" not in f.parts} for found in (files, tmp_path.rglob("*"))]
        assert others[0] == others[1]
        assert version(table) == 1


@pytest.mark.usefixtures("by_text")
class TestClassicInTasks(RowChanges, Searches):
    """On a classic session, with Arrow in tasks; statements are SQL text."""

    engine = "Arrow in tasks"
    USUAL = (
        "test_c161_c252_c256_c413_vectors_are_merged_and_share_a_file",
        "test_c321_c324_c326_c338_c339_c340_c341_rows_keep_their_ids",
        "test_c162_c167_c169_change_data_files_where_readers_need_them",
        "test_run_again_after_a_conflict",
        "test_a_plan_changes_nothing_until_it_is_executed",
        "test_rows_that_stay_are_as_they_were",
        "test_plain_conditions_find_the_rows_that_spark_finds",
    )

    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


@pytest.mark.usefixtures("by_text")
class TestClassicBySpark(RowChanges):
    """On a classic session, with Spark alone; statements are SQL text."""

    engine = "Spark"

    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestClassic(RowChanges, Searches, Others):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark

    def test_subqueries_and_any_expression(self, session: SparkSession, tmp_path: Path) -> None:
        table = make(session, tmp_path, VECTORS)
        session.range(3).createOrReplaceTempView("three")
        changing = F.udf(lambda _: True, "boolean").asNondeterministic()
        with pytest.raises(InvalidPredicateError, match="a part can differ"):
            table.delete(changing("id"))
        assert table.delete("id in (select id + 1 from three)").collect() == [(3,)]
        assert table.update(
            "sha2(v, 256) like 'a%' or aggregate(array(id), 0L, (a, x) -> a + x) = 9", {"n": "-1"}
        ).collect()
        assert table.delete("n = -1").collect()[0][0] >= 1
        assert {1, 2, 3, 9}.isdisjoint(content(table))

    def test_rows_that_nobody_counts_go_without_a_number(self, session: SparkSession, tmp_path: Path) -> None:
        made = HandMade(tmp_path / "t")
        made.commit(0, features("appendOnly", reader=[]), metadata(field("id"), field("p", "string"), partition=["p"]))
        made.commit(1, *(made.data(f"{p}.parquet", {"id": [1, 2]}, {"p": p}) for p in "ab"))
        table = DeltaTable.forPath(session, str(made.path))
        assert table.delete("p = 'a'", plan=True).rows_affected == -1
        assert table.delete("p = 'a'").collect() == [(-1,)]
        info = commit(table, "commitInfo")[0]
        assert "numDeletedRows" not in info["operationMetrics"]
        assert "tags" not in info  # which are about row ids
        for nothing in (table.delete("id % 50 = 49"), table.update("id % 50 = 49", {"id": "0"})):
            assert nothing.collect() == [(0,)]
        assert (version(table), content(table)) == (2, [1, 2])

    def test_c180_a_statement_of_a_named_application_has_its_effect_once(
        self, delta_spark: SparkSession, tmp_path: Path
    ) -> None:
        session, prefix = delta_spark.newSession(), "spark.databricks.delta."
        table = make(session, tmp_path, REWRITE, FEED)
        for name, value in {"write.txnAppId": "job", "write.txnVersion": "5", "commitInfo.userMetadata": "x"}.items():
            session.conf.set(prefix + name, value)
        assert table.delete("id = 1").collect() == [(1,)]
        assert [(t["appId"], t["version"]) for t in commit(table, "txn")] == [("job", 5)]
        assert commit(table, "commitInfo")[0]["userMetadata"] == "x"
        assert table.delete("id = 2").collect() == [(0,)]
        assert table.update("id = 2", {"v": "'x'"}).collect() == [(0,)]
        source = session.sql("select 2L as id").alias("s")
        merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedDelete()
        assert merge.execute().collect() == [(0, 0, 0, 0)]
        assert version(table) == 1
        session.conf.set(f"{prefix}write.txnVersion", "6")
        other = {"txnAppId": "job", "txnVersion": 6}

        def meanwhile(snapshot: Snapshot) -> Snapshot:
            save(session.sql("select 50L id, 3 n, 'v50' v"), str(tmp_path), "append", options=other)
            return snapshot

        files = set(tmp_path.rglob("*.parquet"))
        with pytest.raises(ConcurrentTransactionError):  # and not run again, as after other conflicts
            Racing(table, meanwhile).delete("id = 2")
        assert len(set(tmp_path.rglob("*.parquet")) - files) == 1  # the winner's
        assert (version(table), 2 in content(table)) == (2, True)
        for number, deleted in (("7", 2), ("7", 0)):
            session.conf.set(f"{prefix}write.txnVersion", number)
            session.conf.set(f"{prefix}write.txnVersion.autoReset.enabled", "true")
            assert table.delete("id in (2, 3)").collect() == [(deleted,)]
            assert session.conf.get(f"{prefix}write.txnVersion", None) is None

    def test_c168_a_protocol_without_the_feature_has_no_change_data_files(
        self, session: SparkSession, tmp_path: Path
    ) -> None:
        made = HandMade(tmp_path / "t")
        configuration = {**FEED, "delta.appendOnly": "true"}  # which means nothing either
        made.commit(0, features("invariants", reader=[]), metadata(field("id"), configuration=configuration))
        made.commit(1, made.data("a.parquet", {"id": [1, 2]}))
        table = DeltaTable.forPath(session, str(made.path))
        table.delete("id = 1")
        table.update("id = 2", {"id": "3"})
        save(session.sql("select 4L id"), str(made.path), "overwrite", options={"replaceWhere": "id = 4"})
        assert (version(table), content(table)) == (4, [3, 4])
        assert not (made.path / "_change_data").exists()


class TestConnectInTasks(Searches):
    engine = "Arrow in tasks"
    USUAL = ("test_rows_that_stay_are_as_they_were",)

    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect


class TestConnect(RowChanges, Searches, Others):
    """Through Spark Connect, where frames, columns, errors and tasks take another way."""

    USUAL = (
        "test_c161_c252_c256_c413_vectors_are_merged_and_share_a_file",
        "test_update_any_column",
        "test_c392_default_is_the_default_of_the_column",
        "test_c321_c324_c326_c338_c339_c340_c341_rows_keep_their_ids",
        "test_c162_c167_c169_change_data_files_where_readers_need_them",
        "test_run_again_after_a_conflict",
        "test_a_plan_changes_nothing_until_it_is_executed",
        "test_rows_that_stay_are_as_they_were",
        "test_large_files_are_rewritten_in_parts",
        "test_an_update_by_a_plain_condition_reads_only_files_that_have_such_rows",
        "test_a_plain_condition_reads_nothing_through_spark",
        "test_parts_of_structs",
        "test_refused_before_anything_is_written",
    )

    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect


class Racing(DeltaTable):
    """A table where something happens each time a version was opened."""

    def __init__(self, table: DeltaTable, after: Any) -> None:
        super().__init__(table._spark, table._location, table._storage_options)
        self._after = after

    def _open(self, *arguments: Any) -> Snapshot:
        found: Snapshot = self._after(super()._open(*arguments))
        return found


def adds(path: str, number: int) -> list[dict[str, Any]]:
    text = Path(path, "_delta_log", f"{number:020d}.json").read_text()
    return [action["add"] for action in map(json.loads, text.splitlines()) if "add" in action]


def read(table: DeltaTable, cdc: dict[str, Any]) -> list[dict[str, Any]]:
    assert cdc["dataChange"] is False
    rows: list[dict[str, Any]] = pq.read_table(Path(table._location, cdc["path"]), partitioning=None).to_pylist()
    return rows


def test_statements_cannot_use_the_hidden_column_of_reads(delta_spark: SparkSession, tmp_path: Path) -> None:
    """delta-spark has errors for it as well, of three kinds."""
    table, target = f"delta.`{tmp_path / 't'}`", DeltaTable.forPath
    delta_spark.range(5).write.format("delta").save(str(tmp_path / "t"))
    source = "(SELECT 1L AS id) s ON t.id = s.id"
    for statement, error_class in (
        (f"DELETE FROM {table} WHERE _metadata.row_index = 0", "DELTA_CANNOT_RESOLVE_COLUMN"),
        (f"DELETE FROM {table} t WHERE t._metadata.file_path = 'a' AND id > 2", "DELTA_CANNOT_RESOLVE_COLUMN"),
        (f"UPDATE {table} SET id = 1 WHERE _metadata.file_name = 'a'", "DELTA_CANNOT_RESOLVE_COLUMN"),
        (f"UPDATE {table} SET id = _metadata.row_index", "DELTA_CANNOT_RESOLVE_COLUMN"),
        (
            f"MERGE INTO {table} t USING {source} AND t._metadata.row_index > 0 WHEN MATCHED THEN DELETE",
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        ),
        (
            f"MERGE INTO {table} t USING {source} WHEN MATCHED THEN UPDATE SET id = t._metadata.row_index",
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        ),
    ):
        with pytest.raises(InvalidOperationError, match="Only reads have the hidden column _metadata") as raised:
            delta_spark.sql(statement)
        assert raised.value.error_class == error_class
    with pytest.raises(InvalidOperationError, match="Only reads have the hidden column"):
        target(delta_spark, str(tmp_path / "t")).delete(F.col("_metadata.row_index") == 0)
    with pytest.raises(AnalysisException, match="`metadata`"):
        delta_spark.sql(f"DELETE FROM {table} WHERE metadata.row_index = 0")
    assert Table.open(tmp_path / "t").version == 0


def test_a_column_may_be_named_as_the_hidden_one(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    delta_spark.sql(f"CREATE TABLE {table} (_metadata STRUCT<row_index: INT>)")
    delta_spark.sql(f"INSERT INTO {table} VALUES (named_struct('row_index', 1)), (named_struct('row_index', 2))")
    delta_spark.sql(f"DELETE FROM {table} WHERE _metadata.row_index = 1")
    assert Table.open(tmp_path / "t").count() == 1
