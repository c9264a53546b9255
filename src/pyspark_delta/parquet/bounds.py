"""Whether the statistics of a column in a footer can be read: bounds and histograms must fit the column.

Arrow checks them when a column is looked at, and ends the whole process if they are wrong: its error does not reach
Python. To parse a footer in Python would take as long as everything else that opens a table, so a column is found by
its path in the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow.parquet as pq

from pyspark_delta.parquet.footer import (
    FIXED,
    TYPES,
    WIDTHS,
    FooterError,
    Leaf,
    check_bounds,
    check_histograms,
    parse_footer,
)
from pyspark_delta.parquet.thrift import (
    BINARY,
    FALSE,
    I64,
    STRUCT,
    Struct,
    ThriftError,
    read_integer,
    read_struct,
    skip,
)

_PATH, _OFFSET, _STATISTICS, _SIZES = 3, 9, 12, 16  # fields of ColumnMetaData
_ENCRYPTION = 8  # a field of ColumnChunk, after its metadata
_METADATA = 3
_ANYWHERE = 1 << 62  # a position in a file
_SHORT = 15  # a list of fewer elements has its length in its first byte, a text of up to 127 bytes too


def check_statistics(footer: bytes, metadata: pq.FileMetaData, leaf: int) -> None:
    """Raise FooterError or ThriftError unless Arrow can read the metadata of a leaf in all row groups.

    `metadata` is the footer as Arrow has parsed it.
    """
    column = metadata.schema.column(leaf)
    chunks = list(_chunks(footer, column.path))
    if len(chunks) != metadata.num_row_groups:  # text in the footer may look like a path
        parse_footer(footer, _ANYWHERE)  # checks all columns
        return
    kind = TYPES[column.physical_type]
    width = column.length if kind == FIXED else WIDTHS.get(kind)
    shape = Leaf((), kind, width, column.max_definition_level, column.max_repetition_level)
    for number, chunk in enumerate(chunks):
        check_bounds(chunk.statistics, width)
        check_histograms(chunk.sizes, shape)
        group = metadata.row_group(number)
        if group.num_columns != metadata.num_columns:
            raise FooterError(f"a row group has {group.num_columns} columns, the schema {metadata.num_columns}")
        found = group.column(leaf)
        if (found.physical_type, found.data_page_offset) != (column.physical_type, chunk.offset):
            raise FooterError("a column of a row group is not that of the schema")


class _Chunk(NamedTuple):
    offset: int
    statistics: Struct
    sizes: Struct


def _chunks(footer: bytes, path: str) -> Iterator[_Chunk]:
    """Yield the chunks of a column in the order of the footer."""
    for place in _places(footer, path):
        try:
            chunk = _chunk(footer, place)
        except (ThriftError, IndexError):
            continue
        if chunk is not None:
            yield chunk


def _places(footer: bytes, path: str) -> Iterator[int]:
    """Yield where the path of a column ends in the footer, for each time that it occurs."""
    names = [name.encode() for name in path.split(".")]
    if len(names) >= _SHORT or max(map(len, names)) > 127:
        return
    sought = bytes([len(names) << 4 | BINARY]) + b"".join(bytes([len(name)]) + name for name in names)
    at = footer.find(sought)
    while at >= 0:
        yield at + len(sought)
        at = footer.find(sought, at + len(sought))


def _chunk(footer: bytes, position: int) -> _Chunk | None:
    """Return what follows the path of a column; None if it is not that of a chunk, or the chunk is encrypted."""
    number, offset = _PATH, None
    statistics: Struct = {}
    sizes: Struct = {}
    while header := footer[position]:
        delta, kind = header >> 4, header & 15
        number, position = number + delta, position + 1
        if not delta:
            return None
        if number == _OFFSET and kind == I64:
            offset, position = read_integer(footer, position)
        elif number == _STATISTICS and kind == STRUCT:
            statistics, position = read_struct(footer, position)
        elif number == _SIZES and kind == STRUCT:
            sizes, position = read_struct(footer, position)
        elif number in (_STATISTICS, _SIZES):
            return None
        elif kind > FALSE:
            position = skip(footer, position, kind)
    if offset is None or _METADATA + (footer[position + 1] >> 4) >= _ENCRYPTION:
        return None
    return _Chunk(offset, statistics, sizes)
