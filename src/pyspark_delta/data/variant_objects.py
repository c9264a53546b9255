"""Building objects of the variant encoding from shredded and unshredded fields.

All fields of all rows are listed as entries (row, rank of the name, id in the row's dictionary, bytes), sorted, and
written out at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Integers = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# is_large, four-byte ids, four-byte offsets, object
_OBJECT_HEADER = (0b11111 << 2) | 2


@cache
def empty_metadata() -> pa.Scalar:
    """Return the metadata of variants without names."""
    return pa.scalar(b"\x01\x00\x00", pa.binary())  # at import, it would import pandas


@dataclass(frozen=True, slots=True)
class Entries:
    """Fields of objects: parallel arrays, `start` and `size` of the encoded value within `data`.

    `rank` is the place of the name in the order of all names, `id` its number in the metadata of the row.
    """

    row: Integers
    rank: Integers
    id: Integers
    start: Integers
    size: Integers
    data: Bytes

    def take(self, chosen: Any) -> Entries:
        """Return some entries, by positions or by a mask."""
        return Entries(
            self.row[chosen], self.rank[chosen], self.id[chosen], self.start[chosen], self.size[chosen], self.data
        )


def build_objects(fields: Mapping[str, pa.Array], rest: pa.Array, present: pa.Array, metadata: pa.Array) -> pa.Array:
    """Return one encoded object per row where `present`: the non-null `fields`, and the fields of the object in `rest`.

    Raises pa.ArrowInvalid if a row of `rest` is not an object, or a name is not in the row's metadata.
    """
    names = Names(pc.if_else(present, metadata, empty_metadata()))  # the metadata of other values are not used
    # Shredded fields come first: if a broken file repeats one in the rest, the first entry is kept.
    parts = [names.shredded(name, pc.if_else(present, encoded, None)) for name, encoded in fields.items()]
    parts.append(names.unshredded(rest))
    return write_objects(merge_entries(parts), len(metadata))


class Names:
    """The dictionaries of the rows' metadata: names to ids and to ranks in the order of their bytes.

    `every` has all names in that order. Raises pa.ArrowInvalid for a value that is not metadata of variants.
    """

    def __init__(self, metadata: pa.Array) -> None:
        encoded = metadata.dictionary_encode()
        self._of_row = np.asarray(encoded.indices).astype(np.int64)
        self._dictionaries = [_dictionary(blob) for blob in encoded.dictionary.to_pylist()]
        self.every = sorted({name for names in self._dictionaries for name in names})
        self._ranks = {name: rank for rank, name in enumerate(self.every)}
        self._first = np.concatenate([[0], np.cumsum([len(names) for names in self._dictionaries])]).astype(np.int64)
        flat = [self._ranks[name] for names in self._dictionaries for name in names]
        self._rank_of = np.array(flat, np.int64)

    def shredded(self, name: str, encoded: pa.Array) -> Entries:
        """Return the entries of one shredded field."""
        rows = np.flatnonzero(np.asarray(encoded.is_valid()))
        key = name.encode()
        ids = np.array([names.get(key, -1) for names in self._dictionaries], np.int64)[self._of_row[rows]]
        if (ids < 0).any():
            raise pa.ArrowInvalid(f"the metadata of a variant lacks the name of its shredded field '{name}'")
        offsets, data = binary_parts(encoded)
        rank = np.full(len(rows), self._ranks.get(key, -1), np.int64)
        return Entries(rows, rank, ids, offsets[rows], offsets[rows + 1] - offsets[rows], data)

    def unshredded(self, rest: pa.Array) -> Entries:
        """Return the entries of the objects in `rest`."""
        rows = np.flatnonzero(np.asarray(rest.is_valid()))
        offsets, data = binary_parts(rest)
        return self.entries(rows, offsets[rows], offsets[rows + 1], data)

    def entries(self, rows: Integers, start: Integers, end: Integers, data: Bytes) -> Entries:
        """Return the entries of objects of some rows. Each object is at `[start, end)` in `data`."""
        if (start >= end).any() or ((data[start] & 3) != 2).any():
            raise pa.ArrowInvalid("a partly shredded variant is not an object")
        header = data[start].astype(np.int64) >> 2
        offset_width, id_width, large = (header & 3) + 1, (header >> 2 & 3) + 1, header >> 4 & 1
        count_width = np.where(large == 1, 4, 1)
        counts = _numbers(data, start + 1, count_width)
        ids_at = start + 1 + count_width
        offsets_at = ids_at + counts * id_width
        values_at = offsets_at + (counts + 1) * offset_width
        if (values_at > end).any():
            raise pa.ArrowInvalid("an object of a variant is shorter than its fields")
        owner = np.repeat(np.arange(len(rows)), counts)
        entry = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        ids = _numbers(data, ids_at[owner] + entry * id_width[owner], id_width[owner])
        relative = _numbers(data, offsets_at[owner] + entry * offset_width[owner], offset_width[owner])
        total = _numbers(data, offsets_at + counts * offset_width, offset_width)
        sizes = _distances(owner, relative, total)
        dictionary = self._of_row[rows[owner]]
        positions = self._first[dictionary] + ids
        if (positions >= self._first[dictionary + 1]).any() or (values_at + total > end).any() or (sizes < 0).any():
            raise pa.ArrowInvalid("an object of a variant refers beyond its names or its bytes")
        return Entries(rows[owner], self._rank_of[positions], ids, values_at[owner] + relative, sizes, data)


def _dictionary(metadata: bytes) -> dict[bytes, int]:
    """Return the names in one metadata binary, with their ids. Raises pa.ArrowInvalid."""
    if not metadata or metadata[0] & 0x0F != 1:
        raise pa.ArrowInvalid("the metadata of a variant is not of version 1")
    width = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    if 1 + width * (count + 2) > len(metadata):  # before allocating the announced size
        raise pa.ArrowInvalid(f"the metadata of a variant declares {count} names, but is too short for them")
    offsets = [int.from_bytes(metadata[1 + width * (i + 1) : 1 + width * (i + 2)], "little") for i in range(count + 1)]
    text = metadata[1 + width * (count + 2) :]
    if offsets[-1] > len(text) or any(after < before for before, after in pairwise(offsets)):
        raise pa.ArrowInvalid("the names in the metadata of a variant overlap or exceed it")
    return {text[offsets[i] : offsets[i + 1]]: i for i in range(count)}


def _distances(owner: Integers, relative: Integers, total: Integers) -> Integers:
    """Return the size of each value. Values may be in any order: each ends at the next larger offset of its object."""
    order = np.lexsort((relative, owner))
    following = np.concatenate([relative[order][1:], [0]])
    last = np.concatenate([owner[order][1:] != owner[order][:-1], [True]])[: len(owner)]
    following = following[: len(owner)]
    reached = np.where(last, total[owner[order]], following)
    sizes = np.empty(len(owner), np.int64)
    sizes[order] = reached - relative[order]
    return sizes


def merge_entries(parts: list[Entries]) -> Entries:
    """Return all entries, sorted by row and name, with one `data` array and each name once per row."""
    bases = np.concatenate([[0], np.cumsum([len(part.data) for part in parts])]).astype(np.int64)
    row, rank, ident, size = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "rank", "id", "size")
    )
    start = np.concatenate([part.start + base for part, base in zip(parts, bases[:-1], strict=True)])
    order = np.lexsort((rank, row))  # stable
    row, rank = row[order], rank[order]
    first = np.ones(len(row), np.bool_)
    first[1:] = (row[1:] != row[:-1]) | (rank[1:] != rank[:-1])
    order = order[first]
    data = np.concatenate([part.data for part in parts])
    return Entries(row[first], rank[first], ident[order], start[order], size[order], data)


def write_objects(entries: Entries, rows: int) -> pa.Array:
    """Return one encoded object per row, from entries sorted by row and name. Raises pa.ArrowInvalid beyond 2 GiB."""
    counts = np.bincount(entries.row, minlength=rows).astype(np.int64)
    value_sizes = np.bincount(entries.row, weights=entries.size, minlength=rows).astype(np.int64)
    heads = 5 + counts * 4 + (counts + 1) * 4
    offsets = np.concatenate([[0], np.cumsum(heads + value_sizes)])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise pa.ArrowInvalid("the variants of one batch exceed 2 GiB")
    out = np.zeros(int(offsets[-1]), np.uint8)
    begin = offsets[:-1]
    out[begin] = _OBJECT_HEADER
    _put(out, begin + 1, counts)
    place = np.arange(len(entries.row)) - (np.cumsum(counts) - counts)[entries.row]
    own = begin[entries.row]
    _put(out, own + 5 + 4 * place, entries.id)
    before = np.cumsum(entries.size) - entries.size
    of_object = (np.cumsum(value_sizes) - value_sizes)[entries.row]
    table = own + 5 + 4 * counts[entries.row]
    _put(out, table + 4 * place, before - of_object)
    _put(out, begin + 5 + 8 * counts, value_sizes)
    _copy(out, own + heads[entries.row] + before - of_object, entries)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _put(out: Bytes, at: Integers, numbers: Integers) -> None:
    out[at[:, None] + np.arange(4)] = numbers.astype("<u4")[:, None].view(np.uint8).reshape(-1, 4)


def _copy(out: Bytes, at: Integers, entries: Entries) -> None:
    within = np.arange(int(entries.size.sum())) - np.repeat(np.cumsum(entries.size) - entries.size, entries.size)
    out[np.repeat(at, entries.size) + within] = entries.data[np.repeat(entries.start, entries.size) + within]


def _numbers(data: Bytes, at: Integers, width: Integers) -> Integers:
    """Return little-endian numbers of one to four bytes at the given positions; bytes beyond the data count as zero."""
    result = np.zeros(len(at), np.int64)
    for byte in range(int(width.max(initial=0))):
        place = at + byte
        inside = (byte < width) & (place < len(data))
        result += (
            np.where(inside, data[np.where(inside, place, 0)].astype(np.int64) << (8 * byte), 0) if len(data) else 0
        )
    return result


def binary_parts(array: pa.Array) -> tuple[Integers, Bytes]:
    """Return the offsets and the bytes of a binary array."""
    if not len(array):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    data = array.buffers()[2]
    return offsets.astype(np.int64), np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
