"""Thrift's compact protocol, the encoding of Parquet footers and page headers.

Structs are read without a definition of their fields and written back with all of them, so fields of later versions of
Parquet stay as they are. Data from files may be damaged: every function raises ThriftError then.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_INTEGERS = frozenset({I16, I32, I64})
_ONE_BYTE = frozenset({TRUE, FALSE, BYTE})  # in a list; in a struct, the header of a field holds a truth value
_LONG_LIST = 15  # in the header of a list: its length follows
_DEEPEST = 32  # structs and lists in each other; footers have less than ten
_MOST_SHIFT = 63


class ThriftError(ValueError):
    """The data are not valid in the compact protocol."""


class EndsEarlyError(ThriftError):
    """The data end within a value."""


class Field(NamedTuple):
    """One field of a struct: the kind and the value.

    Integers are int, doubles the eight bytes as they are stored, binaries bytes, lists and sets `Elements`, structs
    `Struct`. The value of TRUE and FALSE is the kind.
    """

    kind: int
    value: Any


class Elements(NamedTuple):
    """The elements of a list or a set, and their kind. Truth values are the stored bytes."""

    kind: int
    values: list[Any]


Struct: TypeAlias = dict[int, Field]
"""The fields of a struct by number."""

Data: TypeAlias = bytes | memoryview


def read_struct(data: Data, position: int = 0) -> tuple[Struct, int]:
    """Return the struct at a position, and the position after it."""
    try:
        return _struct(data, position, 0)
    except IndexError:
        raise _ends_early() from None


def read_integer(data: Data, position: int) -> tuple[int, int]:
    """Return the integer at a position, and the position after it."""
    try:
        return _signed(data, position)
    except IndexError:
        raise _ends_early() from None


def skip(data: Data, position: int, kind: int) -> int:
    """Return the position after the value of a kind at a position."""
    try:
        end = _after(data, position, kind, 0)
    except IndexError:
        raise _ends_early() from None
    if end > len(data):
        raise _ends_early()
    return end


def list_header(data: Data, position: int) -> tuple[int, int, int]:
    """Return the number of elements of the list at a position, their kind, and the position of the first."""
    try:
        header = data[position]
        number, position = (header >> 4, position + 1) if header >> 4 < _LONG_LIST else _unsigned(data, position + 1)
    except IndexError:
        raise _ends_early() from None
    if number > len(data) - position:  # every element takes a byte or more
        raise _ends_early()
    return number, header & 15, position


def write_struct(struct: Struct) -> bytes:
    """Return a struct in the compact protocol, with its fields in the order of their numbers."""
    sink = bytearray()
    _write_struct(sink, struct)
    return bytes(sink)


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise ThriftError("values are nested too deeply")


def _ends_early() -> EndsEarlyError:
    return EndsEarlyError("the data end within a value")


# --------------------------------------------------------------------------------------------------------- reading
def _struct(data: Data, position: int, depth: int) -> tuple[Struct, int]:
    _check_depth(depth)
    found: Struct = {}
    number = 0
    while header := data[position]:
        position += 1
        if header >> 4:
            number += header >> 4
        else:
            number, position = _signed(data, position)
        if number in found:
            raise ThriftError(f"field {number} occurs twice")
        kind = header & 15
        value, position = (kind, position) if kind <= FALSE else _value(data, position, kind, depth + 1)
        found[number] = Field(kind, value)
    return found, position + 1


def _value(data: Data, position: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _signed(data, position)
    if kind == BINARY:
        length, position = _unsigned(data, position)
        return _bytes(data, position, length), position + length
    if kind == STRUCT:
        return _struct(data, position, depth)
    if kind in (LIST, SET):
        _check_depth(depth)
        number, kind, position = list_header(data, position)
        values = []
        for _ in range(number):
            value, position = (
                (data[position], position + 1) if kind in _ONE_BYTE else _value(data, position, kind, depth + 1)
            )
            values.append(value)
        return Elements(kind, values), position
    if kind == BYTE:
        return data[position], position + 1
    if kind != DOUBLE:
        raise ThriftError(f"values of the kind {kind} do not occur in Parquet")
    return _bytes(data, position, 8), position + 8


def _bytes(data: Data, position: int, length: int) -> bytes:
    if length > len(data) - position:
        raise _ends_early()
    return bytes(data[position : position + length])


def _after(data: Data, position: int, kind: int, depth: int) -> int:
    """Return the position after a value, which is beyond the data if they end early."""
    if kind == STRUCT:
        return _after_struct(data, position, depth)
    if kind in (LIST, SET):
        return _after_list(data, position, depth)
    if kind in _INTEGERS:
        return _after_integer(data, position)
    if kind == BINARY:
        length, position = _unsigned(data, position)
        return position + length
    if kind not in (BYTE, DOUBLE):
        raise ThriftError(f"values of the kind {kind} do not occur in Parquet")
    return position + (1 if kind == BYTE else 8)


def _after_struct(data: Data, position: int, depth: int) -> int:
    """Like `_after`. The kinds that make up a footer are skipped in this loop, because calls would take most time."""
    _check_depth(depth)
    while header := data[position]:
        position += 1
        if header < 16:  # the number of the field follows
            position = _after_integer(data, position)
        kind = header & 15
        if I16 <= kind <= I64:
            while data[position] > 127:
                position += 1
            position += 1
        elif kind == BINARY:
            length = data[position]
            if length > 127:
                length, position = _unsigned(data, position)
                position += length
            else:
                position += length + 1
        elif kind > FALSE:
            position = _after(data, position, kind, depth + 1)
    return position + 1


def _after_list(data: Data, position: int, depth: int) -> int:
    _check_depth(depth)
    number, kind, position = list_header(data, position)
    if kind == STRUCT:
        for _ in range(number):
            position = _after_struct(data, position, depth + 1)
        return position
    if kind in _ONE_BYTE:
        return position + number
    for _ in range(number):
        position = _after(data, position, kind, depth + 1)
    return position


def _after_integer(data: Data, position: int) -> int:
    while data[position] > 127:
        position += 1
    return position + 1


def _unsigned(data: Data, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > _MOST_SHIFT:
            raise ThriftError("an integer has more than 64 bits")


def _signed(data: Data, position: int) -> tuple[int, int]:
    value, position = _unsigned(data, position)
    return value >> 1 ^ -(value & 1), position


# --------------------------------------------------------------------------------------------------------- writing
def _write_struct(sink: bytearray, struct: Struct) -> None:
    last = 0
    for number in sorted(struct):
        kind, value = struct[number]
        if 0 < number - last < 16:
            sink.append(number - last << 4 | kind)
        else:
            sink.append(kind)
            _write_signed(sink, number)
        last = number
        if kind > FALSE:
            _write(sink, kind, value)
    sink.append(0)


def _write(sink: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _write_signed(sink, value)
    elif kind == BINARY:
        _write_unsigned(sink, len(value))
        sink += value
    elif kind == STRUCT:
        _write_struct(sink, value)
    elif kind in (LIST, SET):
        number = len(value.values)
        if number < _LONG_LIST:
            sink.append(number << 4 | value.kind)
        else:
            sink.append(_LONG_LIST << 4 | value.kind)
            _write_unsigned(sink, number)
        for element in value.values:
            if value.kind in _ONE_BYTE:
                sink.append(element)
            else:
                _write(sink, value.kind, element)
    elif kind == BYTE:
        sink.append(value)
    else:
        sink += value


def _write_signed(sink: bytearray, value: int) -> None:
    _write_unsigned(sink, value << 1 ^ value >> 63)


def _write_unsigned(sink: bytearray, value: int) -> None:
    while value > 127:
        sink.append(value & 127 | 128)
        value >>= 7
    sink.append(value)
