"""What a write replaces and which schema it leaves, on classic sessions and through Spark Connect."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests import optimized_writes

from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import (
    ConstraintViolationError,
    DeltaWarning,
    InvalidOperationError,
    InvalidOptionError,
    InvalidPredicateError,
    SchemaMismatchError,
)
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.arrow import frame_of_arrow
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.table import Table


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def rows(location: str, key: str = "id") -> list[dict[str, Any]]:
    found = Table.open(location).scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: (row[key] is None, row[key], repr(row)))


def values(location: str, *columns: str) -> list[Any]:
    """The rows as tuples of some columns, or the values of one."""
    found = [tuple(row[column] for column in columns) for row in rows(location)]
    return [row[0] for row in found] if len(columns) == 1 else found


def actions(location: str, name: str, version: int | None = None) -> list[dict[str, Any]]:
    """The actions of one kind in a commit, the latest unless another is named."""
    files = sorted(Path(location, "_delta_log").glob("*.json"))
    lines = files[-1 if version is None else version].read_text().splitlines()
    return [action[name] for action in map(json.loads, lines) if name in action]


def info(location: str) -> dict[str, Any]:
    [found] = actions(location, "commitInfo")
    return found


def commits(location: str) -> int:
    return len(list(Path(location, "_delta_log").glob("*.json"))) if Path(location).exists() else 0


@contextmanager
def setting(session: SparkSession, name: str, value: str) -> Iterator[None]:
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.unset(name)


def row_ids(location: str) -> dict[int, tuple[int, int]]:
    """Row id and row commit version of the rows, by their column `id`."""
    found = read_plan(plan_scan(Snapshot.load(location), row_ids=True)).read_all().to_pylist()
    return {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in found}


class WriteModes:
    """The tests; a session of each kind runs them all."""

    # ------------------------------------------------------------------------------------------------- schemas
    def test_merge_schema(self, session: SparkSession, table: str) -> None:
        save(session.sql("select 1 Id, named_struct('a', 1) s, array(named_struct('k', 'x')) l"), table)
        more = session.sql(
            "select 2 ID, named_struct('b', 2, 'A', 3) s, array(named_struct('v', 1L, 'k', 'y')) l, true n, null void"
        )
        with pytest.raises(SchemaMismatchError, match="mergeSchema") as caught:
            save(more, table, "append")
        shown = caught.value.message
        assert [line.split()[0] for line in shown.splitlines()[2:5]] == ["s.b", "l.element.v", "n"]
        assert "overwriteSchema" not in shown
        with pytest.raises(SchemaMismatchError, match="overwriteSchema"):
            save(more, table, "overwrite")
        assert commits(table) == 1
        with setting(session, "spark.databricks.delta.schema.autoMerge.enabled", "true"):
            save(more, table, "append")
        assert str(Table.open(table).schema) == (
            "struct<Id:integer,s:struct<a:integer,b:integer>,l:array<struct<k:string,v:long>>,n:boolean>"
        )
        assert rows(table, "Id") == [
            {"Id": 1, "s": {"a": 1, "b": None}, "l": [{"k": "x", "v": None}], "n": None},
            {"Id": 2, "s": {"a": 3, "b": 2}, "l": [{"k": "y", "v": 1}], "n": True},
        ]
        assert info(table)["operationParameters"] == {"mode": "Append", "partitionBy": "[]", "canMergeSchema": True}
        assert save(session.sql("select 3 id"), table, "append", options={"mergeSchema": True}) == 2
        assert actions(table, "metaData") == []
        for wrong in ("select 'x' id", "select 1 id, 2 more, 3 MORE", "select 1 id, 2 `a b`", "select array(1) s"):
            with pytest.raises(SchemaMismatchError):
                save(session.sql(wrong), table, "append", options={"mergeSchema": "true"})
        assert commits(table) == 3

    def test_overwrite_schema(self, session: SparkSession, table: str) -> None:
        first = session.sql("select 1 id, 'x' p")
        save(first, table, partition_by=["p"])
        new = session.sql("select 'q' p, 2.5 id, 3 z")
        with pytest.raises(InvalidOptionError, match="overwriteSchema"):
            save(first, table, "overwrite", ["id"])
        overwrite = {"overwriteSchema": "true"}
        for partial in ({"replaceWhere": "id = 1"}, {"partitionOverwriteMode": "dynamic"}):
            with pytest.raises(InvalidOptionError, match="keeps some of its files"):
                save(new, table, "overwrite", options={**overwrite, **partial})
        save(new, table, "overwrite", ["z"], overwrite)
        [metadata] = actions(table, "metaData")
        assert (metadata["partitionColumns"], metadata["id"]) == (["z"], actions(table, "metaData", 0)[0]["id"])
        assert Table.open(table).schema.names == ("p", "id", "z")
        assert info(table)["operationParameters"]["canOverwriteSchema"] is True
        save(new, table, "overwrite", options=overwrite)  # as in delta-spark, no partitionBy is no partitioning
        assert actions(table, "metaData")[0]["partitionColumns"] == []
        save(new, table, "overwrite", options=overwrite)
        assert actions(table, "metaData") == []
        assert len(rows(table)) == 1

    def test_replace_where_excludes_dynamic_partitions(self, session: SparkSession, table: str) -> None:
        """As in delta-spark: only where both are options, and would replace rows of a table with partitions."""
        base, new = session.sql("select id, id % 2 p from range(6)"), session.sql("select 7L id, 1L p")
        both = {"replaceWhere": "p = 1", "partitionOverwriteMode": "dynamic"}
        save(base, table, partition_by=["p"])
        with pytest.raises(InvalidOptionError, match="cannot be combined") as raised:
            save(new, table, "overwrite", options=both)
        assert raised.value.error_class == "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE"
        assert len(rows(table)) == 6
        with setting(session, "spark.sql.sources.partitionOverwriteMode", "dynamic"):
            save(new, table, "overwrite", options={"replaceWhere": "p = 1"})
        assert len(rows(table)) == 4
        save(new, table, "overwrite", options={**both, "partitionOverwriteMode": "static"})
        save(base, f"{table}-flat")
        save(new, f"{table}-flat", "overwrite", options={**both})
        assert len(rows(f"{table}-flat")) == 4

    def test_new_tables_begin_with_the_properties_of_the_session(self, session: SparkSession, table: str) -> None:
        prefix = "spark.databricks.delta.properties.defaults."
        with (
            setting(session, f"{prefix}checkpointInterval", "7"),
            setting(session, f"{prefix}logRetentionDuration", "interval 40 days"),
        ):
            save(session.range(1), table, options={"delta.checkpointInterval": "9"})
        assert actions(table, "metaData")[0]["configuration"] == {
            "delta.checkpointInterval": "9",
            "delta.logRetentionDuration": "interval 40 days",
        }

    # ------------------------------------------------------------------------------------------- replacing rows
    def test_replace_where(self, session: SparkSession, table: str) -> None:
        base = session.sql("select id, id % 3 p, if(id = 4, null, cast(id as string)) s from range(0, 9, 1, 1)")
        save(base, table, partition_by=["p"])
        zero, one, two = (
            next(a["path"] for a in actions(table, "add") if a["path"].startswith(f"p={p}")) for p in range(3)
        )

        by_partition = {"replaceWhere": "p = 1"}
        save(session.sql("select 100L id, 1L P, 'x' s"), table, "overwrite", options=by_partition)
        assert [r["path"] for r in actions(table, "remove")] == [one]
        assert info(table)["operationParameters"] == {"mode": "Overwrite", "partitionBy": "[]", "predicate": "p = 1"}
        metrics = info(table)["operationMetrics"]
        assert {k: v for k, v in metrics.items() if "Bytes" not in k} == {
            "numFiles": "1",
            "numOutputRows": "1",
            "numRemovedFiles": "1",
            "numCopiedRows": "0",
            "numAddedChangeFiles": "0",
            "numDeletedRows": "3",
        }
        save(session.sql("select 0L id, 2L p, 'x' s"), table, "overwrite", options={"replaceWhere": "id < 3"})
        assert sorted(r["path"] for r in actions(table, "remove")) == [zero, two]
        metrics = info(table)["operationMetrics"]
        assert (metrics["numCopiedRows"], metrics["numDeletedRows"], metrics["numOutputRows"]) == ("4", "2", "5")
        assert not info(table)["isBlindAppend"]
        assert values(table, "id", "p", "s") == [
            (0, 2, "x"), (3, 0, "3"), (5, 2, "5"), (6, 0, "6"), (8, 2, "8"), (100, 1, "x"),
        ]  # fmt: skip

        before = commits(table)
        for wrong, condition in ((50, "id < 3"), (1, "p = 1"), (50, "s > 'y'")):
            with pytest.raises(ConstraintViolationError, match="does not meet the condition of replaceWhere") as caught:
                save(session.sql(f"select {wrong}L id, 2L p, cast(null as string) s"), table, "overwrite",
                     options={"replaceWhere": condition})  # fmt: skip
            assert (caught.value.error_class, caught.value.sqlstate) == ("DELTA_REPLACE_WHERE_MISMATCH", "44000")
        for bad in ("nope = 1", "id = = 1", "id"):
            with pytest.raises(InvalidPredicateError):
                save(base, table, "overwrite", options={"replaceWhere": bad})
        with (
            setting(session, "spark.databricks.delta.replaceWhere.dataColumns.enabled", "false"),
            pytest.raises(InvalidOptionError, match="not partition columns"),
        ):
            save(base, table, "overwrite", options={"replaceWhere": "id < 3"})
        assert commits(table) == before

        # A condition that only Spark evaluates, one that is unknown for some rows, and no check of the new rows.
        save(base.where("id = 8"), table, "overwrite", options={"replaceWhere": "length(s) = 1 and upper(s) = '8'"})
        with setting(session, "spark.databricks.delta.replaceWhere.constraintCheck.enabled", "false"):
            save(base.where("id = 4"), table, "overwrite", options={"replaceWhere": "s = '3'"})
        assert values(table, "id", "s") == [(0, "x"), (4, None), (5, "5"), (6, "6"), (8, "8"), (100, "x")]
        save(base.where("id = 4"), table, "overwrite", options={"replaceWhere": "s <> '8'", "mergeSchema": "true"} | {
            "replaceWhere": "s is null or s <> '8'"})  # fmt: skip
        assert values(table, "id") == [4, 8]
        with pytest.warns(DeltaWarning, match="replaces nothing in mode 'append'"):
            save(base.where("id = 1"), table, "append", options={"replaceWhere": "id = 8"})

    def test_replace_where_with_new_columns_keeps_the_other_rows(self, session: SparkSession, table: str) -> None:
        save(session.sql("select id, named_struct('a', id) s from range(0, 4, 1, 1)"), table)
        new = session.sql("select 3L id, named_struct('a', 7L, 'b', 8) s, 'n' n")
        save(new, table, "overwrite", options={"replaceWhere": "id >= 2", "mergeSchema": "true"})
        assert rows(table) == [
            {"id": 0, "s": {"a": 0, "b": None}, "n": None},
            {"id": 1, "s": {"a": 1, "b": None}, "n": None},
            {"id": 3, "s": {"a": 7, "b": 8}, "n": "n"},
        ]

    def test_dynamic_partition_overwrite(self, session: SparkSession, table: str) -> None:
        dynamic = {"partitionOverwriteMode": "dynamic"}
        base = session.sql(
            "select id, nullif(id % 3, 2) p, timestamp'2024-01-01' + make_dt_interval(0, id % 2) t from range(6)"
        )
        save(base, table, partition_by=["p", "t"])
        new = session.sql(
            "select 10L id, cast(null as bigint) p, timestamp'2024-01-01' t union all "
            "select 11, 1, timestamp'2030-01-01'"
        )
        save(new, table, "overwrite", options=dynamic)
        assert values(table, "id") == [0, 1, 3, 4, 5, 10, 11]
        assert len(actions(table, "remove")) == 1
        assert info(table)["operationParameters"] == {
            "mode": "Overwrite",
            "partitionBy": "[]",
            "isDynamicPartitionOverwrite": True,
        }
        with setting(session, "spark.sql.sources.partitionOverwriteMode", "dynamic"):
            save(base.where("id = 0"), table, "overwrite")
            assert values(table, "id") == [0, 1, 3, 4, 5, 10, 11]
            save(base.where("id < 0"), table, "overwrite")
            assert values(table, "id") == [0, 1, 3, 4, 5, 10, 11]
            save(base.where("id = 1"), table, "overwrite", options={"partitionOverwriteMode": "static"})
        assert values(table, "id") == [1]
        flat = f"{table}-flat"
        save(base, flat)
        save(base.where("id = 5"), flat, "overwrite", options=dynamic)
        assert values(flat, "id") == [5]

    def test_replace_using_and_on(self, session: SparkSession, table: str) -> None:
        base = session.sql("select id, if(id = 2, null, id % 2) k, 'old' s from range(0, 6, 1, 2)")
        save(base, table)
        using = {"replaceUsing": "K"}
        save(
            session.sql("select 9L id, 1L k, 'new' s union all select 8, null, 'new'"),
            table,
            "overwrite",
            options=using,
        )
        assert values(table, "id", "k") == [(0, 0), (2, None), (4, 0), (8, None), (9, 1)]
        metrics = info(table)["operationMetrics"]
        assert (metrics["numDeletedRows"], metrics["numCopiedRows"], metrics["numRemovedFiles"]) == ("3", "3", "2")
        assert info(table)["operationParameters"] == {
            "mode": "Overwrite",
            "partitionBy": "[]",
            "replaceUsingCols": "(K)",
        }
        assert save(base.where("id < 0"), table, "overwrite", options=using) is None
        save(session.sql("select 0L id, 0L k, 'two' s"), table, "overwrite", options={"replaceUsing": "id, k"})
        assert values(table, "id", "s") == [(0, "two"), (2, "old"), (4, "old"), (8, "new"), (9, "new")]

        on = {"replaceOn": "t.k <=> s.k and t.id > s.id", "targetAlias": "t"}
        save(session.sql("select 1L id, cast(null as bigint) k, 'on' s"), table, "overwrite", options=on)
        assert values(table, "id", "s") == [(0, "two"), (1, "on"), (4, "old"), (9, "new")]
        assert info(table)["operationParameters"]["replaceOnCond"] == on["replaceOn"]
        before = commits(table)
        for options, error in (
            ({"replaceUsing": "nope"}, InvalidOperationError),
            ({"replaceOn": "t.k = k", "targetAlias": "t"}, InvalidOptionError),
            ({"replaceOn": "t.k = s.k and u.k = 1", "targetAlias": "t"}, InvalidOptionError),
            ({"replaceOn": "t.k = = 1", "targetAlias": "t"}, InvalidPredicateError),
        ):
            with pytest.raises(error):
                save(base, table, "overwrite", options=options)
        assert commits(table) == before

    # --------------------------------------------------------------------------------------------- table features
    def test_c162_c174_change_data_files_where_readers_could_not_tell(self, session: SparkSession, table: str) -> None:
        base = session.sql("select id, id % 2 p from range(0, 6, 1, 1)")
        feed = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
        save(base, table, partition_by=["p"], options=feed)
        ids = row_ids(table)
        save(session.sql("select 10L id, 1L p"), table, "overwrite", options={
            "replaceWhere": "p = 1"})  # fmt: skip
        assert actions(table, "cdc") == []
        new = session.sql("select 2L id, 0L p, 'n' n union all select 3, 1, 'n'")
        save(new, table, "overwrite", options={"replaceWhere": "id in (2, 3, 10)", "mergeSchema": "true"})
        changes = actions(table, "cdc")
        assert {c["path"].split("/")[0] for c in changes} == {"_change_data"}
        assert all(set(c) == {"path", "partitionValues", "size", "dataChange"} and not c["dataChange"] for c in changes)
        assert info(table)["operationMetrics"]["numAddedChangeFiles"] == str(len(changes))
        found = [
            (row["id"], change["partitionValues"]["p"], row["n"], row["_change_type"])
            for change in changes
            for row in pq.ParquetFile(f"{table}/{change['path']}").read().to_pylist()
        ]
        assert sorted(found, key=repr) == [
            (10, "1", None, "delete"),
            (2, "0", "n", "insert"),
            (2, "0", None, "delete"),
            (3, "1", "n", "insert"),
        ]
        assert values(table, "id", "p", "n") == [(0, 0, None), (2, 0, "n"), (3, 1, "n"), (4, 0, None)]
        after = row_ids(table)
        assert {key: after[key] for key in (0, 4)} == {key: ids[key] for key in (0, 4)}  # C326: copies keep theirs
        assert after[2] != ids[2]

    def test_c240_rows_of_mapped_and_deleted_from_tables_are_replaced(
        self, session: SparkSession, golden_table: Callable[[str], Path], tmp_path: Path
    ) -> None:
        for table_id in ("dat/deletion_vectors", "delta-kernel/column-mapping-id"):
            copy, golden = str(tmp_path / table_id.partition("/")[2]), golden_table(table_id)
            shutil.copytree(golden / "delta" if (golden / "delta").is_dir() else golden, copy)
            before = Table.open(copy).scan().to_arrow()
            key = before.column_names[0]
            chosen = pc.sort_indices(before[key])[0].as_py()
            literal = repr(before[key][chosen].as_py())
            new = frame_of_arrow(session, before.slice(chosen, 1))
            save(new.unionAll(new), copy, "overwrite", options={"replaceWhere": f"`{key}` = {literal}"})
            kept = before.filter(pc.not_equal(before[key], before[key][chosen]))
            expected = [*kept.to_pylist(), *(before.slice(chosen, 1).to_pylist() * 2)]
            assert sorted(map(repr, Table.open(copy).scan().to_arrow().to_pylist())) == sorted(map(repr, expected))

    # --------------------------------------------------------------------------------------------- other options
    def test_transactions_and_metadata_of_the_session(self, session: SparkSession, table: str) -> None:
        save(session.range(1), table)
        prefix = "spark.databricks.delta."
        with setting(session, f"{prefix}write.txnAppId", "job"), setting(session, f"{prefix}write.txnVersion", "5"):
            assert save(session.range(1), table, "append") == 1
            assert save(session.range(1), table, "append") is None
            assert save(session.range(1), table, "append", options={"txnAppId": "other", "txnVersion": "1"}) == 2
            with setting(session, f"{prefix}write.txnVersion.autoReset.enabled", "true"):
                session.conf.set(f"{prefix}write.txnVersion", "6")
                assert save(session.range(1), table, "append") == 3
                session.conf.set(f"{prefix}write.txnVersion", "6")
                assert save(session.range(1), table, "append") is None
                with pytest.raises(InvalidOptionError, match="both txnAppId and txnVersion"):
                    save(session.range(1), table, "append")
        with setting(session, f"{prefix}commitInfo.userMetadata", "nightly"):
            save(session.range(1), table, "append")
        assert info(table)["userMetadata"] == "nightly"
        assert [t["appId"] for t in actions(table, "txn", 3)] == ["job"]

    def test_option_session_and_table_decide_if_a_write_is_optimized(self, session: SparkSession, table: str) -> None:
        frame, found = session.sql(optimized_writes.ROWS).repartition(optimized_writes.TASKS), []
        for number, case in enumerate(optimized_writes.CASES):
            options = {optimized_writes.PROPERTY: case.table, "optimizeWrite": case.option}
            with ExitStack() as settings:
                if case.session is not None:
                    settings.enter_context(setting(session, optimized_writes.SETTING, case.session))
                save(frame, f"{table}{number}", partition_by=["p"], options=options)
            found.append(len(actions(f"{table}{number}", "add")))
        assert found == [case.files for case in optimized_writes.CASES]

    def test_sizes_of_optimized_writes(self, session: SparkSession, table: str) -> None:
        frame = session.range(0, 8000, 1, 8).selectExpr("id", "uuid() as u", "id % 3 as `a.p`")
        prefix = "spark.databricks.delta.optimizeWrite."

        def files(*partitioning: str, **options: str) -> int:
            save(frame, table, "overwrite", partition_by=partitioning, options={"overwriteSchema": "true", **options})
            return len(actions(table, "add"))

        assert files("a.p") == 3  # partitioned tables have an exchange by default
        assert files() == 8
        asked = {"optimizeWrite": "true"}
        assert files(**asked) == 1
        with setting(session, "spark.sql.adaptive.enabled", "false"):  # as in batches of a stream
            with setting(session, f"{prefix}maxShufflePartitions", "1"):
                assert files("a.p", **asked) == 3
            assert {add["path"].split("part-")[1][:5] for add in actions(table, "add")} == {"00000"}
        with setting(session, f"{prefix}binSize", "60k"):
            assert 6 <= files("a.p") < 24
            assert 4 <= files(**asked) < 24
            assert session.conf.get("spark.sql.adaptive.advisoryPartitionSizeInBytes") in ("64MB", "67108864b")
        with setting(session, f"{prefix}binSize", "small"), pytest.raises(InvalidOptionError, match="binSize"):
            files("a.p")
        assert len(rows(table)) == 8000

    def test_c347_c349_c350_cluster_by(self, session: SparkSession, table: str) -> None:
        frame = session.sql("select 1L id, named_struct('b.c', 2, 'd', 3) s, true t")
        save(frame, table, cluster_by=["ID"], options={"clusterBy": "x"})
        [domain] = actions(table, "domainMetadata")
        assert (domain["domain"], json.loads(domain["configuration"])) == (
            "delta.clustering",
            {"clusteringColumns": [["id"]]},
        )
        [protocol] = actions(table, "protocol")
        assert {"clustering", "domainMetadata"} <= set(protocol["writerFeatures"])
        save(frame, table, "append", cluster_by=["id"])
        with pytest.raises(InvalidOptionError, match="clustered by id"):
            save(frame, table, "append", cluster_by=["s.d"])
        save(frame, table, "overwrite", options={"clusterBy": "s.`b.c`, id", "overwriteSchema": "true"})
        assert json.loads(actions(table, "domainMetadata")[0]["configuration"]) == {
            "clusteringColumns": [["s", "b.c"], ["id"]]
        }
        save(frame, table, "overwrite", options={"overwriteSchema": "true"})
        assert Snapshot.load(table).clustering_columns() == []
        for options, error in (
            ({"clusterBy": "t"}, InvalidOperationError),
            ({"clusterBy": "nope"}, InvalidOperationError),
            ({"clusterBy": "id", "partitionBy": "t"}, InvalidOptionError),
        ):
            with pytest.raises(error):
                save(frame, f"{table}-new", options=options)
        assert not Path(f"{table}-new").exists()

    def test_c139_data_change_false(self, session: SparkSession, table: str) -> None:
        save(session.range(0, 10, 1, 4), table)
        frame = frame_of_arrow(session, Table.open(table).scan().to_arrow()).coalesce(1)
        save(frame, table, "overwrite", options={"dataChange": "false"})
        assert values(table, "id") == list(range(10))
        [added] = actions(table, "add")
        removed = actions(table, "remove")
        assert (len(removed), {a["dataChange"] for a in (added, *removed)}) == (4, {False})


class TestClassic(WriteModes):
    @pytest.fixture
    def session(self, plain_spark: SparkSession) -> SparkSession:
        return plain_spark


class TestConnect(WriteModes):
    """Through Spark Connect, where frames, columns and options take another way."""

    USUAL = (
        "test_merge_schema",
        "test_overwrite_schema",
        "test_new_tables_begin_with_the_properties_of_the_session",
        "test_replace_where",
        "test_dynamic_partition_overwrite",
        "test_replace_using_and_on",
        "test_c347_c349_c350_cluster_by",
    )

    @pytest.fixture
    def session(self, plain_connect: SparkSession) -> SparkSession:
        return plain_connect
