"""Points in time as users write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.schema.timestamps import parse_path_suffix, parse_timestamp

NOON = 1_704_110_400_000  # 2024-01-01T12:00:00Z
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("2024", NOON - 12 * HOUR),
        ("2024-1", NOON - 12 * HOUR),
        ("2024-01-1", NOON - 12 * HOUR),
        (" 2024-01-01 ", NOON - 12 * HOUR),
        ("2024-01-01 12", NOON),
        ("2024-01-01 12:0", NOON),
        ("2024-01-01 12:00:00", NOON),
        ("2024-01-01T12:00:00", NOON),
        ("2024-01-01 12:00:00.5", NOON + 500),
        ("2024-01-01 12:00:00.123999", NOON + 123),
        ("2024-01-01 12:00:00.123999999", NOON + 123),
        ("2024-01-01T12:00:00Z", NOON),
        ("2024-01-01T12:00:00.000Z", NOON),
        ("2024-01-01 12:00:00 UTC", NOON),
        ("2024-01-01 13:00:00+01:00", NOON),
        ("2024-01-01 13:00:00 +01:00", NOON),
        ("2024-01-01 13:00:00+1", NOON),
        ("2024-01-01 13:00:00+0100", NOON),
        ("2024-01-01 04:30:00-07:30", NOON),
        ("2024-01-01 13:00:00 UTC+1", NOON),
        ("2024-01-01 13:00:00 Europe/Paris", NOON),
        ("1969-12-31 23:59:59.999", -1),
    ],
)
def test_text_is_read_as_spark_reads_it(text: str, milliseconds: int) -> None:
    assert parse_timestamp(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "24",
        "2024-",
        "2024-13",
        "2024-02-30",
        "2024-01-01 24:00:00",
        "2024-01-01x",
        "2024/01/01",
        "2024-1-1T",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="is not a timestamp"):
        parse_timestamp(text)


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-01 12:00:00 Mars/Olympus",
        "2024-01-01 12:00:00+19:00",
        "2024-01-01 12:00:00+05:60",
        "2024-01-01 1:00 ../x",
    ],
)
def test_an_unknown_zone_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"is unknown|not a timestamp"):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (5, 5),
        (date(2024, 1, 1), NOON - 12 * HOUR),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), NOON),
        (datetime(2024, 1, 1, 13, tzinfo=timezone(timedelta(hours=1))), NOON),
        (datetime(2024, 1, 1, 12, 0, 0, 1999), NOON + 1),
    ],
)
def test_values_are_points_in_time(value: Any, milliseconds: int) -> None:
    assert parse_timestamp(value) == milliseconds


@pytest.mark.parametrize("value", [True, 1.5, None, b"2024"])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="found"):
        parse_timestamp(value)


def test_clock_changes_follow_java() -> None:
    """An hour that a clock change skips counts on; one that it repeats is the first."""
    skipped = parse_timestamp("2024-03-31 02:30:00", time_zone="Europe/Paris")
    assert skipped == parse_timestamp("2024-03-31T01:30:00Z")
    repeated = parse_timestamp("2024-10-27 02:30:00", time_zone="Europe/Paris")
    assert repeated == parse_timestamp("2024-10-27T00:30:00Z")


def test_a_path_suffix_is_a_time() -> None:
    assert parse_path_suffix("20240101120000007") == NOON + 7
    assert parse_path_suffix("20240101210000000", time_zone="Asia/Tokyo") == NOON
    for text in ("2024", "20241301000000000", "2024010112000000x"):
        with pytest.raises(InvalidOptionError):
            parse_path_suffix(text)
