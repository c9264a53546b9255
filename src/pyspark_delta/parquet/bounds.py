"""Whether the statistics of a column in a footer can be read: bounds and histograms must fit the column.

Arrow checks them when a column is looked at, and ends the whole process if they are wrong: its error does not reach
Python. To parse a footer in Python would take as long as everything else that opens a table, so a column is found by
its path in the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq

from pyspark_delta.parquet.footer import BOUNDS, BYTE_ARRAY, FIXED, TYPES, WIDTHS, FooterError, Leaf, parse_footer
from pyspark_delta.parquet.thrift import BINARY, FALSE, I32, I64, LIST, ThriftError, list_header, read_integer, skip

_PATH, _OFFSET, _STATISTICS, _SIZES = 3, 9, 12, 16  # fields of ColumnMetaData
_REPETITIONS = 2  # a field of SizeStatistics
_ENCRYPTION = 8  # a field of ColumnChunk, after its metadata
_METADATA = 3
_ANYWHERE = 1 << 62  # a position in a file
_LIST_NEXT = bytes([1 << 4 | LIST])  # the header of a list in the field after the one before
_LAST_CODEC = 7  # LZ4_RAW
_SHORT = 15  # a list of fewer elements has its length in its first byte
_LONG = 15 << 4  # the length of others follows their first byte


def check_statistics(footer: bytes, metadata: pq.FileMetaData, leaf: int) -> None:
    """Raise FooterError or ThriftError unless Arrow can read the metadata of a leaf in all row groups.

    `metadata` is the footer as Arrow has parsed it.
    """
    column = metadata.schema.column(leaf)
    kind = TYPES[column.physical_type]
    width = column.length if kind == FIXED else WIDTHS.get(kind)
    reader = _Chunks(footer, Leaf((), kind, width, column.max_definition_level, column.max_repetition_level))
    offsets = [offset for place in _places(footer, column.path) if (offset := reader.offset(place)) is not None]
    if len(offsets) != metadata.num_row_groups:  # text in the footer may look like a path
        parse_footer(footer, _ANYWHERE)  # checks all columns
        return
    for number, offset in enumerate(offsets):
        group = metadata.row_group(number)
        if group.num_columns != metadata.num_columns:
            raise FooterError(f"a row group has {group.num_columns} columns, the schema {metadata.num_columns}")
        found = group.column(leaf)
        if (found.physical_type, found.data_page_offset) != (column.physical_type, offset):
            raise FooterError("a column of a row group is not that of the schema")


def check_codecs(footer: bytes) -> None:
    """Raise FooterError or ThriftError unless Arrow can name the codecs of all columns, and the footer is sound."""
    for group in parse_footer(footer, _ANYWHERE).row_groups:
        for chunk in group.chunks:
            if not 0 <= chunk.codec <= _LAST_CODEC:
                raise FooterError(f"a column has the unknown codec {chunk.codec}")


def _places(footer: bytes, path: str) -> Iterator[int]:
    """Yield where the path of a column ends in the footer, for each time that it occurs.

    The header of its field, which follows the required encodings, tells it from a name in the schema.
    """
    names = [name.encode() for name in path.split(".")]
    count = bytes([len(names) << 4 | BINARY]) if len(names) < _SHORT else bytes([_LONG | BINARY]) + _number(len(names))
    sought = _LIST_NEXT + count + b"".join(_number(len(name)) + name for name in names)
    at = footer.find(sought)
    while at >= 0:
        yield at + len(sought)
        at = footer.find(sought, at + len(sought))


def _number(value: int) -> bytes:
    """Return a number in the form that Thrift gives to lengths: seven bits a byte, the lowest first."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


class _Chunks:
    """Reads chunks of one column from a footer. The kinds of its values are skipped here: calls take most time."""

    def __init__(self, footer: bytes, leaf: Leaf) -> None:
        self._footer = footer
        self._leaf = leaf

    def offset(self, position: int) -> int | None:
        """Return the data page offset of the chunk whose path ends at a position; None if it is not one, or is wrong.

        What follows the path are the other fields of ColumnMetaData, and then those of ColumnChunk.
        """
        footer, number, offset = self._footer, _PATH, None
        try:
            while header := footer[position]:
                delta, kind, position = header >> 4, header & 15, position + 1
                number += delta
                if number == _OFFSET:
                    offset, _ = read_integer(footer, position)
                if number == _STATISTICS:
                    position = self._after_bounds(position)
                elif number == _SIZES:
                    position = self._after_sizes(position)
                elif kind in (I32, I64):
                    while footer[position] > 127:
                        position += 1
                    position += 1
                elif kind > FALSE:
                    position = skip(footer, position, kind)
                if not delta:
                    return None
            is_encrypted = _METADATA + (footer[position + 1] >> 4) >= _ENCRYPTION
        except (ThriftError, IndexError):
            return None
        return None if is_encrypted else offset

    def _after_bounds(self, position: int) -> int:
        """Return the position after Statistics. Raises ThriftError if a bound has another size than values."""
        footer, width, number = self._footer, self._leaf.width, 0
        while header := footer[position]:
            kind, position = header & 15, position + 1
            number += header >> 4
            if kind == BINARY and width is not None and number in BOUNDS:
                if footer[position] != width:
                    raise ThriftError("a bound is not a value of its type")
                position += width + 1
            elif kind == I64:
                while footer[position] > 127:
                    position += 1
                position += 1
            elif kind > FALSE:
                position = skip(footer, position, kind)
        return position + 1

    def _after_sizes(self, position: int) -> int:
        """Return the position after SizeStatistics. Raises ThriftError if they have other levels than the column."""
        footer, leaf, number = self._footer, self._leaf, 0
        while header := footer[position]:
            kind, position = header & 15, position + 1
            number += header >> 4
            if kind == LIST:
                found, _, begin = list_header(footer, position)
                level = leaf.repetition_level if number == _REPETITIONS else leaf.definition_level
                if found not in (0, level + 1):
                    raise ThriftError("the levels of a column are not those of the schema")
                position = begin
                for _ in range(found):
                    while footer[position] > 127:
                        position += 1
                    position += 1
            elif leaf.type != BYTE_ARRAY:
                raise ThriftError("a column without texts has sizes of texts")
            else:
                position = skip(footer, position, kind)
        return position + 1
