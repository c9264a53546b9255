"""Columns of a checkpoint's files, kept in memory after the second request for them.

A checkpoint never changes, so the columns serve every later version that is read from it, without the keys that newer
commits name. Partition columns are dictionary-encoded, statistics typed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import DELETION_VECTOR, PARTITION_VALUES, PATH
from pyspark_delta.expressions.tree import Column
from pyspark_delta.log.arrays import chosen_rows
from pyspark_delta.log.checkpoint_scan import scan_part, scan_stats
from pyspark_delta.log.parquet_part import ParquetPart
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.skipping import kept_by_partition, kept_by_stats, partition_column
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import DataType
from pyspark_delta.stats.parse import assemble, leaf_tree

MAX_BYTES_VARIABLE = "PYSPARK_DELTA_FILE_CACHE_BYTES"
DEFAULT_MAX_BYTES = 512 << 20
_NEVER_KEPT = ("stats", "tags")  # large, and not needed for planning


class LoadedFiles:
    """The cached columns of the files in one checkpoint; thread-safe."""

    def __init__(self, parts: Callable[[], Sequence[ParquetPart]]) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._requests = 0
        self._columns: dict[str, pa.Array] = {}
        self._partitions: dict[tuple[str, DataType, str], pa.DictionaryArray] = {}
        self._stats: dict[Column, pa.Array] = {}

    @property
    def nbytes(self) -> int:
        """The memory of the columns, in bytes."""
        kept_columns = [*self._columns.values(), *self._partitions.values(), *self._stats.values()]
        return sum(column.nbytes for column in kept_columns)

    def serves(self, fields: Sequence[pa.Field]) -> bool:
        """True if these columns are answered from memory: at the second request, if they are not too large."""
        with self._lock:
            self._requests += 1
            again = self._requests > 1
        if not again or any(f.name in _NEVER_KEPT for f in fields):
            return False
        limit = int(os.environ.get(MAX_BYTES_VARIABLE) or DEFAULT_MAX_BYTES)
        rows = sum(part.metadata.num_rows for part in self._parts())
        return rows * 128 <= limit and self.nbytes <= limit

    def select(
        self, fields: Sequence[pa.Field], request: FileRequest | None, live: Callable[[pa.RecordBatch], Any]
    ) -> pa.RecordBatch:
        """Return the files that `live` and the predicates of a request keep. Raises CorruptLogError.

        `live` returns a mask over all files, from their path and deletion vector, or None for all.
        """
        with self._lock:
            base = self._batch([PATH, DELETION_VECTOR])
            mask = live(base)
            if request is not None and request.partition_predicate is not None:
                columns = self._partitions_of(request.partition_columns(), request.time_zone)
                mask = _both(mask, kept_by_partition(request.partition_predicate, columns))
            if request is not None and request.stats_predicate is not None:
                leaves = request.stats_leaves()
                values = self._stats_of(leaves)
                columns = self._partitions_of(request.mixed_columns(), request.time_zone)
                survivors = None if mask is None else pc.indices_nonzero(mask)
                if survivors is None or len(survivors) > len(base) // 4:
                    batch = assemble(leaf_tree(leaves), values, len(base))
                    own = kept_by_stats(request.stats_predicate, batch, columns)
                    mask = _both(mask, own)
                else:
                    taken = {path: column.take(survivors) for path, column in values.items()}
                    batch = assemble(leaf_tree(leaves), taken, len(survivors))
                    columns = {name: column.take(survivors) for name, column in columns.items()}
                    own = kept_by_stats(request.stats_predicate, batch, columns)
                    return self._batch(fields).take(survivors.filter(own))
            answer = self._batch(fields)
        return answer if mask is None else chosen_rows(answer, mask)

    def _batch(self, fields: Sequence[pa.Field]) -> pa.RecordBatch:
        missing = [f for f in fields if f.name not in self._columns]
        if missing:
            self._load(missing)
        return pa.RecordBatch.from_arrays([self._columns[f.name] for f in fields], schema=pa.schema(fields))

    def _load(self, fields: Sequence[pa.Field]) -> None:
        wanted = [*fields, *(() if any(f.name == "path" for f in fields) else (PATH,))]
        batches = [batch for part in self._parts() for batch in scan_part(part, "add", wanted)]
        table = pa.Table.from_batches(batches, pa.schema(wanted))
        for field in fields:
            self._columns[field.name] = _whole(table.column(field.name))

    def _partitions_of(self, types: Mapping[str, DataType], time_zone: str) -> dict[str, pa.Array]:
        return {name: self._partition(name, data_type, time_zone) for name, data_type in types.items()}

    def _partition(self, name: str, data_type: DataType, time_zone: str) -> pa.DictionaryArray:
        key = (name, data_type, time_zone)
        if key not in self._partitions:
            maps = self._batch([PARTITION_VALUES]).column(0)
            self._partitions[key] = partition_column(maps, name, data_type, time_zone)
        return self._partitions[key]

    def _stats_of(self, leaves: Sequence[Column]) -> dict[tuple[str, ...], pa.Array]:
        missing = tuple(leaf for leaf in leaves if leaf not in self._stats)
        if missing:
            batches = list(scan_stats(self._parts(), missing))
            for position, leaf in enumerate(missing):
                columns = [batch.column(position) for batch in batches]
                self._stats[leaf] = pa.concat_arrays(columns) if columns else pa.nulls(0, to_arrow(leaf.type))
        return {leaf.path: self._stats[leaf] for leaf in leaves}


def _both(mask: pa.BooleanArray | None, other: pa.BooleanArray) -> pa.BooleanArray:
    return other if mask is None else pc.and_(mask, other)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
