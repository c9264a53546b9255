"""Slice values out of many JSON texts with the same members in the same order, such as the statistics of one writer.

In the first text, each value is found between two quotation marks, counted from the start. If all texts have the same
number of marks, equal content between them except for numbers, and the same names before the values, then the values
are at the same marks in every text, and none has to be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Offsets: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Path: TypeAlias = tuple[str, ...]

_FEWEST = 256  # texts; parsing fewer takes no longer
_SAMPLE = 16  # texts
_MOST_MARKS = 4096  # in a text; a wider table is not worth so much memory
_MARK, _BACKSLASH, _OPEN, _CLOSE = map(ord, '"\\{}')
_BRACKETS = frozenset({_OPEN, _CLOSE})
_AFTER_NAME = re.compile(rb":(?:(\{)|([-+.0-9A-Za-z]+)(\}*,|\}+)|)")
_AFTER_TEXT = re.compile(rb"\}*,|\}+")


@dataclass(frozen=True, slots=True)
class _Value:
    """The position of a value: after mark `mark` (from 0) in a text (`quoted`), or unquoted in the gap after a name.

    `names` are the marks that begin the names on the way to it. `gap` is the one that follows its name.
    """

    mark: int
    quoted: bool
    names: tuple[int, ...]

    @property
    def gap(self) -> int:
        return self.names[-1] // 2 + 1


@dataclass(frozen=True, slots=True)
class _Gap:
    """The content between two quoted strings: how it begins and ends, and whether it contains an unquoted value."""

    begin: bytes
    end: bytes
    bare: bool = False


@dataclass(frozen=True)
class _Shape:
    """The common shape of all texts; `gaps` are those before the marks 0, 2, 4 and so on, and after the last one."""

    gaps: list[_Gap] = field(default_factory=list)
    values: dict[Path, _Value] = field(default_factory=dict)


def slice_uniform(
    data: Bytes, starts: Offsets, ends: Offsets, quoted: Mapping[Path, bool]
) -> dict[Path, pa.Array] | None:
    """Return the values at some paths, exactly as written; None if the texts have no uniform shape.

    `starts` and `ends` are those of the texts in `data`, which has nothing else between them.
    """
    if len(starts) < _FEWEST:
        return None
    first, last = int(starts[0]), int(ends[-1])
    data, starts, ends = data[first:last], starts - first, ends - first
    shape = _shape(data[: int(ends[0])].tobytes()) if _sample_is_alike(data, starts, ends) else None
    if shape is None or any(path not in shape.values or shape.values[path].quoted != q for path, q in quoted.items()):
        return None
    count, number = 2 * (len(shape.gaps) - 1), len(starts)
    if count > _MOST_MARKS or (data == _BACKSLASH).any():
        return None
    for bracket in _BRACKETS:  # some are inside of strings, or misplaced between texts
        in_shape = sum(gap.begin.count(bracket) + gap.end.count(bracket) for gap in shape.gaps)
        if np.count_nonzero(data == bracket) != number * in_shape:
            return None
    found = np.flatnonzero(data == _MARK)
    if len(found) != number * count:
        return None
    marks = found.reshape(number, count).T  # of all texts: the first ones, the second ones, and so on
    needed = [shape.values[path] for path in quoted]
    if not _fits(data, starts, ends, marks, shape, {value.gap for value in needed}):
        return None
    names = {mark: name for path in quoted for mark, name in zip(shape.values[path].names, path, strict=True)}
    if not all(_is_name(data, marks, mark, name.encode()) for mark, name in names.items()):
        return None
    return {path: _cut(data, marks, ends, shape, shape.values[path]) for path in quoted}


def _sample_is_alike(data: Bytes, starts: Offsets, ends: Offsets) -> bool:
    """True if a sample of the texts has the same number of marks: a quick test before all are checked."""
    chosen = range(0, len(starts), max(1, len(starts) // _SAMPLE))
    return len({data[int(starts[i]) : int(ends[i])].tobytes().count(b'"') for i in chosen}) == 1


def _shape(text: bytes) -> _Shape | None:
    """Return the shape of one text; None if it has spaces, lists or empty objects, or is not an object."""
    parts = text.split(b'"')
    if len(parts) % 2 == 0 or len(parts) < 3 or parts[0] != b"{":
        return None
    shape = _Shape([_Gap(b"{", b"")])
    path: list[str] = []
    names: list[int] = []
    is_name = True
    for number, (inside, gap) in enumerate(zip(parts[1::2], parts[2::2], strict=True)):
        if is_name:
            path.append(inside.decode(errors="replace"))
            names.append(2 * number)
        found = (_AFTER_NAME if is_name else _AFTER_TEXT).fullmatch(gap)
        if found is None:
            return None
        if is_name and found[1]:
            shape.gaps.append(_Gap(gap, b""))
            continue
        if is_name and not found[2]:
            shape.gaps.append(_Gap(gap, b""))
            is_name = False
            continue
        end = found[3] if is_name else gap
        value = _Value(2 * number + 1 if is_name else 2 * number, not is_name, tuple(names))
        if shape.values.setdefault(tuple(path), value) is not value:
            return None  # the same name twice
        shape.gaps.append(_Gap(b":", end, bare=True) if is_name else _Gap(b"", end))
        closed = 1 + end.count(b"}")
        is_last = number == len(parts) // 2 - 1
        if (closed > len(path)) != is_last or end.endswith(b",") == is_last or closed > len(path) + 1:
            return None
        del path[-closed:], names[-closed:]
        is_name = True
    return shape if is_name and not path else None


def _fits(data: Bytes, starts: Offsets, ends: Offsets, marks: Offsets, shape: _Shape, needed: Container[int]) -> bool:
    """True if all texts have the brackets of the shape, and those gaps that are `needed`.

    Since there are no other brackets, every name and value is then at the same depth, and in the same objects, as in
    the shape.
    """
    last = len(shape.gaps) - 1
    for number, gap in enumerate(shape.gaps):
        if number not in needed and number != last and not (_BRACKETS & {*gap.begin, *gap.end}):
            continue
        left = starts if number == 0 else marks[2 * number - 1] + 1
        right = ends if number == last else marks[2 * number]
        lengths, fixed = right - left, len(gap.begin) + len(gap.end)
        if lengths.min() <= fixed if gap.bare else not (lengths == fixed).all():
            return False  # or, in the first or last gap, the marks are not those of their own text
        if not _has(data, left, gap.begin) or not _has(data, right - len(gap.end), gap.end):
            return False
    return True


def _has(data: Bytes, places: Offsets, expected: bytes) -> bool:
    """True if these bytes occur at all positions; eight bytes are compared at a time."""
    offset = 0
    if len(expected) >= 8:
        words = np.ndarray((len(data) - 7,), np.uint64, data, strides=(1,))
        for offset in range(0, len(expected) - 7, 8):
            word = np.frombuffer(expected, np.uint64, 1, offset)
            if not (words[places + offset] == word).all():
                return False
        offset += 8
    return all((data[places + at] == expected[at]).all() for at in range(offset, len(expected)))


def _is_name(data: Bytes, marks: Offsets, mark: int, name: bytes) -> bool:
    begin = marks[mark] + 1
    return bool((marks[mark + 1] - begin == len(name)).all()) and _has(data, begin, name)


def _cut(data: Bytes, marks: Offsets, ends: Offsets, shape: _Shape, value: _Value) -> pa.Array:
    if value.quoted:
        begin, end = marks[value.mark] + 1, marks[value.mark + 1]
    else:
        gap = shape.gaps[value.gap]
        begin = marks[value.mark] + 1 + len(gap.begin)
        end = (ends if value.gap == len(shape.gaps) - 1 else marks[value.mark + 1]) - len(gap.end)
    return _texts(data, begin, end - begin)


def _texts(data: Bytes, begin: Offsets, lengths: Offsets) -> pa.Array:
    """Return slices of the data as one array."""
    offsets = np.zeros(len(begin) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    taken = data[np.repeat(begin - offsets[:-1], lengths) + np.arange(offsets[-1])]
    return pa.StringArray.from_buffers(
        len(begin), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(taken))
    )
