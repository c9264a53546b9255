"""Files of the calendar that changes from Julian to Gregorian: as Spark writes and reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.hand_made import PLAIN, HandMade, add, features, field, metadata, struct_of

from pyspark_delta import DeltaTable
from pyspark_delta.table import Table

DATES = ["0001-01-01", "0200-03-01", "1000-02-28", "1500-03-01", "1582-10-04", "1582-10-15", "1900-01-01", "9999-12-31"]


@pytest.mark.parametrize("stored_as", ["INT96", "TIMESTAMP_MICROS"])
def test_files_of_the_legacy_calendar_are_read_as_spark_reads_them(
    plain_spark: SparkSession, tmp_path: Path, stored_as: str
) -> None:
    spark, table = plain_spark.newSession(), HandMade(tmp_path / "table")
    for name in ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite"):
        spark.conf.set(f"spark.sql.parquet.{name}", "LEGACY")
    spark.conf.set("spark.sql.parquet.outputTimestampType", stored_as)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = spark.createDataFrame([(text,) for text in DATES], "t string").coalesce(1)
    made = rows.selectExpr(
        "t", "date(t) d", "timestamp(t || ' 12:34:56.789012') at", "struct(date(t) d, cast(t as timestamp_ntz) l) s"
    )
    made.write.parquet(str(table.path / "data"))
    (file,) = (table.path / "data").glob("*.parquet")
    schema = [
        field("t", "string"),
        field("d", "date"),
        field("at", "timestamp"),
        field("s", struct_of(field("d", "date"), field("l", "timestamp_ntz"))),
    ]
    table.commit(0, features("timestampNtz"), metadata(*schema), add(f"data/{file.name}"))
    shown = [
        (
            row["t"],
            str(row["d"]),
            f"{row['at']:%H:%M:%S.%f}",
            str(row["at"].date()),
            str(row["s"]["d"]),
            str(row["s"]["l"].date()),
        )
        for row in Table.open(table.path).scan().to_arrow().to_pylist()
    ]
    assert sorted(shown) == [(text, text, "12:34:56.789012", text, text, text) for text in DATES]


@pytest.mark.parametrize("stored_as", ["INT96", "TIMESTAMP_MICROS"])
@pytest.mark.parametrize("time_zone", ["America/Los_Angeles", "Asia/Shanghai"])
def test_files_written_anew_keep_the_instants_that_spark_reads(
    delta_spark: SparkSession, tmp_path: Path, stored_as: str, time_zone: str
) -> None:
    """Old clocks of Java showed standard time before 1900, those of today show local mean time."""
    table = HandMade(tmp_path / "table")
    settings = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": stored_as,
        "spark.sql.session.timeZone": time_zone,
    }
    writer = delta_spark.newSession()
    for name, value in settings.items():
        writer.conf.set(name, value)
    rows = writer.createDataFrame([(text,) for text in [*DATES, "1890-01-01"]], "t string").coalesce(1)
    rows.selectExpr("t", "timestamp(t || ' 12:34:56.789012') at").write.parquet(str(table.path / "data"))
    (file,) = (table.path / "data").glob("*.parquet")
    data = add(f"data/{file.name}", file.stat().st_size)
    table.commit(0, PLAIN, metadata(field("t", "string"), field("at", "timestamp")), data)

    def instants() -> list[tuple[str, int]]:
        frame = delta_spark.read.format("delta").load(str(table.path))
        return sorted((row.t, row.at) for row in frame.selectExpr("t", "unix_micros(at) at").collect())

    before = instants()
    assert len(before) == len(DATES) + 1
    DeltaTable.forPath(delta_spark, str(table.path)).delete("t = '1500-03-01'")
    assert instants() == [row for row in before if row[0] != "1500-03-01"]
