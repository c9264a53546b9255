"""The keys of a source: all values if there are few, else ranges with the widest gaps between them.

Tasks compute this from their rows, one batch at a time and in little memory; the driver combines the results.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pyspark_delta.expressions.coercion import compare
from pyspark_delta.expressions.literals import NotExactError, zone_of
from pyspark_delta.expressions.tree import And, Expression, In, IsNull, Literal, Or, all_of
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.schema.types import BYTE, INTEGER, SHORT, DataType
from pyspark_delta.statements.merge.condition import Key

MOST_VALUES = 1_000
"""How many keys are kept as single values."""
MOST_RANGES = 32
"""How many ranges are kept if there are more keys."""
REPORT = "report binary"

_BITS: dict[DataType, int] = {BYTE: 8, SHORT: 16, INTEGER: 32}


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """Ascending ranges that contain all keys, by their `least` and `greatest` key; nulls are left out."""

    least: pa.Array
    greatest: pa.Array

    @classmethod
    def of(cls, keys: pa.Array) -> KeyRanges:
        """Return the ranges of some keys; each key is a range of its own if they are few."""
        distinct = pc.unique(keys.drop_null())
        if len(distinct) > MOST_VALUES and not _has_distances(distinct.type):
            ends = pc.min_max(distinct)  # without distances only one range would remain
            return cls(*(distinct.slice(pc.index(distinct, ends[end]).as_py(), 1) for end in ("min", "max")))
        return cls(distinct, distinct)._normalized()

    @classmethod
    def joined(cls, found: Sequence[KeyRanges]) -> KeyRanges:
        """Return the ranges of several sets of keys."""
        least, greatest = (pa.concat_arrays([getattr(one, end) for one in found]) for end in ("least", "greatest"))
        return cls(least, greatest)._normalized()

    @property
    def are_values(self) -> bool:
        """True if each range is a single key."""
        return bool(self.least.equals(self.greatest))

    def at_most(self, count: int) -> KeyRanges:
        """Return at most that many ranges that contain these, with the widest gaps between them."""
        if len(self.least) <= count:
            return self
        gaps = _numbers(self.least)[1:] - _numbers(self.greatest)[:-1]
        widest = np.sort(np.argsort(gaps)[len(gaps) - count + 1 :]) if gaps.any() else np.empty(0, np.int64)
        starts, ends = np.append(0, widest + 1), np.append(widest, len(gaps))
        return KeyRanges(self.least.take(pa.array(starts)), self.greatest.take(pa.array(ends)))

    def _normalized(self) -> KeyRanges:
        """Return the ranges in order, with overlapping ones joined, and at most as many as allowed."""
        if len(self.least) < 2:
            return self
        ends, ranks = _ranked(pa.concat_arrays([self.least, self.greatest]))
        first, last = ranks[: len(self.least)], ranks[len(self.least) :]
        order = np.argsort(first)
        first, reached = first[order], np.maximum.accumulate(last[order])
        starts = np.append(0, np.flatnonzero(first[1:] > reached[:-1]) + 1)
        reached = reached[np.append(starts[1:], len(order)) - 1]
        found = KeyRanges(ends.take(pa.array(first[starts])), ends.take(pa.array(reached)))
        return found if len(found.least) <= MOST_VALUES else found.at_most(MOST_RANGES)


@dataclass(frozen=True, slots=True)
class KeyReport:
    """The number of rows, and the ranges of their keys by column."""

    rows: int
    ranges: tuple[KeyRanges, ...]

    @classmethod
    def joined(cls, found: Sequence[KeyReport]) -> KeyReport:
        """Return the combined report of several tasks, at least one."""
        columns = zip(*(one.ranges for one in found), strict=True)
        return cls(sum(one.rows for one in found), tuple(KeyRanges.joined(column) for column in columns))


def report_keys(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the pickled `KeyReport` of the rows of a task, whose columns are keys; nothing if it has no rows."""
    known: KeyReport | None = None
    for batch in batches:
        if batch.num_rows:
            found = KeyReport(batch.num_rows, tuple(map(KeyRanges.of, batch.columns)))
            known = found if known is None else KeyReport.joined([known, found])
    if known is not None:
        yield pa.RecordBatch.from_pydict({"report": [pickle.dumps(known)]})


def _ranked(values: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Return the distinct values in ascending order, and the rank of each value."""
    order = pc.sort_indices(values)
    ordered = values.take(order)
    is_new = np.append(True, pc.not_equal(ordered[1:], ordered[:-1]))
    ranks = np.empty(len(values), np.int64)
    ranks[order.to_numpy()] = np.cumsum(is_new) - 1
    return ordered.filter(pa.array(is_new)), ranks


def _has_distances(key: pa.DataType) -> bool:
    return bool(pt.is_temporal(key) or pt.is_integer(key) or pt.is_floating(key) or pt.is_decimal(key))


def _numbers(keys: pa.Array) -> np.ndarray:
    """Return numbers with about the same distances as the keys; equal numbers for keys without distances."""
    if not _has_distances(keys.type):
        return np.zeros(len(keys))
    if pt.is_temporal(keys.type):
        keys = keys.view(pa.int32() if keys.type.bit_width == 32 else pa.int64())
    return np.asarray(pc.cast(keys, pa.float64(), safe=False))


# ------------------------------------------------------------------------------------------------ as a predicate
@dataclass(frozen=True, slots=True)
class SourceKeys:
    """The number of rows of a source, and the predicate that matching rows of the table meet."""

    rows: int
    predicate: Expression | None


def keys_among(rows: pa.Table, keys: Sequence[Key], names: Sequence[str], time_zone: str) -> SourceKeys:
    """Return the keys of collected rows of a source; `names` are the columns of the keys."""
    if not rows.num_rows:
        return SourceKeys(0, NEVER)
    ranges = tuple(KeyRanges.of(rows[name].combine_chunks()) for name in names)
    return source_keys(KeyReport(rows.num_rows, ranges), keys, time_zone)


def source_keys(found: KeyReport, keys: Sequence[Key], time_zone: str) -> SourceKeys:
    """Return the keys of a report, with the predicate that they give."""
    zone = zone_of(time_zone)
    parts = [_with_null(key, _predicate(key, ranges, zone)) for key, ranges in zip(keys, found.ranges, strict=True)]
    return SourceKeys(found.rows, all_of(*(part for part in parts if part is not None)))


def _predicate(key: Key, found: KeyRanges, zone: tzinfo) -> Expression | None:
    """Return what a key of the table meets if it equals a key of the source; None if this cannot be expressed."""
    if not len(found.least):
        return NEVER  # all keys are null, which equals nothing
    try:
        if found.are_values:
            values = found.least.to_pylist()
            return all_of(_range(key, values[0], values[-1], zone), _one_of(key, values))
        found = found.at_most(MOST_RANGES)
        ends = zip(found.least.to_pylist(), found.greatest.to_pylist(), strict=True)
        ranges = [_range(key, least, greatest, zone) for least, greatest in ends]
    except (NotExactError, OverflowError, ValueError):  # dates that Python does not have, texts that are not UTF-8
        return None
    return Or(tuple(ranges)) if len(ranges) > 1 else ranges[0]


def _with_null(key: Key, predicate: Expression | None) -> Expression | None:
    """Return the predicate for a key that may equal null: whether the source has null is not known."""
    return Or((IsNull(key.column), predicate)) if key.is_null_safe and predicate is not None else predicate


def _range(key: Key, least: Any, greatest: Any, zone: tzinfo) -> Expression:
    return And(
        (
            compare(">=", key.column, Literal(least, key.source_type), zone),
            compare("<=", key.column, Literal(greatest, key.source_type), zone),
        )
    )


def _one_of(key: Key, values: Sequence[Any]) -> Expression | None:
    bits = _BITS.get(key.column.type)
    if bits is not None:
        values = [value for value in values if -(1 << bits - 1) <= value < 1 << bits - 1]
    return In(key.column, tuple(Literal(value, key.column.type) for value in values)) if values else None
