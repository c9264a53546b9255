"""Parse the beginning of a long Parquet footer: the schema and the first row group.

Arrow parses complete footers, and that of a checkpoint of a million files describes thousands of column chunks, while
protocol and metadata are usually in the first row group. A footer is one Thrift struct in compact form, whose list of
row groups can be truncated after the first.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LONG = 1 << 16
"""The size in bytes from which a footer counts as long."""

_MAGIC = b"PAR1"
_TRAILER = 8  # bytes: the length of the footer, and the magic number
_ROW_GROUPS = 4  # a field of FileMetaData
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = frozenset({4, 5, 6})
_MANY = 15  # in the header of a list: its length follows


def first_row_group(file: Any) -> pq.FileMetaData | None:
    """Return the footer with only its first row group; None if it is not long, or has an unexpected form."""
    size = file.seek(0, os.SEEK_END)
    if size < LONG:
        return None
    file.seek(size - _TRAILER)
    trailer = file.read(_TRAILER)
    length = int.from_bytes(trailer[:4], "little")
    if trailer[4:] != _MAGIC or not LONG <= length <= size - _TRAILER:
        return None
    file.seek(size - _TRAILER - length)
    try:
        head = _cut(file.read(LONG))
        return None if head is None else pq.read_metadata(pa.BufferReader(_as_file(head)))
    except (IndexError, RecursionError, pa.ArrowException, OSError, ValueError, MemoryError):
        return None


def _as_file(footer: bytes) -> bytes:
    return b"".join((_MAGIC, footer, len(footer).to_bytes(4, "little"), _MAGIC))


def _cut(data: bytes) -> bytes | None:
    """Return this footer, truncated after its first row group. Raises IndexError if that is incomplete."""
    position, field = 0, 0
    while data[position]:
        header, position = data[position], position + 1
        if header < 1 << 4:
            return None  # the required fields are adjacent
        field += header >> 4
        if field == _ROW_GROUPS:
            if header & 15 != _LIST:
                return None
            number, kind, begin = _list_header(data, position)
            if kind != _STRUCT or not number:
                return None
            end = _after(data, begin, _STRUCT)
            return b"".join((data[:position], bytes([1 << 4 | _STRUCT]), data[begin:end], b"\0"))
        position = _after(data, position, header & 15)
    return None


def _after(data: bytes, position: int, kind: int) -> int:
    """Return the position after the value of a Thrift type at a position. Raises IndexError beyond the data."""
    if kind == _STRUCT:
        while header := data[position]:
            position = _after(data, position + 1 if header >> 4 else _after_integer(data, position + 1), header & 15)
        return position + 1
    if kind in _INTEGERS:
        return _after_integer(data, position)
    if kind == _BINARY:
        length, position = _integer(data, position)
        return position + length
    if kind in (_LIST, _SET):
        number, kind, position = _list_header(data, position)
        if kind in (_TRUE, _FALSE, _BYTE):
            return position + number
        for _ in range(number):
            position = _after(data, position, kind)
        return position
    if kind in (_TRUE, _FALSE):  # in a field, whose header contains it
        return position
    if kind in (_BYTE, _DOUBLE):
        return position + (1 if kind == _BYTE else 8)
    raise IndexError("maps and unknown types do not occur")


def _list_header(data: bytes, position: int) -> tuple[int, int, int]:
    """Return the length of a list, the Thrift type of its elements, and their position."""
    header = data[position]
    if header >> 4 < _MANY:
        return header >> 4, header & 15, position + 1
    number, position = _integer(data, position + 1)
    return number, header & 15, position


def _integer(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7


def _after_integer(data: bytes, position: int) -> int:
    while data[position] > 127:
        position += 1
    return position + 1
