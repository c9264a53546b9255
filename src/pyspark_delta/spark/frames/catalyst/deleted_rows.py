"""Rows that commits deleted or restored: Spark reads each file once for several commits.

Two binary constants of a file describe its changed rows. NUMBERS has a number for each row: 0 if no commit changed the
row, otherwise the position of the change in CHANGES, from 1 on. CHANGES has the version, time and kind of each change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.changes.feed_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, DELETE, INSERT
from pyspark_delta.deletion_vectors.bitmap import index_pieces
from pyspark_delta.log.arrays import map_value
from pyspark_delta.schema.partition_values import parse_partition_column
from pyspark_delta.schema.types import BINARY, TIMESTAMP, StructField
from pyspark_delta.spark.frames.catalyst.binary_constants import long_at, number_at, word_at
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.vectors import read_vectors

NUMBERS = StructField("_pyspark_delta_change_numbers", BINARY)
CHANGES = StructField("_pyspark_delta_changes", BINARY)

_WIDTHS = (1, 2, 4)  # bits of a number
_MOST_CHANGES = 2 ** _WIDTHS[-1] - 1
_KINDS = (INSERT, DELETE)
_CHANGE = np.dtype([("version", "<i8"), ("microseconds", "<i8"), ("kind", "<i4")])
_MICROSECONDS, _KIND = 8, 16  # byte offsets in _CHANGE


@dataclass(frozen=True, slots=True)
class FilesOfChanges:
    """Files with the constants NUMBERS, `width` bits for each row, and CHANGES.

    `kind` is the kind of all changes; None if there are several kinds.
    """

    files: pa.Table
    width: int
    kind: str | None


@dataclass(slots=True)
class _Reading:
    """Changes of one file that one read returns: positions in the plan, and all changed rows.

    No row is changed twice.
    """

    changes: list[int] = field(default_factory=list)
    changed: BitMap64 = field(default_factory=BitMap64)

    def takes(self, bitmap: BitMap64) -> bool:
        return len(self.changes) < _MOST_CHANGES and self.changed.isdisjoint(bitmap)

    def add(self, change: int, bitmap: BitMap64) -> None:
        self.changes.append(change)
        self.changed |= bitmap


def gather(files: pa.Table, location: str, storage_options: Mapping[str, str]) -> FilesOfChanges:
    """Return the files of a change feed, with the constants NUMBERS and CHANGES; their vectors select the changed rows.

    A file is in the result more than once if a row of it was changed twice, as by a restore, or if more than 15 commits
    changed rows of it. Raises DeletionVectorError.
    """
    bitmaps = read_vectors(files, location, storage_options)
    readings = list(_readings(files["path"].to_pylist(), bitmaps))
    most = max(len(reading.changes) for reading in readings)
    width = next(width for width in _WIDTHS if most < 2**width)
    numbers = [_numbers([bitmaps[row] for row in reading.changes], width) for reading in readings]
    changes = _changes(files)
    first = files.take(pa.array([reading.changes[0] for reading in readings]))
    first = first.append_column(NUMBERS.name, pa.array(numbers, pa.large_binary()))
    of_each = [changes[reading.changes].tobytes() for reading in readings]
    kinds = files[CHANGE_TYPE.name].unique().to_pylist()
    with_changes = first.append_column(CHANGES.name, pa.array(of_each, pa.large_binary()))
    return FilesOfChanges(with_changes, width, kinds[0] if len(kinds) == 1 else None)


def is_changed(jvm: Jvm, row_index: str, width: int) -> Column:
    """Return a condition that is true for changed rows; `width` is the number of bits for each row in NUMBERS."""
    changed: Column = jvm.once(("is changed", row_index, width), lambda: _number(jvm, row_index, width) != 0)
    return changed


def change_columns(jvm: Jvm, row_index: str, width: int, kind: str | None) -> dict[str, Column]:
    """Return the columns of the feed for changed rows, by name; all are nullable. Arguments as in `FilesOfChanges`."""
    changes, number = F.col(CHANGES.name), _number(jvm, row_index, width)
    place = F.greatest(number - 1, F.lit(0)) * _CHANGE.itemsize
    of_row = word_at(jvm, changes, place + _KIND)
    of_rows = F.when(of_row == 0, _KINDS[0]).when(of_row == 1, _KINDS[1])
    return {
        # A constant if there is one kind: Spark neither compares a constant row by row nor groups by it.
        CHANGE_TYPE.name: of_rows if kind is None else F.nullif(F.lit(kind), F.lit("")),
        COMMIT_VERSION.name: F.when(number > 0, long_at(jvm, changes, place)),
        COMMIT_TIMESTAMP.name: F.when(number > 0, F.timestamp_micros(long_at(jvm, changes, place + _MICROSECONDS))),
    }


def _number(jvm: Jvm, row_index: str, width: int) -> Column:
    return number_at(jvm, F.col(NUMBERS.name), F.col(row_index), width)


def _readings(paths: Sequence[str], bitmaps: Sequence[BitMap64]) -> Iterator[_Reading]:
    of_file: dict[str, list[_Reading]] = {}
    for row, (path, bitmap) in enumerate(zip(paths, bitmaps, strict=True)):
        readings = of_file.setdefault(path, [])
        reading = next((one for one in readings if one.takes(bitmap)), None)
        if reading is None:
            readings.append(reading := _Reading())
        reading.add(row, bitmap)
    for readings in of_file.values():
        yield from readings


def _numbers(bitmaps: Sequence[BitMap64], width: int) -> bytes:
    """Return NUMBERS of a file: `width` bits for each row up to the last changed one, then a word of zeros."""
    per_byte, per_word = 8 // width, 32 // width
    last = max(bitmap.max() if bitmap else 0 for bitmap in bitmaps)
    numbers = np.zeros((last // per_word + 2) * per_word, np.uint8)
    for number, bitmap in enumerate(bitmaps, 1):
        for indexes in index_pieces(bitmap):
            numbers[indexes] = number
    packed = np.zeros(len(numbers) // per_byte, np.uint8)
    for place in range(per_byte):
        packed |= numbers[place::per_byte] << (place * width)
    return packed.tobytes()


def _changes(files: pa.Table) -> np.ndarray[Any, np.dtype[np.void]]:
    changes = np.zeros(files.num_rows, _CHANGE)
    maps = files["partition_values"].combine_chunks()
    times = parse_partition_column(map_value(maps, COMMIT_TIMESTAMP.name), TIMESTAMP, "UTC")
    changes["version"] = files["version"].to_numpy()
    changes["microseconds"] = times.cast(pa.int64()).to_numpy()
    kinds = files[CHANGE_TYPE.name].combine_chunks()
    changes["kind"] = pc.index_in(kinds, value_set=pa.array(_KINDS)).to_numpy()
    return changes
