"""`df.write` and `df.writeTo` of enabled sessions, for path identifiers, on classic sessions and Spark Connect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.errors import (
    ConstraintViolationError,
    InvalidOperationError,
    InvalidOptionError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from pyspark_delta.table import Table


def info(location: str) -> dict[str, Any]:
    return Table.open(location).history()[0]


def values(location: str, *columns: str) -> list[Any]:
    found = Table.open(location).scan().to_arrow().select(columns).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def commits(location: str) -> int:
    return len(list(Path(location, "_delta_log").glob("*.json")))


class Writers:
    """The tests; a session of each kind runs them all."""

    def test_write_to(self, session: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "a table")
        name = f"delta.`{path}`"
        base = session.sql("select id, id % 2 p, cast(id as string) s from range(0, 6, 1, 1)")
        for call in ("append", "replace", "overwritePartitions"):
            with pytest.raises(TableNotFoundError):
                getattr(base.writeTo(name), call)()
        assert not Path(path).exists()
        writer = (
            base.writeTo(name).using("delta").partitionedBy(F.col("p")).tableProperty("delta.checkpointInterval", "5")
        )
        writer.option("userMetadata", "made").create()
        assert info(path)["operation"] == "CREATE TABLE AS SELECT"
        assert info(path)["operationParameters"] == {
            "partitionBy": '["p"]',
            "clusterBy": "[]",
            "description": None,
            "isManaged": "false",
            "properties": '{"delta.checkpointInterval":"5"}',
        }
        assert info(path)["userMetadata"] == "made"
        with pytest.raises(TableAlreadyExistsError):
            base.writeTo(name).create()
        with pytest.raises(InvalidOptionError, match="another format"):
            base.writeTo(name).using("parquet").append()

        session.sql("select 's' S, 10L ID, 1L p").writeTo(name).append()
        with pytest.raises(SchemaMismatchError, match="mergeSchema"):
            session.sql("select 1L a, 2L b, 'x' c").writeTo(name).append()
        session.sql("select 20L id, 1L p, 'x' s").writeTo(name).overwrite((F.col("id") >= 5) & (F.col("s") != "10"))
        assert values(path, "id", "s") == [(0, "0"), (1, "1"), (2, "2"), (3, "3"), (4, "4"), (20, "x")]
        with pytest.raises(ConstraintViolationError):
            base.writeTo(name).overwrite(F.expr("p = 1"))
        session.sql("select 30L id, 1L p, 'y' s").writeTo(name).overwritePartitions()
        assert values(path, "id") == [(0,), (2,), (4,), (30,)]
        base.select("id").writeTo(name).using("delta").replace()
        assert info(path)["operation"] == "REPLACE TABLE AS SELECT"
        table = Table.open(path)
        assert (table.schema.names, table.detail()["partitionColumns"], table.detail()["properties"]) == (
            ("id",),
            [],
            {},
        )
        base.writeTo(name).clusterBy("id").createOrReplace()
        assert info(path)["operation"] == "CREATE OR REPLACE TABLE AS SELECT"
        assert Table.open(path).detail()["clusteringColumns"] == ["id"]

    def test_columns_of_any_name_and_conditions_of_any_number(self, session: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "odd")
        name = f"delta.`{path}`"
        base = session.sql("select id `e f`, if(id > 2, double('NaN'), id) `p%q`, id `a.b` from range(0, 5, 1, 1)")
        create = base.writeTo(name).partitionedBy(F.col("`e f`")).tableProperty("delta.columnMapping.mode", "name")
        create.create()
        assert Table.open(path).partition_columns == ("e f",)
        written = base.where("`e f` = 3")
        written.writeTo(name).overwrite((F.col("p%q") == float("nan")) & (F.col("e f") + 1 < 5))
        assert values(path, "e f") == [(0,), (1,), (2,), (3,), (4,)]
        base.limit(0).writeTo(name).overwrite((F.col("p%q") < float("inf")) & (-F.col("`a.b`") * 2 / 4 < -0.1))
        assert values(path, "e f") == [(0,), (3,), (4,)]
        for transformed in (F.col("e f") + 1, F.col("a.b")):
            with pytest.raises(InvalidOptionError, match="takes columns of the table"):
                base.writeTo(f"delta.`{path} 2`").partitionedBy(transformed)

    def test_save_as_table_and_insert_into(self, session: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "table")
        name = f"delta.`{path}`"
        base = session.sql("select id, cast(id as string) s from range(3)")
        with pytest.raises(TableNotFoundError):
            base.write.insertInto(name)
        base.write.clusterBy("id").saveAsTable(name)
        assert Table.open(path).detail()["clusteringColumns"] == ["id"]
        base.write.mode("append").saveAsTable(name)
        session.sql("select 7L other, 's' names").write.insertInto(name)
        assert values(path, "id") == [(0,), (0,), (1,), (1,), (2,), (2,), (7,)]
        session.sql("select 8L other, 's' names").write.insertInto(name, overwrite=True)
        session.sql("select 9L, 't'").write.mode("append").insertInto(name)
        assert values(path, "id", "s") == [(8, "s"), (9, "t")]
        before = commits(path)
        with pytest.raises(SchemaMismatchError, match="3 columns"):
            session.sql("select 1L a, 'x' b, 2 c").write.insertInto(name)
        with pytest.raises(InvalidOperationError, match="partitionBy"):
            base.write.partitionBy("id").insertInto(name)
        with pytest.raises(InvalidOperationError, match="no buckets"):
            base.write.format("delta").bucketBy(2, "id").mode("append").save(path)
        assert commits(path) == before

    def test_options_of_a_frame_writer(self, session: SparkSession, tmp_path: Path) -> None:
        path = str(tmp_path / "table")
        base = session.sql("select id, id % 2 p from range(0, 4, 1, 1)")
        base.write.format("delta").partitionBy("p").save(path)
        writer = session.sql("select 9L id, 1L p, 'n' n").write.format("delta").mode("overwrite")
        writer.option("replaceWhere", "p = 1").options(mergeSchema=True).save(path)
        assert values(path, "id") == [(0,), (2,), (9,)]
        base.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
        assert values(path, "id") == [(0,), (1,), (2,), (3,)]
        parameters = [json.dumps(entry["operationParameters"]) for entry in Table.open(path).history()]
        assert ["replaceWhere" not in text and '"mode": ' in text for text in parameters] == [True] * 3


class TestClassic(Writers):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(Writers):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect

    def test_spark_keeps_no_locations_of_tables(self, session: SparkSession) -> None:
        base = session.range(3)
        with pytest.raises(InvalidOperationError, match="would be lost"):
            base.writeTo("some_table").using("delta").create()
        with pytest.raises(InvalidOperationError, match="would be lost"):
            base.write.format("delta").saveAsTable("some_table")
