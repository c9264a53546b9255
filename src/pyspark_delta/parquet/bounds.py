"""Whether the statistics of a column in a footer can be read: a bound must have the size of a value of its column.

Arrow decodes statistics when they are asked for, and ends the whole process if one is too short: its error does not
reach Python. To parse a footer in Python would take as long as everything else that opens a table, so the column is
found by its name.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq

from pyspark_delta.parquet.footer import FIXED, WIDTHS, FooterError, check_bounds, parse_footer
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

_TYPES = {"BOOLEAN": 0, "INT32": 1, "INT64": 2, "INT96": 3, "FLOAT": 4, "DOUBLE": 5, "FIXED_LEN_BYTE_ARRAY": FIXED}
_PATH, _OFFSET, _STATISTICS = 3, 9, 12  # fields of ColumnMetaData
_ANYWHERE = 1 << 62  # a position in a file
_SHORT = 15  # a list of fewer elements has its length in its first byte, a text of up to 127 bytes too


def check_statistics(footer: bytes, metadata: pq.FileMetaData, leaf: int) -> None:
    """Raise FooterError or ThriftError unless Arrow can read the statistics of a leaf in all row groups.

    `metadata` is the footer as Arrow has parsed it.
    """
    column = metadata.schema.column(leaf)
    offsets = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if group.num_columns != metadata.num_columns:
            raise FooterError(f"a row group has {group.num_columns} columns, the schema {metadata.num_columns}")
        chunk = group.column(leaf)
        if chunk.physical_type != column.physical_type:
            raise FooterError("a column of a row group has another type than in the schema")
        offsets.append(chunk.data_page_offset)
    if column.physical_type not in _TYPES:
        return
    kind = _TYPES[column.physical_type]
    width = column.length if kind == FIXED else WIDTHS[kind]
    found = _statistics(footer, column.path)
    if len(found) < len(offsets) or not all(offset in found for offset in offsets):
        parse_footer(footer, _ANYWHERE)  # it checks all bounds
        return
    for offset in offsets:
        check_bounds(found[offset], width)


def _statistics(footer: bytes, path: str) -> dict[int, Struct]:
    """Return the statistics of the chunks of a column by their data page offsets; nothing if it cannot be told.

    Text in the footer may look like the path, but has no place of a column after it.
    """
    found: dict[int, Struct] = {}
    for place in _places(footer, path):
        try:
            chunk = _offset_and_statistics(footer, place)
        except (ThriftError, IndexError):
            continue
        if chunk is None:
            continue
        offset, statistics = chunk
        if offset in found:
            return {}
        found[offset] = statistics
    return found


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


def _offset_and_statistics(footer: bytes, position: int) -> tuple[int, Struct] | None:
    """Return two of the fields of ColumnMetaData that follow its path; None if these are others."""
    number, offset = _PATH, None
    statistics: Struct = {}
    while (header := footer[position]) and number < _STATISTICS:
        delta, kind = header >> 4, header & 15
        number, position = number + delta, position + 1
        if not delta:
            return None
        if number == _OFFSET and kind == I64:
            offset, position = read_integer(footer, position)
        elif number == _STATISTICS and kind == STRUCT:
            statistics, position = read_struct(footer, position)
        elif kind > FALSE:
            position = skip(footer, position, kind)
    return None if offset is None else (offset, statistics)
