"""Splitting batches by partition, into runs of adjacent rows or into all rows of each partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.conform import cast_values
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.partition_values import has_empty_values, null_empty_values, serialize_partition_column
from pyspark_delta.schema.text_lengths import padded_length
from pyspark_delta.schema.types import StructField

Partition = tuple[str | None, ...]
"""The texts of partition values, in the order of the table's partition columns."""
Numbers = np.ndarray[Any, np.dtype[np.integer[Any]]]

_SORTED_BY_DIGITS = 1 << 16  # numbers below this are sorted in linear time


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one partition, at most a row group: all rows of `batches`, or the rows `chosen` of the only batch."""

    partition: Partition
    batches: tuple[pa.RecordBatch, ...]
    chosen: Numbers | None = None

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self.batches) if self.chosen is None else len(self.chosen)

    @property
    def num_bytes(self) -> int:
        """The size of the rows in memory; rows of a batch count the same."""
        size: int = sum(batch.nbytes for batch in self.batches)
        return size if self.chosen is None else size * len(self.chosen) // max(1, self.batches[0].num_rows)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Chosen rows are copied."""
        for batch in self.batches:
            yield batch if self.chosen is None else batch.take(pa.array(self.chosen))


def pieces(context: WriteContext, batches: Iterable[pa.RecordBatch], at_once: int) -> Iterator[Piece]:
    """Yield rows in any order as pieces of one partition each.

    Among every `at_once` bytes of rows, those of one partition become adjacent and keep their order.
    """
    if not context.partition_columns:
        for gathered in _gathered(_slices(context, batches), context.row_group_rows, context.row_group_bytes):
            yield Piece((), tuple(gathered))
        return
    for gathered in _gathered(batches, None, at_once):
        rows = pa.Table.from_batches(gathered)
        gathered.clear()  # so that only the combined copy stays in memory
        rows = rows.combine_chunks()
        for batch in rows.to_batches():
            yield from _by_partition(context, batch)


def runs(context: WriteContext, batch: pa.RecordBatch) -> Iterator[tuple[Partition, pa.RecordBatch]]:
    """Yield each run of adjacent rows of the same partition, with the partition."""
    if not context.partition_columns:
        yield (), batch
        return
    keys = _Keys.of(context, batch)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(keys.codes)) + 1])
    ends = [*starts[1:].tolist(), batch.num_rows]
    for partition, start, end in zip(keys.partitions(starts), starts.tolist(), ends, strict=True):
        yield partition, batch.slice(start, end - start)


def as_readers_get(context: WriteContext, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows as readers get them.

    Empty strings and binary values of partition columns are null (C416), and texts of char(n) columns are padded. The
    constraints of the table apply to rows in this form. Raises ConstraintViolationError for a value of another type.
    """
    for name in context.partition_columns:
        field = context.schema.find(name)
        if field is not None and has_empty_values(field.type):
            values = batch.column(field.name)
            stored = null_empty_values(cast_values(values, to_arrow(field.type), field.name))
            if stored.null_count != values.null_count:
                batch = batch.set_column(batch.schema.names.index(field.name), field.name, stored)
    for field in context.schema:
        length = padded_length(field)
        if length is not None:
            texts = cast_values(batch.column(field.name), to_arrow(field.type), field.name)
            padded = pc.utf8_rpad(texts, width=length, padding=" ")
            batch = batch.set_column(batch.schema.names.index(field.name), field.name, padded)
    return batch


def _by_partition(context: WriteContext, batch: pa.RecordBatch) -> Iterator[Piece]:
    keys = _Keys.of(context, batch)
    order = np.argsort(keys.codes, kind="stable")
    sizes = np.bincount(keys.codes)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    most = _rows_at_once(context, batch)
    for partition, start, end in zip(keys.partitions(order[starts]), starts.tolist(), ends.tolist(), strict=True):
        for first in range(start, end, most):
            yield Piece(partition, (batch,), order[first : min(first + most, end)])


@dataclass(frozen=True, slots=True)
class _Keys:
    """The partition of each row: `codes` are numbers from 0 without gaps, equal if all texts are equal."""

    codes: Numbers
    texts: Sequence[pa.Array]  # distinct texts of each partition column
    places: Sequence[Numbers]  # index of the text of each row among them

    @classmethod
    def of(cls, context: WriteContext, batch: pa.RecordBatch) -> _Keys:
        """Return the keys of a batch.

        Raises InvalidOperationError for a value without a text, ConstraintViolationError for one of another type.
        """
        codes: Numbers = np.zeros(batch.num_rows, np.int64)
        texts, places = [], []
        fields = [field for name in context.partition_columns if (field := context.schema.find(name)) is not None]
        for field in fields:
            distinct, place = _texts(batch.column(field.name), field)
            texts.append(distinct)
            places.append(place)
            codes = codes * len(distinct) + place
            if len(fields) > 1:  # without gaps again, so that no product overflows
                codes = np.asarray(pa.array(codes).dictionary_encode().indices)
        small = len(codes) and codes.max() < _SORTED_BY_DIGITS
        return cls(codes.astype(np.uint16 if small else np.int64), texts, places)

    def partitions(self, rows: Numbers) -> Iterator[Partition]:
        """Yield the partitions of some rows."""
        columns = [
            text.take(pa.array(place[rows])).to_pylist() for text, place in zip(self.texts, self.places, strict=True)
        ]
        yield from zip(*columns, strict=True)


def _texts(values: pa.Array, field: StructField) -> tuple[pa.Array, Numbers]:
    """Return the distinct texts that occur in a column, and the index of each row's text among them."""
    encoded = cast_values(values, to_arrow(field.type), field.name).dictionary_encode(null_encoding="encode")
    # Several values may have one text, such as null and the empty string.
    distinct = serialize_partition_column(encoded.dictionary, field.type).dictionary_encode(null_encoding="encode")
    places = np.asarray(distinct.indices)[np.asarray(encoded.indices)]
    return distinct.dictionary, places.astype(np.int64)


def _slices(context: WriteContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        most = _rows_at_once(context, batch)
        for start in range(0, batch.num_rows, most):
            yield batch.slice(start, most)


def _rows_at_once(context: WriteContext, batch: pa.RecordBatch) -> int:
    """Return how many rows of a batch make a row group."""
    in_bytes: int = context.row_group_bytes * batch.num_rows // max(1, batch.nbytes)
    return max(1, min(context.row_group_rows, in_bytes))


def _gathered(batches: Iterable[pa.RecordBatch], rows: int | None, size: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield groups of batches; a group ends when it has `rows` rows or `size` bytes."""
    found: list[pa.RecordBatch] = []
    found_rows = found_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        found.append(batch)
        found_rows += batch.num_rows
        found_bytes += batch.nbytes
        if (rows is not None and found_rows >= rows) or found_bytes >= size:
            yield found
            found, found_rows, found_bytes = [], 0, 0
    if found:
        yield found
