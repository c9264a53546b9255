"""`enable` and `disable`: what changes for one session, and what stays for all others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrameReader, SparkSession
from tests.spark.made_tables import DataFile, make_table

import pyspark_delta
from pyspark_delta.errors import (
    DeltaWarning,
    InvalidOperationError,
    InvalidOptionError,
    MissingDependencyError,
    TableAlreadyExistsError,
    TableNotFoundError,
    VersionNotFoundError,
)
from pyspark_delta.spark.conf.classes import classic_frame
from pyspark_delta.spark.conf.sessions import is_enabled
from pyspark_delta.spark.session.enable import disable, enable
from pyspark_delta.spark.session.identifiers import path_of_identifier

ClassicFrame = classic_frame()


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    session = enable(spark.newSession())
    yield session
    disable(session)


@pytest.fixture
def table(tmp_path: Path) -> str:
    return make_table(tmp_path / "t", [DataFile(pa.table({"id": [1, 2, 3], "name": ["a", "b", None]}))], features=())


def test_other_sessions_and_formats_stay_as_they_are(
    spark: SparkSession, enabled: SparkSession, tmp_path: Path
) -> None:
    other = spark.newSession()
    assert is_enabled(enabled)
    assert not is_enabled(other)
    assert type(other.read) is DataFrameReader
    path = str(tmp_path / "p")
    enabled.range(3).write.mode("overwrite").parquet(path)
    enabled.range(3).write.format("parquet").mode("append").option("compression", "gzip").save(path)
    assert enabled.read.parquet(path).count() == enabled.read.format("parquet").load(path).count() == 6
    enabled.range(2).createOrReplaceTempView("two")
    assert enabled.table("two").count() == enabled.read.table("two").count() == 2


def test_disabling_the_last_session_restores_the_classes(spark: SparkSession) -> None:
    names = [(SparkSession, name) for name in ("read", "table", "sql", "readStream")]
    names += [(ClassicFrame, name) for name in ("write", "writeTo", "writeStream")]
    before = [owner.__dict__[name] for owner, name in names]
    session = spark.newSession()
    assert enable(enable(session)) is session
    assert SparkSession.__dict__["read"] is not before[0] or is_enabled(session)
    disable(session)
    assert not is_enabled(session)
    assert [owner.__dict__[name] for owner, name in names] == before


def test_every_object_of_the_session_is_enabled(enabled: SparkSession) -> None:
    again = SparkSession(enabled.sparkContext, enabled._jsparkSession)
    assert is_enabled(again)


@pytest.mark.parametrize("source", ["delta", "DELTA", "deltapy"])
def test_read_by_every_way(enabled: SparkSession, table: str, source: str) -> None:
    assert enabled.read.format(source).load(table).count() == 3
    assert enabled.read.load(table, format=source).count() == 3
    assert enabled.read.format(source).option("path", table).load().count() == 3
    assert enabled.read.table(f"{source}.`{table}`").count() == 3
    assert enabled.table(f"{source}.`{table}`").count() == 3


def test_default_format_of_the_session(enabled: SparkSession, table: str, tmp_path: Path) -> None:
    enabled.conf.set("spark.sql.sources.default", "delta")
    assert enabled.read.load(table).count() == 3
    enabled.range(4).write.save(str(tmp_path / "new"))
    assert enabled.read.load(str(tmp_path / "new")).count() == 4


def test_time_travel(enabled: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for start in range(3):
        enabled.range(start, start + 1).write.format("delta").mode("append").save(path)
    for version in range(3):
        assert enabled.read.format("delta").option("versionAsOf", version).load(path).count() == version + 1
        assert enabled.read.format("delta").option("VERSIONASOF", str(version)).load(path).count() == version + 1
        assert enabled.read.format("delta").load(f"{path}@v{version}").count() == version + 1
        assert enabled.read.option("versionAsOf", version).table(f"delta.`{path}`").count() == version + 1
        assert enabled.table(f"delta.`{path}@v{version}`").count() == version + 1
    with pytest.raises(VersionNotFoundError):
        enabled.read.format("delta").load(f"{path}@v7")
    with pytest.raises(InvalidOptionError):
        enabled.read.format("delta").options(versionAsOf=1, timestampAsOf="2024-01-01").load(path)


def test_options_for_columns_and_rows(enabled: SparkSession, table: str) -> None:
    reader = enabled.read.format("delta").options(columns="name, id", where="name IS NOT NULL")
    assert [tuple(row) for row in reader.load(table).collect()] == [("a", 1), ("b", 2)]


def test_errors_are_delta_errors(enabled: SparkSession, table: str, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        enabled.read.format("delta").load(str(tmp_path / "nothing"))
    with pytest.raises(InvalidOptionError, match="one path"):
        enabled.read.format("delta").load([table, table])
    with pytest.raises(InvalidOptionError, match="path"):
        enabled.read.format("delta").load()
    with pytest.raises(TableAlreadyExistsError):
        enabled.range(1).write.format("delta").save(table)
    with pytest.raises(InvalidOperationError, match="bucketBy"):
        enabled.range(1).write.format("delta").bucketBy(2, "id").save(str(tmp_path / "new"))
    with pytest.raises(InvalidOptionError, match="append"):
        enabled.range(1).write.format("delta").mode("apend").save(str(tmp_path / "new"))


def test_a_mode_meant_for_another_format_still_counts(enabled: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "p")
    enabled.range(1).write.parquet(path)
    enabled.range(2).write.format("delta").mode("overwrite").format("parquet").save(path)
    assert enabled.read.parquet(path).count() == 2
    with pytest.raises(AnalysisException):
        enabled.range(2).write.format("parquet").save(path)


def test_partitioned_write_and_read(enabled: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = enabled.range(10).selectExpr("id", "id % 3 AS k")
    frame.write.format("delta").partitionBy("k").save(path)
    frame.write.save(path, format="delta", mode="append", partitionBy="k")
    assert enabled.read.format("delta").load(path).where("k = 1").count() == 6


def test_identifiers() -> None:
    assert path_of_identifier("delta.`/a b`") == "/a b"
    assert path_of_identifier(" Delta . `/a``b` ") == "/a`b"
    assert path_of_identifier("parquet.`/a`") is None
    assert path_of_identifier("delta.a") is None
    assert path_of_identifier("t") is None


def test_builder_passes_through() -> None:
    builder = SparkSession.builder
    assert pyspark_delta.configure_spark_with_delta_pip(builder) is builder


@pytest.mark.parametrize("version", ["3.4.4", "unknown"])
def test_an_unsupported_pyspark_leaves_everything_unchanged(
    spark: SparkSession, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = spark.newSession()
    before = {name: vars(type(session))[name] for name in ("read", "table")}
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(MissingDependencyError, match=rf"PySpark {version}.*unchanged.*'pyspark>=3\.5'"):
        enable(session)
    assert {name: vars(type(session))[name] for name in before} == before
    assert not is_enabled(session)


def test_a_member_that_pyspark_lacks_leaves_everything_unchanged(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = spark.newSession()
    before = {name: vars(type(session))[name] for name in ("read", "table")}
    monkeypatch.delattr(ClassicFrame, "writeTo")
    with pytest.raises(MissingDependencyError):
        enable(session)
    assert {name: vars(type(session))[name] for name in before} == before
    assert not is_enabled(session)


def test_settings_for_delta_spark_are_mentioned_once(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.lake", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    session.conf.set("spark.sql.catalog.mine", "com.example.Catalog")
    with pytest.warns(DeltaWarning, match=r"JAR: spark\.sql\.catalog\.lake=org\.apache[\w.]*DeltaCatalog\. ") as said:
        enable(session)
    assert len(said) == 1
    enable(session)  # a second warning would be an error here
    disable(session)
