"""How well files are clustered: how many files a query would read, computed from the statistics of files alone.

The rows of a file lie somewhere between its bounds; they are taken to be spread evenly there. All files together then
say how many rows of the table are below each bound. Positions of values are shares of the rows, so that a range of 1 %
of the rows is a length of 0.01.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_delta.display import counted, html_rows
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.expressions.tree import Column
from pyspark_delta.maintenance.layout.columns import LayoutColumn, columns_at, layout_columns
from pyspark_delta.maintenance.layout.order_keys import (
    ByteStrings,
    byte_strings,
    dense_ranks,
    has_number_keys,
    number_keys,
)
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.schema.types import LONG
from pyspark_delta.snapshot import Snapshot

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

RANGES = (0.001, 0.01, 0.1)
BOX = 0.05
_SMALLEST = 1e-9  # share of a piece between bounds, of the range of all values
_MOST_BOXES = 512
_TEXT_UNIT = 2.0**53  # between texts there are many others
_BOX_WORK = 50_000_000  # files times boxes

SCHEMA = pa.schema(
    [
        pa.field("query", pa.string()),
        pa.field("columns", pa.string()),
        pa.field("share", pa.float64()),
        pa.field("files", pa.float64()),
        pa.field("best_files", pa.float64()),
    ]
)


@dataclass(frozen=True, repr=False)
class ClusteringQuality:
    """How many files a query by some columns reads on average, from the statistics of all files of a version.

    `measures` has a row for each kind of query: `query` is `value` (one value, that of a random row: the average
    overlap depth), `range` (`share` of the rows, by one column), or `box` (`share` of the rows by each column, around
    a random row); `columns` are the names; `files` are the files that the query reads on average, and `best_files`
    what the best layout of so many files would make it read. Without clustering, each query reads all `num_files`.
    `files_without_statistics` are among them, and are read by every query.
    """

    location: str
    version: int
    columns: tuple[str, ...]
    num_files: int
    num_records: int
    files_without_statistics: int
    measures: pa.Table = field(repr=False)

    @property
    def average_depth(self) -> Mapping[str, float]:
        """The files that the value of a random row meets, by column: 1 is perfect for one column."""
        return {row["columns"]: row["files"] for row in self.measures.to_pylist() if row["query"] == "value"}

    def facts(self) -> dict[str, object]:
        """Return names and values; the measures are a list of dictionaries."""
        return {
            "version": self.version,
            "columns": list(self.columns),
            "files": self.num_files,
            "rows": self.num_records,
            "files_without_statistics": self.files_without_statistics,
            "measures": self.measures.to_pylist(),
        }

    def to_arrow(self) -> pa.Table:
        """Return `measures`."""
        return self.measures

    def _lines(self) -> list[tuple[str, str, str, str]]:
        return [
            (_described(row), f"{row['files']:.1f}", f"{row['best_files']:.1f}", f"{self.num_files:,}")
            for row in self.measures.to_pylist()
        ]

    def _title(self) -> str:
        missing = self.files_without_statistics
        return (
            f"Clustering of '{self.location}', version {self.version}, by {', '.join(self.columns)}: "
            f"{counted(self.num_files, 'file')}, {counted(self.num_records, 'row')}"
            + (f", {counted(missing, 'file')} without statistics" if missing else "")
        )

    def _repr_html_(self) -> str:
        return html_rows(self._title(), ("query", "files read", "best", "all"), self._lines())

    def __repr__(self) -> str:
        depth = ", ".join(f"{name}={files:.1f}" for name, files in self.average_depth.items())
        return f"ClusteringQuality({self.location!r}, version={self.version}, {self.num_files} files, depth {depth})"

    def __str__(self) -> str:
        rows = [("query", "files read", "best", "all"), *self._lines()]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([self._title(), *lines])


def clustering_quality(snapshot: Snapshot, columns: Sequence[str] | None = None) -> ClusteringQuality:
    """Return how many files queries by some columns read, by default the clustering columns of the table.

    Only the log is read. Raises InvalidOptionError without columns, InvalidOperationError as `layout_columns`, and
    CorruptLogError.
    """
    configuration = snapshot.configuration
    if columns is None:
        found = columns_at(configuration, clustering_paths(snapshot.domains()))
    else:
        found = layout_columns(configuration, columns)
    if not found:
        raise InvalidOptionError(
            f"The table '{snapshot.location}' has no clustering columns. Name the columns that queries filter by.",
            option="columns",
        )
    files = _read(snapshot, found)
    return ClusteringQuality(
        location=snapshot.location,
        version=snapshot.version,
        columns=tuple(column.name for column in found),
        num_files=len(files.records),
        num_records=int(files.records.sum()),
        files_without_statistics=int((~files.is_known).sum()),
        measures=pa.Table.from_pylist(list(_measures(found, files)), SCHEMA),
    )


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a table: rows, whether all columns have statistics, and the positions of bounds by column.

    A file without statistics reaches from 0 to 1; one with only null values begins after its end.
    """

    records: Numbers
    is_known: np.ndarray[Any, np.dtype[np.bool_]]
    lows: tuple[Numbers, ...]
    highs: tuple[Numbers, ...]


def _measures(columns: Sequence[LayoutColumn], files: _Files) -> Iterator[dict[str, Any]]:
    number, dimensions = len(files.records), len(columns)
    sides = number ** (1 / dimensions)  # of the grid of files that is best
    for share in (0.0, *RANGES):
        for column, low, high in zip(columns, files.lows, files.highs, strict=True):
            yield {
                "query": "range" if share else "value",
                "columns": column.name,
                "share": share or None,
                "files": _expected(low, high, share),
                "best_files": min(number / sides * (1 + share * sides), number) if number else 0.0,
            }
    if dimensions > 1:
        yield {
            "query": "box",
            "columns": ", ".join(column.name for column in columns),
            "share": BOX,
            "files": _expected_of_boxes(files, BOX),
            "best_files": min((1 + BOX * sides) ** dimensions, number),
        }


def _expected(low: Numbers, high: Numbers, share: float) -> float:
    """Return how many intervals a range of some length meets, which lies anywhere between 0 and 1."""
    met = np.minimum(high, 1 - share) - np.maximum(low - share, 0)
    return float(met[high >= low].clip(0).sum() / (1 - share))


def _expected_of_boxes(files: _Files, share: float) -> float:
    """Return how many files a box around a random row meets, from some boxes that are always the same."""
    number = len(files.records)
    if not files.records.sum():
        return 0.0
    chance = np.random.default_rng(0)
    boxes = int(np.clip(_BOX_WORK // number, 16, _MOST_BOXES))
    met = 0
    for centre in chance.choice(number, boxes, p=files.records / files.records.sum()):
        inside = np.ones(number, np.bool_)
        for low, high in zip(files.lows, files.highs, strict=True):
            at = chance.uniform(low[centre], max(high[centre], low[centre])) - share / 2
            start = min(max(at, 0.0), 1 - share)
            inside &= (low <= start + share) & (high >= start) & (low <= high)
        met += int(inside.sum())
    return met / boxes


# ------------------------------------------------------------------------------------------------- reading statistics
def _read(snapshot: Snapshot, columns: Sequence[LayoutColumn]) -> _Files:
    kinds = [("minValues", None), ("maxValues", None), ("nullCount", LONG)]
    leaves = [Column(("numRecords",), LONG)]
    leaves += [Column((kind, *c.physical), of or c.type) for c in columns for kind, of in kinds]
    batches = list(snapshot.statistics(tuple(leaves), ("size",)))
    table = pa.Table.from_batches(batches) if batches else None
    if table is None:
        nothing = np.zeros(0)
        return _Files(nothing, np.zeros(0, np.bool_), (nothing,) * len(columns), (nothing,) * len(columns))
    arrays = [column.combine_chunks() for column in table.columns[1:]]
    arrays = [a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for a in arrays]
    records = np.nan_to_num(arrays[0].to_numpy(zero_copy_only=False).astype(np.float64), nan=-1.0)
    is_known = records >= 0
    records = np.maximum(records, 0)
    lows, highs = [], []
    for number in range(len(columns)):
        minimum, maximum, nulls = arrays[1 + 3 * number : 4 + 3 * number]
        low, high, known = _positions(minimum, maximum, nulls, records)
        lows.append(low)
        highs.append(high)
        is_known &= known
    return _Files(records, is_known, tuple(lows), tuple(highs))


def _positions(
    low: pa.Array, high: pa.Array, nulls: pa.Array, records: Numbers
) -> tuple[Numbers, Numbers, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return where files begin and end in a column, and which of them have statistics."""
    bounded = (low.is_valid().to_numpy(zero_copy_only=False)) & (high.is_valid().to_numpy(zero_copy_only=False))
    null_count = np.nan_to_num(nulls.to_numpy(zero_copy_only=False).astype(np.float64), nan=-1.0)
    without_values = ~bounded & (null_count >= records) & (records > 0)
    begin, end = np.zeros(len(records)), np.ones(len(records))
    begin[without_values], end[without_values] = 1.0, 0.0
    chosen = pa.array(bounded)
    endpoints = pa.concat_arrays([low.filter(chosen), high.filter(chosen)])
    if len(endpoints):
        keys, distances = _keys(endpoints)
        below, above = np.split(keys, 2)
        values = records[bounded] - np.maximum(null_count[bounded], 0)
        begin[bounded], end[bounded] = estimate(below, np.maximum(above, below), distances, np.maximum(values, 1))
    return begin, end, bounded | without_values


def _keys(endpoints: pa.Array) -> tuple[np.ndarray[Any, Any], Numbers]:
    """Return the number of each value among the distinct ones, and the distances of neighbouring distinct values."""
    if has_number_keys(endpoints.type):
        distinct, numbers = np.unique(number_keys(endpoints), return_inverse=True)
        return numbers, np.diff(distinct).astype(np.float64)
    ranks = dense_ranks(endpoints).astype(np.int64) - 1
    first = np.zeros(int(ranks.max()) + 1, np.int64)
    first[ranks] = np.arange(len(ranks))
    return ranks, np.diff(_as_numbers(byte_strings(endpoints).take(first))).clip(0) * _TEXT_UNIT


def _as_numbers(texts: ByteStrings) -> Numbers:
    """Return the eight bytes after the common prefix of sorted texts as numbers with the bytes that occur as digits."""
    least, most = (texts.take(slice(at, at + 1 or None)) for at in (0, -1))
    position = 0
    while position < least.lengths[0] and least.words(position) == most.words(position):
        position += 8
    different = int(least.words(position)[0]) ^ int(most.words(position)[0])
    position += (64 - different.bit_length()) // 8
    parts = texts.words(position).astype(">u8").view(np.uint8).reshape(-1, 8)
    occurring, digits = np.unique(parts, return_inverse=True)
    weights = float(len(occurring)) ** -np.arange(1.0, 9.0)
    found: Numbers = digits.reshape(-1, 8) @ weights
    return found


def estimate(
    low: np.ndarray[Any, Any], high: np.ndarray[Any, Any], distances: Numbers, records: Numbers
) -> tuple[Numbers, Numbers]:
    """Return where intervals begin and end, as shares of all their rows, which are spread evenly in each interval.

    `low` and `high` are numbers of distinct bounds, `distances` those between neighbouring bounds. Pieces are the
    bounds themselves and what lies between them.
    """
    pieces = np.ones(2 * len(distances) + 1)
    pieces[1::2] = np.maximum(distances - 1, 0)
    mass = np.maximum(pieces / pieces.sum(), _SMALLEST)
    first, last = 2 * low, 2 * high + 1
    below = np.concatenate([[0.0], np.cumsum(mass)])
    density = records / (below[last] - below[first])
    change = np.bincount(first, density, len(below)) - np.bincount(last, density, len(below))
    rows = mass * np.maximum(np.cumsum(change)[:-1], 0)
    rows_below = np.concatenate([[0.0], np.cumsum(rows)]) / rows.sum()
    return rows_below[first], rows_below[last]


def _described(row: Mapping[str, Any]) -> str:
    if row["query"] == "value":
        return f"one value of {row['columns']}"
    share = f"{row['share'] * 100:g} %"
    return f"{share} of {row['columns']}" if row["query"] == "range" else f"{share} of each of {row['columns']}"
