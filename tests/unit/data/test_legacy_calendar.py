"""Dates and times of the calendar that changes from Julian to Gregorian, without Spark."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hand_made import PLAIN, HandMade, add, field, metadata, struct_of

from pyspark_delta.schema.legacy_calendar import LegacyCalendar
from pyspark_delta.table import Table

# From which day on (days since the epoch) the same date is how many days later in the proleptic Gregorian calendar:
# the table of Spark's RebaseDateTime.
SHIFTS = {
    -719164: 2, -682945: 1, -646420: 0, -609895: -1, -536845: -2, -500320: -3, -463795: -4, -390745: -5,
    -354220: -6, -317695: -7, -244645: -8, -208120: -9, -171595: -10, -141427: 0,
}  # fmt: skip
BOTH = LegacyCalendar(dates=True, timestamps=True)


# The same of instants before 1900 (seconds since the epoch), with the clocks of Los Angeles.
SHIFTS_OF_LOS_ANGELES = {
    -62135740800: 172378, -59006419200: 85978, -55850659200: -422, -52694899200: -86822, -46383379200: -173222,
    -12219264000: -422, -2717640000: 0,
}  # fmt: skip


def days(*values: int) -> pa.Array:
    return pa.array(values, pa.int32()).cast(pa.date32())


def test_dates_are_shifted_as_spark_shifts_them() -> None:
    switches = list(SHIFTS)
    for start, following in zip(switches, [*switches[1:], 20_000], strict=True):
        stored = days(start, start + 1, (start + following) // 2, following - 1)
        assert BOTH.rebased(stored).cast(pa.int32()).to_pylist() == [
            value + SHIFTS[start] for value in stored.cast(pa.int32()).to_pylist()
        ]


def test_timestamps_are_shifted_with_the_clocks_of_their_zone_as_spark_shifts_them() -> None:
    calendar = LegacyCalendar(dates=True, timestamps=True, time_zone="America/Los_Angeles")
    stored = pa.array([[start * 10**6 + 1, None] for start in SHIFTS_OF_LOS_ANGELES], pa.list_(pa.int64()))
    rebased = calendar.rebased(stored.cast(pa.list_(pa.timestamp("us", "UTC")))).cast(stored.type)
    assert rebased.to_pylist() == [
        [(start + shift) * 10**6 + 1, None] for start, shift in SHIFTS_OF_LOS_ANGELES.items()
    ]


@pytest.mark.parametrize("time_zone", ["Mars/Olympus", "UTC"])
def test_timestamps_of_an_unknown_zone_are_taken_for_those_of_utc(time_zone: str) -> None:
    calendar = LegacyCalendar(dates=True, timestamps=True, time_zone=time_zone)
    stored = pa.array([-719164 * 86_400_000_000, -(2**63), None]).cast(pa.timestamp("us", "UTC"))
    shifted = calendar.rebased(stored).cast(pa.int64()).to_pylist()
    assert (shifted[0], shifted[2]) == (-719162 * 86_400_000_000, None)


@pytest.mark.parametrize(
    ("footer", "int96", "shifted"),
    [
        ({}, True, False),
        ({"org.apache.spark.version": "2.4.8"}, False, True),
        ({"org.apache.spark.version": "3.0.2"}, False, False),
        ({"org.apache.spark.version": "3.0.2"}, True, True),
        ({"org.apache.spark.version": "3.5.0"}, True, False),
        ({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}, False, True),
        ({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}, True, False),
        ({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyINT96": ""}, True, True),
    ],
)
def test_the_footer_tells_the_calendar(tmp_path: Path, footer: dict[str, str], int96: bool, shifted: bool) -> None:
    """Day -719164 is the first of January of the year 1 in the legacy calendar, and two days before it in today's."""
    at, table = -719164 * 86_400_000_000 + 1, HandMade(tmp_path / "table")
    times = pa.array([at, None, 0]).cast(pa.timestamp("us"))
    rows = pa.table({"id": [1, 2, 3], "at": times}).replace_schema_metadata(footer or None)
    pq.write_table(rows, table.path / "a.parquet", use_deprecated_int96_timestamps=int96, row_group_size=1)
    table.commit(0, PLAIN, metadata(field("id"), field("at", "timestamp")), add("a.parquet"))
    read = Table.open(table.path).scan().to_arrow().sort_by("id")["at"]
    assert read.cast(pa.int64()).to_pylist() == [at + (2 * 86_400_000_000 if shifted else 0), None, 0]


def test_nested_values_and_row_groups(tmp_path: Path) -> None:
    """The bounds of row groups are those of the stored values: no condition on dates may be held against them."""
    stored: Any = days(-719164, -141427, -171595)
    values = {
        "id": [1, 2, 3],
        "d": stored,
        "l": pa.array([[-719164], None, []], pa.list_(pa.int32())).cast(pa.list_(pa.date32())),
        "s": pa.StructArray.from_arrays([stored], ["d"], mask=pa.array([False, True, False])),
        "m": pa.array([[("k", -719164)], None, []], pa.map_(pa.string(), pa.int32())).cast(
            pa.map_(pa.string(), pa.date32())
        ),
    }
    table = HandMade(tmp_path / "table")
    rows = pa.table(values).replace_schema_metadata({"org.apache.spark.version": "2.4.5"})
    pq.write_table(rows, table.path / "a.parquet", row_group_size=1)
    schema = [
        field("id"),
        field("d", "date"),
        field("l", {"type": "array", "elementType": "date", "containsNull": True}),
        field("s", struct_of(field("d", "date"))),
        field("m", {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True}),
    ]
    table.commit(0, PLAIN, metadata(*schema), add("a.parquet"))
    first = date(1, 1, 1)
    whole = {"id": 1, "d": first, "l": [first], "s": {"d": first}, "m": [("k", first)]}
    opened = Table.open(table.path)
    assert opened.scan(where="d = date'0001-01-01'").to_arrow().to_pylist() == [whole]
    assert opened.scan().to_arrow().sort_by("id").to_pylist()[1:] == [
        {"id": 2, "d": date(1582, 10, 15), "l": None, "s": None, "m": None},
        {"id": 3, "d": date(1500, 3, 1), "l": [], "s": {"d": date(1500, 3, 1)}, "m": []},
    ]
