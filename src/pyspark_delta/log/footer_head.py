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

from pyspark_delta.parquet.thrift import LIST, STRUCT, ThriftError, list_header, skip

LONG = 1 << 16
"""The size in bytes from which a footer counts as long."""

_MAGIC = b"PAR1"
_TRAILER = 8  # bytes: the length of the footer, and the magic number
_ROW_GROUPS = 4  # a field of FileMetaData


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
    except (ThriftError, IndexError, pa.ArrowException, OSError, ValueError, MemoryError):
        return None


def _as_file(footer: bytes) -> bytes:
    return b"".join((_MAGIC, footer, len(footer).to_bytes(4, "little"), _MAGIC))


def _cut(data: bytes) -> bytes | None:
    """Return this footer, truncated after its first row group. Raises ThriftError if that is incomplete."""
    position, field = 0, 0
    while data[position]:
        header, position = data[position], position + 1
        if header < 1 << 4:
            return None  # the required fields are adjacent
        field += header >> 4
        if field == _ROW_GROUPS:
            if header & 15 != LIST:
                return None
            number, kind, begin = list_header(data, position)
            if kind != STRUCT or not number:
                return None
            end = skip(data, begin, STRUCT)
            return b"".join((data[:position], bytes([1 << 4 | STRUCT]), data[begin:end], b"\0"))
        position = skip(data, position, header & 15)
    return None
