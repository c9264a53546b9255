"""The initial snapshot of a stream: the live files of one version, by modification time and path.

The files are sorted once. Statistics are not read, so that a stream can begin with a table of millions of files.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import (
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
    DELETION_VECTOR,
    MODIFICATION_TIME,
    PARTITION_VALUES,
    PATH,
    SIZE,
)
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.features import Feature, is_supported
from pyspark_delta.scan.matches import possible_files
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.streaming.admission import Sizes
from pyspark_delta.streaming.commits import FILE_COLUMNS


class InitialFiles:
    """The files of the initial snapshot. The index of a file is its position in their order."""

    def __init__(self, snapshot: Snapshot, where: Expression | None = None, time_zone: str = "UTC") -> None:
        """With `where`, a condition bound to the schema, files that it rules out are not returned."""
        self._snapshot = snapshot
        self._where, self._time_zone = where, time_zone
        self.version = snapshot.version

    def __len__(self) -> int:
        return len(self._order)

    @property
    def timestamp(self) -> int:
        """When the version was committed, in milliseconds since the epoch."""
        return self._snapshot.timestamp

    @cached_property
    def _files(self) -> pa.Table:
        # Only columns that this table can have: the others would be columns of nulls as long as the table.
        columns = [PATH.name, SIZE.name, MODIFICATION_TIME.name]
        configuration = self._snapshot.configuration
        if configuration.partition_columns:
            columns.append(PARTITION_VALUES.name)
        if is_supported(configuration, Feature.DELETION_VECTORS):
            columns.append(DELETION_VECTOR.name)
        if is_supported(configuration, Feature.ROW_TRACKING):
            columns += [BASE_ROW_ID.name, DEFAULT_ROW_COMMIT_VERSION.name]
        return self._snapshot.files(tuple(columns))

    @cached_property
    def _order(self) -> pa.Array:
        keys = [(MODIFICATION_TIME.name, "ascending"), (PATH.name, "ascending")]
        return pc.sort_indices(self._files, sort_keys=keys)

    @cached_property
    def sizes(self) -> Sizes:
        """The sizes of the files in bytes, in order. Those that the condition rules out are not counted."""
        return Sizes(self._files[SIZE.name].take(self._order), counted=self._counted)

    @cached_property
    def _counted(self) -> pa.BooleanArray | None:
        """True for each file, in order, that the condition does not rule out; None without a condition."""
        if self._where is None:
            return None
        possible = possible_files(self._snapshot, self._where, (PATH.name,), time_zone=self._time_zone)
        mask = pc.is_in(self._files[PATH.name], value_set=possible[PATH.name].combine_chunks())
        return mask.combine_chunks().take(self._order)

    def files(self, first: int, end: int) -> pa.Table:
        """Return the files from index `first` to before `end`, in order, with the columns of `commits.FILE_COLUMNS`."""
        chosen = self._order.slice(first, max(0, end - first))
        if self._counted is not None:
            chosen = chosen.filter(self._counted.slice(first, len(chosen)))
        files = _take(self._files, chosen.to_numpy().astype(np.int64))
        for absent in FILE_COLUMNS:
            if absent.name not in files.column_names:
                files = files.append_column(absent, pa.nulls(files.num_rows, absent.type))
        return files


def _take(files: pa.Table, rows: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Table:
    """Return some rows of a table in many chunks. Arrow would copy its columns of texts as a whole first."""
    batches = files.to_batches()
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    of = np.searchsorted(starts, rows, side="right") - 1
    by_batch = np.argsort(of, kind="stable")
    numbers, ends = np.unique(of[by_batch], return_counts=True)
    taken, first = [files.schema.empty_table()], 0
    for number, count in zip(numbers, ends, strict=True):
        chosen = rows[by_batch[first : first + count]] - starts[number]
        taken.append(pa.Table.from_batches([batches[number].take(pa.array(chosen))]))
        first += count
    back = np.empty(len(rows), np.int64)
    back[by_batch] = np.arange(len(rows))
    return pa.concat_tables(taken).combine_chunks().take(pa.array(back))
