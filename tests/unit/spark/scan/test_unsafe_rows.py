"""Rows in Spark's binary format, read back by the rules of `UnsafeRow`; Spark itself reads them in the scan tests."""

from __future__ import annotations

import base64
import struct
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
)
from pyspark_delta.spark.frames.catalyst.unsafe_rows import EncodedRows, encode_rows


def row_bytes(rows: EncodedRows, index: int) -> bytes:
    return base64.b64decode(rows.text[index].as_py())[: rows.sizes[index]]


def slot(rows: EncodedRows, index: int, field: int) -> bytes | None:
    """The eight bytes of a field; None when its null bit is set."""
    data = row_bytes(rows, index)
    if int.from_bytes(data[: rows.bitmap_width], "little") >> field & 1:
        return None
    start = rows.bitmap_width + 8 * field
    return data[start : start + 8]


def variable(rows: EncodedRows, index: int, field: int) -> bytes | None:
    found = slot(rows, index, field)
    if found is None:
        return None
    size, offset = struct.unpack("<II", found)
    assert offset % 8 == 0
    return row_bytes(rows, index)[offset : offset + size]


@pytest.mark.parametrize(
    ("data_type", "values", "arrow", "layout"),
    [
        (LONG, [-1, None, 2**62], pa.int64(), "<q"),
        (INTEGER, [-1, None, 2**31 - 1], pa.int32(), "<i4x"),
        (SHORT, [-1, None, 300], pa.int16(), "<h6x"),
        (BYTE, [-1, None, 100], pa.int8(), "<b7x"),
        (BOOLEAN, [True, None, False], pa.bool_(), "<?7x"),
        (DOUBLE, [-0.5, None, 1e300], pa.float64(), "<d"),
        (FLOAT, [-0.5, None, 1.5], pa.float32(), "<f4x"),
    ],
    ids=str,
)
def test_numbers(data_type: DataType, values: list[object], arrow: pa.DataType, layout: str) -> None:
    rows = encode_rows([(pa.array(values, arrow), data_type)], 3)
    found = [slot(rows, i, 0) for i in range(3)]
    assert [None if f is None else struct.unpack(layout, f)[0] for f in found] == values


def test_dates_and_timestamps() -> None:
    days = pa.array([date(1970, 1, 3), date(1969, 12, 31)])
    micros = pa.array([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None], pa.timestamp("us", tz="UTC"))
    rows = encode_rows([(days, DATE), (micros, TIMESTAMP)], 2)
    assert slot(rows, 0, 0) == struct.pack("<i4x", 2)
    assert slot(rows, 1, 0) == struct.pack("<i4x", -1)
    assert slot(rows, 0, 1) == struct.pack("<q", 1_000_000)
    assert slot(rows, 1, 1) is None


def test_texts_and_binaries_of_sliced_arrays() -> None:
    texts = pa.array(["skipped", "", None, "é" * 9, "x"]).slice(1)
    blobs = pa.array([b"skipped", b"\x00\xff", b"", None, b"12345678"]).slice(1)
    rows = encode_rows([(texts, STRING), (blobs, BINARY)], 4)
    assert [variable(rows, i, 0) for i in range(4)] == [b"", None, ("é" * 9).encode(), b"x"]
    assert [variable(rows, i, 1) for i in range(4)] == [b"\x00\xff", b"", None, b"12345678"]
    assert all(size % 8 == 0 for size in rows.sizes)


@pytest.mark.parametrize("length", [8, 1000])
def test_long_binaries_beside_short_ones(length: int) -> None:
    """Values are copied one by one where they are long on average, and all at once where they are short."""
    values = [b"skipped" * length, b"\x01" * length, b"", None, bytes(n % 251 for n in range(3 * length + 5)), b"end"]
    sliced = pa.array(values, pa.large_binary()).slice(1)
    rows = encode_rows([(sliced, BINARY), (pa.array(range(5), pa.int64()), LONG), (sliced, BINARY)], 5)
    for field in (0, 2):
        assert [variable(rows, i, field) for i in range(5)] == [b"\x01" * length, b"", None, values[4], b"end"]
    assert [slot(rows, i, 1) for i in range(5)] == [struct.pack("<q", i) for i in range(5)]


def test_decimals() -> None:
    narrow, wide = DecimalType(18, 2), DecimalType(38, 0)
    values = [Decimal("-1.25"), None, Decimal("9999999999999999.99")]
    huge = [Decimal(-(10**37)), Decimal(255), None]
    rows = encode_rows(
        [(pa.array(values, pa.decimal128(18, 2)), narrow), (pa.array(huge, pa.decimal128(38, 0)), wide)], 3
    )
    numbers = [slot(rows, i, 0) for i in range(3)]
    assert [None if n is None else struct.unpack("<q", n)[0] for n in numbers] == [-125, None, 999999999999999999]
    texts = [variable(rows, i, 1) for i in range(3)]
    assert [None if t is None else int.from_bytes(t, "big", signed=True) for t in texts] == [-(10**37), 255, None]


def test_more_fields_than_one_word_of_null_bits() -> None:
    columns = [(pa.array([None if n % 2 else n], pa.int64()), LONG) for n in range(70)]
    rows = encode_rows(columns, 1)
    assert rows.bitmap_width == 16
    assert [slot(rows, 0, n) is None for n in range(70)] == [bool(n % 2) for n in range(70)]


def test_no_fields() -> None:
    rows = encode_rows([], 2)
    assert rows.sizes.tolist() == [0, 0]
    assert rows.text.to_pylist() == ["", ""]
