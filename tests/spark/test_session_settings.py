"""The public scan leaves the settings of the user's session as they were."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.made_tables import DataFile, field_json, make_table

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.temporary import temporary_conf, users_conf
from pyspark_delta.spark.conf.write_defaults import with_session_defaults
from pyspark_delta.spark.frames.public_scan import data_frame, frame_can_read
from pyspark_delta.spark.frames.relation_columns import FIELD_ID_SETTINGS
from pyspark_delta.write.options import parse_options

THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"


@pytest.fixture
def forty_files(tmp_path: Path) -> str:
    return make_table(tmp_path / "forty", [DataFile(pa.table({"id": [n]})) for n in range(40)])


@pytest.fixture
def by_ids(tmp_path: Path) -> str:
    """A table in `id` mode whose file has other names than the log, which only the ids tell."""
    rows = pa.table({"other": [1, 2]}, pa.schema([pa.field("other", pa.int64(), metadata={"PARQUET:field_id": "1"})]))
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "p1"}
    return make_table(
        tmp_path / "ids",
        [DataFile(rows)],
        fields=[field_json("id", "long", **mapped)],
        configuration={"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "1"},
        features=("columnMapping",),
    )


def settings(session: SparkSession) -> dict[str, str | None]:
    return {name: session.conf.get(name) for name in (THRESHOLD, *FIELD_ID_SETTINGS)}


def test_data_frame_scan_of_many_files_changes_no_setting(
    spark: SparkSession, forty_files: str, count_jobs: Callable[[Callable[[], object]], int]
) -> None:
    session = spark.newSession()
    for own in (None, "7"):
        if own is not None:
            session.conf.set(THRESHOLD, own)
        before = settings(session)
        frames = []
        assert count_jobs(lambda into=frames: into.append(data_frame(session, Snapshot.load(forty_files)))) == 0
        assert settings(session) == before
        assert frames[0].count() == 40


def test_a_temporary_setting_is_restored_when_the_last_block_ends(spark: SparkSession) -> None:
    session = spark.newSession()
    for own in (None, "7"):
        if own is not None:
            session.conf.set(THRESHOLD, own)
        before = session.conf.get(THRESHOLD)
        with ExitStack() as longer:  # as of two threads, of which the first is done first
            with temporary_conf(session, THRESHOLD, "50"):
                longer.enter_context(temporary_conf(session, THRESHOLD, "50"))
                assert spark.newSession().conf.get(THRESHOLD) != "50"
            assert session.conf.get(THRESHOLD) == "50"
            assert users_conf(session, THRESHOLD) == own
        assert session.conf.get(THRESHOLD) == before


def test_the_time_zone_of_a_write_is_that_of_the_session_if_it_has_set_none(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.unset("spark.sql.session.timeZone")
    zones = session._jvm.java.util.TimeZone  # type: ignore[union-attr]
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone("Asia/Kolkata"))
    try:
        with_session_defaults(session, parse_options({"timeZone": "Asia/Kolkata"}))
        with pytest.raises(InvalidOptionError, match="time zone of the session, 'Asia/Kolkata'"):
            with_session_defaults(session, parse_options({"timeZone": "UTC"}))
    finally:
        zones.setDefault(before)


def test_data_frame_scan_takes_no_table_by_ids_where_the_session_does_not(spark: SparkSession, by_ids: str) -> None:
    session = spark.newSession()
    snapshot = Snapshot.load(by_ids)
    assert not frame_can_read(session, file_source(snapshot), snapshot.files(columns=("path",)))
    for name in FIELD_ID_SETTINGS:
        session.conf.set(name, "true")
    assert frame_can_read(session, file_source(snapshot), snapshot.files(columns=("path",)))
    assert sorted(row.id for row in data_frame(session, snapshot).collect()) == [1, 2]


def test_connect_scan_changes_no_setting(delta_connect: SparkSession, forty_files: str, by_ids: str) -> None:
    before = settings(delta_connect)
    frame = delta_connect.read.format("delta").load(forty_files)
    assert settings(delta_connect) == before
    assert frame.where("id >= 10").count() == 30
    found = delta_connect.read.format("delta").load(by_ids)
    assert sorted(row.id for row in found.collect()) == [1, 2]
    assert settings(delta_connect) == before


class TimestampsOfPartitions:
    """Partition values that are timestamps, by sessions of each kind."""

    def test_c421_timestamps_without_a_zone_are_the_same_in_every_session(
        self, session: SparkSession, tmp_path: Path
    ) -> None:
        columns = {"local": "timestamp_ntz", "at": "timestamp"}
        fields = [field_json(name, kind) for name, kind in {"id": "long", **columns}.items()]
        for count in (2, 20):  # as constants, and joined by the file
            texts = [f"2024-01-{n + 1:02} 01:30:00.000005" for n in range(count)]
            files = [
                DataFile(pa.table({"id": [n]}), {"local": text, "at": text.replace(" ", "T") + "Z"})
                for n, text in enumerate(texts)
            ]
            table = make_table(tmp_path / str(count), files, fields=fields, partition_by=columns)
            zone = session.conf.get("spark.sql.session.timeZone")
            session.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
            try:
                frame = data_frame(session, Snapshot.load(table)).orderBy("id")
                shown = frame.selectExpr("typeof(local)", "cast(local as string)", "unix_micros(at)").collect()
            finally:
                session.conf.set("spark.sql.session.timeZone", zone)
            moments = [datetime.fromisoformat(f"{text}+00:00") for text in texts]
            expected = [("timestamp_ntz", t, round(at.timestamp() * 1e6)) for t, at in zip(texts, moments, strict=True)]
            assert [tuple(row) for row in shown] == expected


class TestClassicTimestamps(TimestampsOfPartitions):
    """On a classic session."""

    @pytest.fixture
    def session(self, spark: SparkSession) -> SparkSession:
        return spark.newSession()


class TestConnectTimestamps(TimestampsOfPartitions):
    """Through Spark Connect."""

    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
