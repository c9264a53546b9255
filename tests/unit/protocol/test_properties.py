"""Table properties: typed values, defaults, keys regardless of case, and errors that say what to write."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pyspark_delta.errors import InvalidOptionError, InvalidTableError
from pyspark_delta.protocol import properties as p


@pytest.mark.parametrize(
    ("known", "text", "value"),
    [
        (p.APPEND_ONLY, "true", True),
        (p.APPEND_ONLY, "FALSE", False),
        (p.CHECKPOINT_INTERVAL, "100", 100),
        (p.STATS_NUM_COLUMNS, "-1", -1),
        (p.COLUMN_MAPPING_MODE, "NAME", "name"),
        (p.LOG_RETENTION, "interval 2 weeks", timedelta(weeks=2)),
        (p.STATS_COLUMNS, "a, `b,c`.d ,e", ("a", "`b,c`.d", "e")),
        (p.TARGET_FILE_SIZE, "128mb", 128 << 20),
        (p.TARGET_FILE_SIZE, "33554432", 33554432),
        (p.PARQUET_FORMAT_VERSION, "2.12.0", "2.12.0"),
        (p.PARQUET_COMPRESSION, "ZSTD", "zstd"),
    ],
)
def test_typed_values(known: p.TableProperty[Any], text: str, value: object) -> None:
    assert known.of({known.name: text}) == value


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (p.APPEND_ONLY, "yes"),
        (p.CHECKPOINT_INTERVAL, "0"),
        (p.CHECKPOINT_INTERVAL, "ten"),
        (p.COLUMN_MAPPING_MODE, "position"),
        (p.LOG_RETENTION, "interval 1 month"),
        (p.TARGET_FILE_SIZE, "-1"),
        (p.PARQUET_FORMAT_VERSION, "3.0.0"),
    ],
)
def test_illegal_values_name_property_and_value(known: p.TableProperty[Any], text: str) -> None:
    with pytest.raises(InvalidTableError) as of_table:
        known.of({known.name: text})
    assert known.name in of_table.value.message
    assert of_table.value.facts["value"] == text
    with pytest.raises(InvalidOptionError, match=known.name):
        p.check_property(known.name, text)


@pytest.mark.parametrize("text", ["SnapshotIsolation", "ReadCommitted"])
def test_isolation_levels_that_users_cannot_set(text: str) -> None:
    """Under snapshot isolation, a DELETE would miss rows that were added at the same time."""
    with pytest.raises(InvalidOptionError, match="not one of Serializable, WriteSerializable") as raised:
        p.check_property("delta.isolationLevel", text)
    assert raised.value.error_class == "DELTA_INVALID_ISOLATION_LEVEL"
    for level in ("serializable", "WriteSerializable"):
        p.check_property("delta.isolationLevel", level)


def test_a_table_of_another_writer_may_have_snapshot_isolation() -> None:
    assert p.ISOLATION_LEVEL.of({"delta.isolationLevel": "SnapshotIsolation"}) == "SnapshotIsolation"


def test_keys_match_regardless_of_case_and_exactly_first() -> None:
    assert p.APPEND_ONLY.of({"DELTA.APPENDONLY": "true"}) is True
    assert p.APPEND_ONLY.of({"DELTA.APPENDONLY": "true", "delta.appendOnly": "false"}) is False


def test_alias_counts_when_the_name_is_absent() -> None:
    assert p.ENABLE_CHANGE_DATA_FEED.of({"delta.enableChangeDataCapture": "true"}) is True


def test_defaults_are_legal_values() -> None:
    for known in p.TABLE_PROPERTIES:
        assert known.of({}) == known.default
        if known.default_text:
            assert known.parse(known.default_text) == known.default
        assert known.meaning.endswith(".")


def test_names_are_unique_and_found() -> None:
    names = [known.name.casefold() for known in p.TABLE_PROPERTIES]
    assert len(set(names)) == len(names)
    for known in p.TABLE_PROPERTIES:
        assert p.find_property(known.name.upper()) is known


def test_unknown_delta_keys_are_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidOptionError, match=r"Did you mean 'delta\.appendOnly'") as raised:
        p.check_property("delta.appendonyl", "true")
    assert raised.value.error_class == "DELTA_UNKNOWN_CONFIGURATION"


@pytest.mark.parametrize("name", ["owner", "delta.constraints.positive", "delta.feature.rowTracking", "comment.x"])
def test_keys_of_the_user_and_open_ones_pass(name: str) -> None:
    p.check_property(name, "anything")


def test_no_property_is_suggested_twice() -> None:
    """A property and its alias may both be near."""
    assert p.near_property_names("delta.enableChangeDataFed") == ["delta.enableChangeDataFeed"]
