"""The pages of a column chunk, checked while their bytes pass by: they fill the chunk, and have all its values.

A footer with a wrong place of a column can look right; its bytes do not.
"""

from __future__ import annotations

from pyspark_delta.parquet.footer import FooterError
from pyspark_delta.parquet.thrift import I32, STRUCT, Data, EndsEarlyError, Struct, ThriftError, read_struct

_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3  # page types
_HEADERS = {_DATA: 5, _DATA_2: 8}  # the field of a page header with the header of its type
_LONGEST_HEADER = 1 << 24  # bytes; it may have bounds, and texts are long at times


def is_second_version(data: Data) -> bool:
    """Return True if a data page at the beginning of some bytes is of version 2. Raises FooterError, ThriftError."""
    kind = _number(read_struct(data)[0], 1)
    if kind not in _HEADERS:
        raise FooterError("the first data page of a column is not where its footer says")
    return kind == _DATA_2


class PageCheck:
    """Checks the bytes of one column chunk, which `feed` gets in order."""

    def __init__(self, size: int, num_values: int, *, second_version: bool) -> None:
        self._size = size
        self._values = num_values
        self._data_type = _DATA_2 if second_version else _DATA
        self._body = 0  # bytes of a page that are still to come
        self._begun = b""  # of a header

    def feed(self, data: Data) -> None:
        """Check more bytes. Raises FooterError."""
        self._size -= len(data)
        position = min(self._body, len(data))
        self._body -= position
        if position == len(data):
            return
        rest = self._begun + bytes(data[position:]) if self._begun else data[position:]
        self._begun = b""
        position = 0
        while position < len(rest):
            header = self._header(rest, position)
            if header is None:
                self._begun = bytes(rest[position:])
                return
            fields, position = header
            size = self._page(fields)
            inside = min(size, len(rest) - position)
            self._body = size - inside
            position += inside

    def finish(self) -> None:
        """Check that the chunk is complete. Raises FooterError."""
        if self._size or self._body or self._begun or self._values:
            raise FooterError("the pages of a column do not have the sizes and values that its footer says")

    def _header(self, data: Data, position: int) -> tuple[Struct, int] | None:
        """Return the page header at a position and the position after it; None if more bytes are needed."""
        try:
            return read_struct(data, position)
        except EndsEarlyError:
            if self._size and len(data) - position < _LONGEST_HEADER:
                return None
            raise FooterError("the pages of a column end within a header") from None
        except ThriftError as error:
            raise FooterError(f"a page header is damaged: {error}") from None

    def _page(self, fields: Struct) -> int:
        """Count the values of a page, and return its size."""
        kind, size = _number(fields, 1), _number(fields, 3)
        if size < 0:
            raise FooterError("a page has a negative size")
        if kind in _HEADERS:
            inner = fields.get(_HEADERS[kind])
            if kind != self._data_type or inner is None or inner.kind != STRUCT:
                raise FooterError("a column has pages of another version of Parquet")
            self._values -= _number(inner.value, 1)
        return size


def _number(fields: Struct, number: int) -> int:
    field = fields.get(number)
    if field is None or field.kind != I32:
        raise FooterError("a page header lacks a field")
    value: int = field.value
    return value
