"""Rows brought into the order of their partitions, so that the writer needs one file for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_SORTED_AT_ONCE = 256 << 20  # bytes of rows


def in_partition_order(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows, those of a partition one after another and otherwise in order, as far as memory may hold them.

    `columns` are those that the table is partitioned by; without any, the batches are passed on as they come.
    """
    if not columns:
        yield from batches
        return
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(batch)
        size += batch.nbytes
        if size >= _SORTED_AT_ONCE:
            yield from _sorted(gathered, columns)
            gathered, size = [], 0
    yield from _sorted(gathered, columns)


def _sorted(batches: list[pa.RecordBatch], columns: Sequence[str]) -> list[pa.RecordBatch]:
    if not batches:
        return []
    rows = pa.Table.from_batches(batches).combine_chunks()
    # By position: names that hold dots would be taken for paths.
    keys = pa.table({str(i): rows.column(name) for i, name in enumerate(columns)})
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    in_order: list[pa.RecordBatch] = rows.take(order).combine_chunks().to_batches()
    return in_order
