"""Statistics of files whose footers differ in nothing but their values, for all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pyspark_delta.maintenance.convert.layout import FileLayout
from pyspark_delta.parquet.alike import AlikeFooters, Likeness, Slices
from pyspark_delta.parquet.footer import TYPES
from pyspark_delta.stats.collect import put_at

_KINDS = {TYPES["INT32"]: "<i4", TYPES["INT64"]: "<i8", TYPES["FLOAT"]: "<f4", TYPES["DOUBLE"]: "<f8"}

_MEMBERS = ("numRecords", "minValues", "maxValues", "nullCount")


@dataclass(frozen=True, slots=True)
class LikeFiles:
    """Files with one layout and like footers. With `drops_nan`, their writer leaves out bounds if there is a NaN."""

    likeness: Likeness
    layout: FileLayout
    drops_nan: bool

    def statistics(self, footers: Sequence[bytes]) -> list[str | None]:
        """Return the statistics of files as the log holds them (C404-C415), by their footers.

        None for a footer that has other fields, or is damaged.
        """
        found: list[str | None] = [None] * len(footers)
        group = self.likeness.read(footers)
        if group is not None:
            for position, text in zip(group.positions.tolist(), self._texts(group), strict=True):
                found[position] = text
        return found

    def _texts(self, group: AlikeFooters) -> Iterator[str]:
        rows = group.num_rows.tolist()
        minimum, maximum, nulls = ([dict[str, Any]() for _ in rows] for _ in range(3))
        for measured in self.layout.columns:
            chunk, path = group.chunks[measured.leaf], measured.column.path
            if chunk.null_counts is None:
                continue
            for tree, null_count in zip(nulls, chunk.null_counts.tolist(), strict=True):
                put_at(tree, path, null_count)
            if not measured.factor or chunk.lowest is None or chunk.highest is None:
                continue
            kind = self.likeness.leaves[measured.leaf].type
            lows, highs = (_values(group, slices, kind) for slices in (chunk.lowest, chunk.highest))
            for number, (low, high) in enumerate(zip(lows, highs, strict=True)):
                lower, upper = measured.bounds((low,), (high,), drops_nan=self.drops_nan)
                put_at(minimum[number], path, lower)
                put_at(maximum[number], path, upper)
        for numbers in zip(rows, minimum, maximum, nulls, strict=True):
            yield orjson.dumps({**dict(zip(_MEMBERS, numbers, strict=True)), "tightBounds": True}).decode()


def _values(group: AlikeFooters, slices: Slices, kind: int) -> list[Any]:
    """Return bounds as Arrow has them in `min_raw`, for a type of Parquet."""
    if kind in _KINDS:
        values: list[Any] = group.integers(slices, _KINDS[kind]).tolist()
        return values
    return group.binaries(slices)
