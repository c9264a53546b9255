"""Footers that differ in nothing but their values, read together: one step over all files instead of one over each.

Files of one writer and one schema have the same fields in the same order. The fields of an example are followed, and
each step is done for all the others at once. A footer with other fields is not read here, so the example has to be one
that Arrow can read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from pyspark_delta.parquet.footer import Footer, FooterError, Leaf, parse_footer
from pyspark_delta.parquet.thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    SET,
    STRUCT,
    ThriftError,
    read_integer,
    skip,
)

T = TypeVar("T")
Numbers: TypeAlias = npt.NDArray[np.int64]
Bits: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]

_ANYWHERE = 1 << 62  # a position in a file
_SCHEMA, _ROWS, _GROUPS, _ENCRYPTION = 2, 3, 4, 8  # fields of FileMetaData
_LONG = 15  # a list of fewer elements has its length in its first byte
_MOST_ELEMENTS = 1000  # of a list: each takes a step
_MOST_SHIFT = 63


class Slices(NamedTuple):
    """A value of bytes of each footer: where it starts in the data of all footers, and its length."""

    starts: Numbers
    lengths: Numbers


class ChunkValues(NamedTuple):
    """The statistics of a column in each footer. `null_counts` and the bounds are None if the footers have none."""

    null_counts: Numbers | None
    lowest: Slices | None
    highest: Slices | None


@dataclass(frozen=True, slots=True)
class AlikeFooters:
    """The values of some footers: `positions` are their places in the list that was given.

    `data` are all footers, to which slices refer.
    """

    positions: Numbers
    data: Bytes
    num_rows: Numbers
    chunks: tuple[ChunkValues, ...]

    def integers(self, slices: Slices, kind: str) -> npt.NDArray[Any]:
        """Return values of a fixed size as NumPy's little-endian `kind`, such as `<i4`."""
        width = np.dtype(kind).itemsize
        places = slices.starts[:, None] + np.arange(width)
        return np.ascontiguousarray(self.data[places]).view(kind)[:, 0]

    def binaries(self, slices: Slices) -> list[bytes]:
        """Return values as bytes."""
        data = self.data.tobytes()
        ends = slices.starts + slices.lengths
        return [data[start:end] for start, end in zip(slices.starts.tolist(), ends.tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class Likeness:
    """What footers that are alike have in common: the bytes before the number of rows, and after the row groups.

    `example` is one of them, whose fields the others have.
    """

    example: bytes
    before: bytes
    after: bytes
    leaves: tuple[Leaf, ...]

    @classmethod
    def of(cls, footer: bytes) -> Likeness | None:
        """Return what others may have in common with a footer of one row group; None if it cannot be read here."""
        try:
            known = parse_footer(footer, _ANYWHERE)
            return cls._of(footer, known) if len(known.row_groups) == 1 and known.has_orders else None
        except (FooterError, ThriftError):
            return None

    @classmethod
    def _of(cls, footer: bytes, known: Footer) -> Likeness | None:
        starts: dict[int, int] = {}
        ends: dict[int, int] = {}
        for number, start, end in _fields(footer):
            starts[number], ends[number] = start, end
        if list(starts)[:4] != [1, _SCHEMA, _ROWS, _GROUPS] or _ENCRYPTION in starts:
            return None
        return cls(footer, footer[: starts[_ROWS]], footer[ends[_GROUPS] :], known.leaves)

    def is_of(self, footer: bytes) -> bool:
        """Return True if a footer begins and ends as the others do."""
        return footer.startswith(self.before) and footer.endswith(self.after)

    def read(self, footers: Sequence[bytes]) -> AlikeFooters | None:
        """Return the values of footers for which `is_of` is true, without those that lack the fields of the example.

        None if the example has something that is not read here.
        """
        data = np.frombuffer(b"".join((self.example, *footers, b"\0")), np.uint8)
        ends = np.cumsum([len(self.example), *map(len, footers)])
        starts = np.append(0, ends[:-1])
        walk = _Walk(data, starts + len(self.before))
        try:
            values = walk.struct(_ROWS - 1, last=_GROUPS)
            rows, (group,) = _numbers(values[_ROWS]), values[_GROUPS]
            chunks = [
                _chunk(walk, chunk, leaf, rows) for chunk, leaf in zip(_struct(group)[1], self.leaves, strict=True)
            ]
            walk.require(_numbers(group[3]) == rows)
        except (_OtherFieldsError, KeyError, TypeError, ValueError):
            return None
        sound = walk.sound & (walk.at == ends - len(self.after))
        sound[0] = False  # the example
        return AlikeFooters(
            np.flatnonzero(sound) - 1, data, rows[sound], tuple(_chosen(chunk, sound) for chunk in chunks)
        )


class _OtherFieldsError(Exception):
    """The example has something that is not read here."""


class _Walk:
    """Positions in all footers, which move together. `sound` marks the footers with the same fields up to there.

    The positions in other footers mean nothing, but stay inside of the data.
    """

    def __init__(self, data: Bytes, at: Numbers) -> None:
        self.data = data
        self.at = at
        self.sound: Bits = np.ones(len(at), bool)
        self._last = len(data) - 1

    def require(self, condition: Bits) -> None:
        """Take only the footers for which a condition is true."""
        self.sound &= condition

    def struct(self, number: int = 0, last: int = 0) -> dict[int, Any]:
        """Return the fields of a struct after the field `number`, to its end or to the field `last`."""
        found: dict[int, Any] = {}
        while number != last or not last:
            header = self._same_byte()
            if not header:
                break
            if not header >> 4:
                raise _OtherFieldsError
            number += header >> 4
            found[number] = self._value(header & 15)
        return found

    def _value(self, kind: int) -> Any:
        if kind <= FALSE:
            return kind
        if kind in (I16, I32, I64):
            value = self._unsigned()
            return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)
        if kind == BINARY:
            lengths = np.minimum(self._unsigned(), np.uint64(self._last)).astype(np.int64)
            starts = self.at
            self._forward(lengths)
            return Slices(starts, lengths)
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            return self._list()
        if kind in (BYTE, DOUBLE):
            self._forward(1 if kind == BYTE else 8)
            return None
        raise _OtherFieldsError

    def _list(self) -> list[Any]:
        header = self._same_byte()
        number, kind = header >> 4, header & 15
        if number == _LONG:
            lengths = self._unsigned()
            self.require(lengths == lengths[0])
            number = int(lengths[0])
        if number > _MOST_ELEMENTS or kind <= FALSE:
            raise _OtherFieldsError
        return [self._value(kind) for _ in range(number)]

    def _same_byte(self) -> int:
        found = self.data[self.at]
        self.require(found == found[0])
        self._forward(1)
        return int(found[0])

    def _unsigned(self) -> npt.NDArray[np.uint64]:
        byte = self.data[self.at]
        value = (byte & 127).astype(np.uint64)
        self._forward(1)
        more, shift = byte > 127, 7
        while more.any():
            if shift > _MOST_SHIFT:
                self.require(~more)
                break
            byte = self.data[self.at]
            value |= np.where(more, byte & 127, 0).astype(np.uint64) << np.uint64(shift)
            self._forward(more)
            more &= byte > 127
            shift += 7
        return value

    def _forward(self, by: int | Numbers | Bits) -> None:
        self.at = np.minimum(self.at + by, self._last)


def _fields(footer: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the number of each field of a footer, where it starts, and where it ends."""
    position = number = 0
    while header := footer[position]:
        start, position = position, position + 1
        if header >> 4:
            number += header >> 4
        else:
            number, position = read_integer(footer, position)
        kind = header & 15
        position = position if kind <= FALSE else skip(footer, position, kind)
        yield number, start, position


def _chunk(walk: _Walk, chunk: Any, leaf: Leaf, rows: Numbers) -> ChunkValues:
    """Return the statistics of a column. Footers in which it is not what the schema says are not sound."""
    if _struct(chunk).keys() & {1, 8, 9}:
        raise _OtherFieldsError  # it is encrypted, or in another file
    fields = _struct(chunk[3])
    walk.require(_numbers(fields[1]) == leaf.type)
    for names, name in zip(fields[3], leaf.path, strict=True):
        _require_equal(walk, _slices(names), name)
    if not leaf.repetition_level:
        walk.require(_numbers(fields[5]) == rows)
    statistics = _struct(fields.get(12, {}))
    null_counts = _numbers(statistics[3]) if 3 in statistics else None
    if not statistics.keys() & {1, 2, 5, 6}:
        return ChunkValues(null_counts, None, None)
    if not statistics.keys() >= {5, 6}:
        raise _OtherFieldsError  # bounds of old writers
    lowest, highest = _slices(statistics[6]), _slices(statistics[5])
    if leaf.width is not None:
        walk.require((lowest.lengths == leaf.width) & (highest.lengths == leaf.width))
    return ChunkValues(null_counts, lowest, highest)


def _struct(value: Any) -> dict[int, Any]:
    return _of_kind(value, dict)


def _slices(value: Any) -> Slices:
    return _of_kind(value, Slices)


def _numbers(value: Any) -> Numbers:
    return _of_kind(value, np.ndarray)


def _of_kind(value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise _OtherFieldsError
    return value


def _require_equal(walk: _Walk, found: Slices, expected: bytes) -> None:
    walk.require(found.lengths == len(expected))
    places = np.minimum(found.starts[:, None] + np.arange(len(expected)), len(walk.data) - 1)
    walk.require((walk.data[places] == np.frombuffer(expected, np.uint8)).all(axis=1))


def _chosen(values: ChunkValues, rows: Bits) -> ChunkValues:
    nulls, lowest, highest = values
    return ChunkValues(
        None if nulls is None else nulls[rows],
        None if lowest is None else Slices(lowest.starts[rows], lowest.lengths[rows]),
        None if highest is None else Slices(highest.starts[rows], highest.lengths[rows]),
    )
