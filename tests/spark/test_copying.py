"""`DeltaTable.clone`, `convertToDelta`, `generate` and `computeStatistics`, on classic sessions and Spark Connect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, StructType

from pyspark_delta import DeltaTable
from pyspark_delta.errors import InvalidOperationError


class Copying:
    """The tests; a session of each kind runs them all."""

    @pytest.fixture
    def table(self, session: SparkSession, tmp_path: Path) -> DeltaTable:
        path = str(tmp_path / "t")
        session.range(10).coalesce(1).write.format("delta").save(path)
        table = DeltaTable.forPath(session, path)
        table.delete("id < 3")
        return table

    def test_tables_are_cloned(self, session: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
        (row,) = table.clone(str(tmp_path / "shallow"), properties={"user.x": 1}).collect()
        assert list(row.asDict()) == [
            *("source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files"),
            *("removed_files_size", "copied_files_size"),
        ]
        assert (row.source_num_of_files, row.num_copied_files) == (1, 0)
        (deep,) = table.cloneAtVersion(0, f"delta.`{tmp_path}/deep`", False).collect()
        assert (deep.num_copied_files, deep.copied_files_size) == (1, deep.source_table_size)
        for version in range(2):
            os.utime(tmp_path / "t" / "_delta_log" / f"{version:020}.json", (version * 86_400, version * 86_400))
        table.cloneAtTimestamp("1970-01-01 12:00:00", str(tmp_path / "at"))
        counts = [
            DeltaTable.forPath(session, str(tmp_path / name)).toDF().count() for name in ("shallow", "deep", "at")
        ]
        assert counts == [7, 10, 10]
        clone = DeltaTable.forPath(session, str(tmp_path / "shallow"))
        clone.delete("id = 9")
        assert (clone.count(), table.count()) == (6, 7)
        (first,) = clone.history().where("version = 0").collect()
        assert (first.operation, "PySpark/" in first.engineInfo) == ("CLONE", True)
        session.range(100, 102).coalesce(1).write.format("delta").mode("append").save(str(tmp_path / "t"))
        (merged,) = table.cloneAtVersion(2, str(tmp_path / "merged"), isShallow=False, mergeFiles=True).collect()
        assert (merged.source_num_of_files, merged.num_copied_files) == (2, 1)
        assert table.clone(str(tmp_path / "no"), False, mergeFiles=True, plan=True).facts()["files_to_merge"] == 2
        assert table.clone(str(tmp_path / "no"), plan=True).facts()["files_added"] == 2
        with pytest.raises(InvalidOperationError, match="absolute path"):
            table.clone("relative/path")

    def test_directories_are_converted(self, session: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "t")
        frame = session.sql(
            "select id, cast(id as byte) b, if(id % 2 = 0, date'2024-01-31', null) day, id / 2 x, array(id) l"
            ", timestamp'2024-01-31 12:00:00' at, named_struct('s', cast(id as string)) st from range(10)"
        )
        frame.coalesce(1).write.partitionBy("day").parquet(path)
        before = sorted(map(repr, session.read.parquet(path).select(frame.columns).collect()))
        table = DeltaTable.convertToDelta(session, f"parquet.`{path}`")
        assert sorted(map(repr, table.toDF().select(frame.columns).collect())) == before
        assert table.toDF().schema["b"].dataType.simpleString() == "tinyint"
        assert table.toDF().where("id > 7").count() == 2
        session.range(2).coalesce(1).write.parquet(f"{path}2/day=2024-01-31")
        declared = DeltaTable.convertToDelta(session, f"parquet.`{path}2`", StructType().add("day", DateType()))
        assert declared.toDF().schema["day"].dataType == DateType()
        assert [row.operationParameters["partitionedBy"] for row in declared.history().collect()] == ['["day"]']
        session.range(2).coalesce(1).write.parquet(f"{path} 3%20")
        elsewhere = DeltaTable.convertToDelta(session, f"parquet.`{path} 3%20`", whereDeltaLies=f"{path} 4%20")
        elsewhere.delete("id = 1")
        assert session.read.format("delta").load(f"{path} 4%20").collect() == session.range(1).collect()
        assert session.read.parquet(f"{path} 3%20").count() == 2
        with pytest.raises(InvalidOperationError, match=r"parquet.`/path"):
            DeltaTable.convertToDelta(session, path)

    def test_manifests_and_statistics(self, session: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
        table.generate("symlink_format_manifest")
        (file,) = (tmp_path / "t" / "_symlink_format_manifest" / "manifest").read_text().splitlines()
        assert session.read.parquet(file).count() == 7
        assert table.computeStatistics() == 0
        assert table.computeStatistics("id > 5", columns=["id"], onlyMissing=False) == 1
        assert table.computeStatistics(onlyMissing=False, plan=True).facts()["files"] == 1


class TestClassic(Copying):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(Copying):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
