"""Partition value serialization, both ways (PVS), timestamps without time zone (NTZ), intervals."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.data.planned import rows_of, schema_of, write

from pyspark_delta.data.partition_paths import NULL_DIRECTORY
from pyspark_delta.errors import CorruptLogError, InvalidOperationError, InvalidOptionError
from pyspark_delta.schema.partition_values import (
    parse_partition_column,
    serialize_partition_column,
    serialize_partition_value,
)
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    YEAR_MONTH_INTERVAL,
    ArrayType,
    DataType,
    DecimalType,
)

EVERY_TYPE: list[DataType] = [
    STRING, BINARY, BOOLEAN, BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, DecimalType(10, 2), DATE, TIMESTAMP,
    TIMESTAMP_NTZ, YEAR_MONTH_INTERVAL, DAY_TIME_INTERVAL, VOID,
]  # fmt: skip
NAN = float("nan")


def parse(texts: list[str | None], data_type: DataType, time_zone: str = "UTC") -> list[Any]:
    values = parse_partition_column(pa.array(texts, pa.string()), data_type, time_zone, column="p")
    if data_type in (DATE, TIMESTAMP, TIMESTAMP_NTZ, DAY_TIME_INTERVAL):
        return list(values.view(pa.int32() if data_type == DATE else pa.int64()).to_pylist())
    return list(values.to_pylist())


def micros(year: int, month: int, day: int, *time: int) -> int:
    hour, minute, second, fraction = (*time, 0, 0, 0, 0)[:4]
    days = (dt.date(year, month, day) - dt.date(1970, 1, 1)).days
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + fraction


@pytest.mark.parametrize("data_type", EVERY_TYPE, ids=str)
def test_c416_c417_the_empty_string_and_null_are_null_in_every_type(data_type: DataType) -> None:
    assert parse(["", None], data_type) == [None, None]
    values = pa.nulls(2, parse_partition_column(pa.array([""]), data_type).type)
    assert serialize_partition_column(values, data_type).to_pylist() == [None, None]


@pytest.mark.parametrize("data_type", EVERY_TYPE, ids=str)
def test_c416_the_name_of_hives_directory_of_nulls_is_null_where_it_is_not_a_text(data_type: DataType) -> None:
    kept = {STRING: NULL_DIRECTORY, BINARY: NULL_DIRECTORY.encode()}
    assert parse([NULL_DIRECTORY, None], data_type) == [kept.get(data_type), None]


def test_c417_strings_are_as_they_are_and_an_empty_one_is_lost() -> None:
    texts = [" a b ", "%20/=:", "null", "ü😈"]
    assert parse(texts, STRING) == texts
    assert serialize_partition_column(pa.array([*texts, ""]), STRING).to_pylist() == [*texts, None]


@pytest.mark.parametrize(
    ("data_type", "texts", "values"),
    [
        (BYTE, ["-128", "127", "+5", " 7 ", "1E+2"], [-128, 127, 5, 7, 100]),
        (SHORT, ["-32768", "32767"], [-32768, 32767]),
        (INTEGER, ["2147483647", "3.0"], [2147483647, 3]),
        (LONG, ["-9223372036854775808", "9223372036854775807"], [-(2**63), 2**63 - 1]),
        (FLOAT, ["1.25", "3.4028235E38", "-Infinity", "1e-3"], [1.25, 3.4028234663852886e38, float("-inf"), None]),
        (DOUBLE, ["-0.0", "1.7976931348623157E308", "Infinity", "7"], [-0.0, 1.7976931348623157e308, float("inf"), 7]),
        (DecimalType(10, 2), ["123.45", "-0.05", "7", "1E+3", "1.500"], ["123.45", "-0.05", "7.00", "1000.00", "1.50"]),
        (DecimalType(38, 18), ["200.000000000000000000"], ["200.000000000000000000"]),
        (DecimalType(38, 0), ["9" * 38], ["9" * 38]),
    ],
    ids=str,
)
def test_c418_numbers_are_decimal_text(data_type: DataType, texts: list[str], values: list[Any]) -> None:
    if isinstance(data_type, DecimalType):
        values = [Decimal(v) for v in values]
    for found, wanted in zip(parse(list(texts), data_type), values, strict=True):
        assert wanted is None or found == wanted


def test_c418_nan_is_a_number() -> None:
    assert str(parse(["NaN"], DOUBLE)[0]) == str(parse(["nan"], FLOAT)[0]) == "nan"


def test_c418_numbers_are_written_as_spark_writes_them() -> None:
    doubles = [1e10, 1.5, -0.0, 1e-5, NAN, float("inf"), 0.001, 1e7, 100.0]
    expected = ["1.0E10", "1.5", "-0.0", "1.0E-5", "NaN", "Infinity", "0.001", "1.0E7", "100.0"]
    assert serialize_partition_column(pa.array(doubles), DOUBLE).to_pylist() == expected
    assert serialize_partition_value(3.4028234663852886e38, FLOAT) == "3.4028235E38"
    assert serialize_partition_value(Decimal("1E-10"), DecimalType(38, 18)) == "0.000000000100000000"
    assert serialize_partition_value(-5, LONG) == "-5"


def test_c419_dates_of_any_year() -> None:
    texts = ["1970-01-01", "2024-02-29", "0001-01-01", "9999-12-31", "+10000-01-01", "-0044-03-15", "+5881580-07-11"]
    days = [0, 19782, -719162, 2932896, 2932897, -735525, 2**31 - 1]
    assert parse(list(texts), DATE) == days
    assert serialize_partition_column(pa.array(days, pa.int32()).cast(pa.date32()), DATE).to_pylist() == texts
    assert parse(["2020-1-5"], DATE) == parse(["2020-01-05"], DATE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-02 08:45:00", micros(1970, 1, 2, 8, 45)),
        ("1970-01-01 00:00:00.123456", 123456),
        ("1970-01-01 00:00:00.5", 500000),
        ("1969-12-31 23:59:59.999999", -1),
        ("1970-01-01T00:00:00.123456Z", 123456),
        ("2020-01-01T00:00:00+02:00", micros(2019, 12, 31, 22)),
        ("2020-01-01", micros(2020, 1, 1)),
        ("9999-12-31 23:59:59.999999", micros(9999, 12, 31, 23, 59, 59, 999999)),
        ("+12345-01-01 00:00:00", micros(9999, 12, 31) + (3789391 - 2932896) * 86_400_000_000),
        ("+294247-01-10T04:00:54.775807Z", 2**63 - 1),
        ("-290308-12-21T19:59:05.224192Z", -(2**63)),
    ],
)
def test_c420_timestamps_in_all_three_forms(text: str, expected: int) -> None:
    assert parse([text], TIMESTAMP) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2021-07-01 12:00:00", micros(2021, 7, 1, 19)),
        ("2021-01-01 12:00:00", micros(2021, 1, 1, 20)),
        ("2021-03-14 02:30:00", micros(2021, 3, 14, 10, 30)),  # a time that the clocks skipped
        ("2021-11-07 01:30:00", micros(2021, 11, 7, 8, 30)),  # a time that came twice: the first
        ("2021-07-01T12:00:00Z", micros(2021, 7, 1, 12)),
        ("+294247-01-09 20:00:54.775807", 2**63 - 1),
    ],
)
def test_c421_a_form_without_zone_is_in_the_configured_one(text: str, expected: int) -> None:
    assert parse([text], TIMESTAMP, "America/Los_Angeles") == [expected]


@pytest.mark.parametrize("zone", ["+08:00", "+8", "+0800", "GMT+8", "UTC+08:00", "UT+8"])
def test_c421_the_zone_may_be_an_offset_as_spark_spells_it(zone: str) -> None:
    assert parse(["2021-07-01 12:00:00"], TIMESTAMP, zone) == [micros(2021, 7, 1, 4)]


def test_c421_the_zone_of_the_context_reaches_the_rows(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"x": [1]})) | {"partition_values": {"t": "2021-07-01 12:00:00"}}
    schema = schema_of(x=LONG, t=TIMESTAMP)
    (row,) = rows_of(tmp_path, schema, [file], partitions=["t"], time_zone="Asia/Tokyo")
    assert row["t"] == dt.datetime(2021, 7, 1, 3, tzinfo=dt.UTC)


def test_c421_an_unknown_zone_is_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="'Mars/Olympus' is not a known time zone"):
        parse(["2021-07-01 12:00:00"], TIMESTAMP, "Mars/Olympus")


def test_c422_timestamps_are_written_in_the_iso_form() -> None:
    values = pa.array([123456, -1, micros(2020, 1, 1)], pa.timestamp("us", tz="UTC"))
    assert serialize_partition_column(values, TIMESTAMP).to_pylist() == [
        "1970-01-01T00:00:00.123456Z",
        "1969-12-31T23:59:59.999999Z",
        "2020-01-01T00:00:00.000000Z",
    ]


def test_c319_c423_timestamps_without_zone_are_never_shifted() -> None:
    texts = ["1970-01-01 00:00:00", "1970-01-01 00:00:00.123456", "1970-01-01T00:00:00.123456Z"]
    assert parse(list(texts), TIMESTAMP_NTZ, "America/Los_Angeles") == [0, 123456, 123456]
    values = pa.array([0, 123456, 500000], pa.timestamp("us"))
    assert serialize_partition_column(values, TIMESTAMP_NTZ).to_pylist() == [
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:00.123456",
        "1970-01-01 00:00:00.5",
    ]


def test_c424_booleans() -> None:
    assert parse(["true", "false", "TRUE"], BOOLEAN) == [True, False, True]
    assert serialize_partition_column(pa.array([True, False]), BOOLEAN).to_pylist() == ["true", "false"]


def test_c425_binary_is_the_text_of_its_bytes() -> None:
    assert parse(["\u0001\u0002\u0003", "Hello", "😈"], BINARY) == [b"\1\2\3", b"Hello", "😈".encode()]
    assert serialize_partition_column(pa.array([b"\1\2\3"]), BINARY).to_pylist() == ["\u0001\u0002\u0003"]
    with pytest.raises(InvalidOperationError, match="must be valid UTF-8"):
        serialize_partition_value(b"\xff", BINARY)


def test_c425_strings_that_are_not_utf8_are_refused() -> None:
    surrogate = pa.array([b"good", b"\xed\xa0\x80"]).view(pa.string())
    with pytest.raises(InvalidOperationError, match="not valid UTF-8"):
        serialize_partition_column(surrogate, STRING)
    assert serialize_partition_column(surrogate.slice(0, 1), STRING).to_pylist() == ["good"]


def test_intervals_are_ansi_literals() -> None:
    months = ["INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-1-2' YEAR TO MONTH", "interval -'3' year"]
    assert parse(list(months), YEAR_MONTH_INTERVAL) == [14, -14, -36]
    assert serialize_partition_value(-14, YEAR_MONTH_INTERVAL) == months[1]
    extremes = {
        "INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND": -(2**63),
        "INTERVAL '106751991 04:00:54.775807' DAY TO SECOND": 2**63 - 1,
        "INTERVAL '3 04:05:06.000007' DAY TO SECOND": 273906000007,
        "INTERVAL '0 00:00:00' DAY TO SECOND": 0,
    }
    assert parse(list(extremes), DAY_TIME_INTERVAL) == list(extremes.values())
    values = pa.array(list(extremes.values()), pa.duration("us"))
    assert serialize_partition_column(values, DAY_TIME_INTERVAL).to_pylist() == list(extremes)
    assert parse(["INTERVAL '100:20' MINUTE TO SECOND"], DAY_TIME_INTERVAL) == [6_020_000_000]


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        (INTEGER, "x"),
        (BYTE, "200"),
        (LONG, "1.5"),
        (FLOAT, "--1"),
        (DOUBLE, "1.0D"),
        (DecimalType(3, 2), "12.5"),
        (DecimalType(3, 2), "0.125"),
        (BOOLEAN, "maybe"),
        (DATE, "2021-02-29"),
        (DATE, "2021-13-01"),
        (TIMESTAMP, "2021-01-01 24:00:00"),
        (TIMESTAMP, "yesterday"),
        (TIMESTAMP, "+294247-01-10T04:00:54.775808Z"),
        (TIMESTAMP, "+294247-01-10T04:00:00-01:00"),
        (TIMESTAMP, "-290308-12-21T20:00:00+01:00"),
        (TIMESTAMP_NTZ, "+999999-01-01 00:00:00"),
        (TIMESTAMP_NTZ, "-290308-12-21 19:59:05.224191"),
        (YEAR_MONTH_INTERVAL, "INTERVAL '1-12' YEAR TO MONTH"),
        (YEAR_MONTH_INTERVAL, "INTERVAL '1 00:00:00' DAY TO SECOND"),
        (DAY_TIME_INTERVAL, "INTERVAL '106751991 04:00:54.775808' DAY TO SECOND"),
        (ArrayType(LONG), "[1]"),
    ],
    ids=str,
)
def test_text_that_is_not_of_the_type_names_column_and_value(data_type: DataType, text: str) -> None:
    with pytest.raises(CorruptLogError) as raised:
        parse(["", text], data_type)
    assert "'p'" in str(raised.value)
    assert isinstance(data_type, ArrayType) or repr(text) in str(raised.value)


def test_c007_values_come_from_the_log_and_not_from_the_file_or_its_path(tmp_path: Path) -> None:
    (tmp_path / "p=9").mkdir()
    file = write(tmp_path, pa.table({"x": [1], "p": ["in the file"]}), "p=9/f.parquet")
    rows = rows_of(tmp_path, schema_of(x=LONG, p=STRING), [file | {"partition_values": {"p": "log"}}], partitions=["p"])
    assert rows == [{"x": 1, "p": "log"}]
    rows = rows_of(tmp_path, schema_of(x=LONG, p=STRING), [file], partitions=["p"])
    assert rows == [{"x": 1, "p": None}]
