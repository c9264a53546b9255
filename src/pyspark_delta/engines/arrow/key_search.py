"""Finds with Arrow the rows of a table whose keys are among those of a merge's source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.reader import output_schema, read_each, tasks_of
from pyspark_delta.engines.contract import EngineDeclined
from pyspark_delta.engines.tasks import FileGroup, numbered_groups, or_failure
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.scan.plan import ReadContext, ScanTask
from pyspark_delta.statements.target import FILE, ROW, Target

_RESULT = pa.schema([("rows", pa.binary()), ("failure", pa.binary())])


class RowFilter(Protocol):
    """Keeps the rows of a table that may match a row of the source."""

    @property
    def columns(self) -> tuple[Expression, ...]:
        """The keys of the rows."""

    def prepared(self) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Return the function that keeps rows."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Columns of a table in some type, and the distinct values of each that may match; picklable.

    `has_null` says for each column if null may match too.
    """

    columns: tuple[Expression, ...]
    values: tuple[pa.Array, ...]
    has_null: tuple[bool, ...] = ()

    def prepared(self) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Return a function that keeps the rows in which each column has one of its values."""
        return partial(self._meeting, [KeySet.of(values) for values in self.values])

    def _meeting(self, sets: Sequence[KeySet], rows: pa.RecordBatch) -> pa.RecordBatch:
        masks = []
        for number, (column, keys) in enumerate(zip(self.columns, sets, strict=True)):
            values = compute(column, rows)
            mask = keys.mask(values)
            if self.has_null and self.has_null[number] and values.null_count:
                mask = mask | values.is_null().to_numpy(zero_copy_only=False)
            masks.append(mask)
        return selected_rows(rows, np.logical_and.reduce(masks))


def selected_rows(rows: pa.RecordBatch, mask: np.ndarray) -> pa.RecordBatch:
    """Return the rows that a mask selects."""
    found = np.flatnonzero(mask)
    return rows if len(found) == rows.num_rows else rows.take(pa.array(found))


def find_rows(
    target: Target, files: pa.Table, keys: RowFilter | None, columns: Sequence[str], *, row_ids: bool
) -> Iterator[pa.Table]:
    """Yield the rows that may match, in tables of at most about a quarter of `CostModel.merge_bytes`.

    Rows have the `columns`, their ids with `row_ids`, `ROW`, and the file's number `FILE`. `files` have columns of
    `actions.columns`; `columns` are top-level columns of the table, including those of the keys. Without `keys`, all
    rows are found.
    """
    schema, asked = target.configuration.schema, dict.fromkeys(columns)
    of_keys = dict.fromkeys(c.path[0] for key in (keys.columns if keys else ()) for c in columns_of(key))
    numbers = pa.array(range(files.num_rows), pa.int64())
    if keys is not None and files.num_rows > 1 and (row_ids or len(asked) > len(of_keys)):
        # Not every file has such rows: a look at the keys spares the other columns of the rest.
        found = _Search(target, keys, tuple(of_keys), row_ids=False).run(files, len(of_keys) / len(schema))
        in_files = [pc.unique(rows[FILE].combine_chunks()) for rows in found]
        numbers = pc.unique(pa.concat_arrays([pa.array([], pa.int64()), *in_files]))
    part = (len(asked) + row_ids) / len(schema)
    for rows in _Search(target, keys, tuple(asked), row_ids=row_ids).run(files.take(numbers), part):
        yield rows.set_column(0, FILE, numbers.take(rows[FILE].combine_chunks()))


class _Search:
    """Reads some columns of files."""

    def __init__(self, target: Target, keys: RowFilter | None, columns: Sequence[str], *, row_ids: bool) -> None:
        source, schema = target.source, target.configuration.schema
        self._tasks, self._cost, self._keys = target.tasks, target.cost, keys
        self._context = source.read_context(
            [field for field in schema if field.name in columns],
            row_ids=row_ids,
            row_index=ROW,
            time_zone=target.time_zone,
        )

    def run(self, files: pa.Table, part: float) -> Iterator[pa.Table]:
        """Yield the rows found, `FILE` first; `part` is about the part of the bytes of files that the columns take."""
        context = self._context
        schema = pa.schema([pa.field(FILE, pa.int64()), *output_schema(context)])
        if not files.num_rows:
            return
        location, most = context.table_location, self._cost.matched_rows
        if self._tasks is None or self._cost.reads_in_driver(location, files, part):
            tasks, threads = list(tasks_of(files)), self._cost.reading_threads(location)
            found = _found(self._keys, context, tasks, range(len(tasks)), threads)
            limited = found if self._tasks is None else _limited(found, most)
            yield from _in_chunks(limited, schema, self._cost.merge_bytes // 4)
            return
        groups = numbered_groups(context, files, self._tasks.cores(), self._cost)
        result = self._tasks.run_each(groups, partial(_search, self._keys, schema, most), _RESULT)
        streams = (pa.ipc.open_stream(rows).read_all() for rows in result["rows"].to_pylist())
        batches = _limited((batch for table in streams for batch in table.to_batches()), most)
        yield pa.Table.from_batches(batches, schema).combine_chunks()


def _limited(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Yield rows. Raises EngineDeclined beyond `most` rows, where Spark has more than one process for them."""
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if rows > most:
            raise EngineDeclined("more rows of the table than one process should hold have keys of the source")
        yield batch


def _in_chunks(batches: Iterable[pa.RecordBatch], schema: pa.Schema, size: int) -> Iterator[pa.Table]:
    """Yield rows as tables that take about `size` bytes in memory."""
    found, found_bytes = [], 0
    for batch in batches:
        found.append(batch)
        found_bytes += batch.nbytes
        if found_bytes >= size:
            yield pa.Table.from_batches(found, schema).combine_chunks()
            found, found_bytes = [], 0
    if found:
        yield pa.Table.from_batches(found, schema).combine_chunks()


def _search(
    keys: RowFilter | None, schema: pa.Schema, most: int, _: int, item: tuple[Sequence[int], FileGroup]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a task finds, as in `_RESULT`."""
    numbers, group = item

    def found() -> pa.Table:
        rows = pa.Table.from_batches(_limited(_found(keys, group.context, group.tasks(), numbers), most), schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as stream:
            stream.write_table(rows)
        return pa.Table.from_pylist([{"rows": sink.getvalue().to_pybytes()}], _RESULT)

    yield from or_failure(found, _RESULT)


def _found(
    keys: RowFilter | None, context: ReadContext, tasks: list[ScanTask], numbers: Sequence[int], threads: int = 1
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that match in some files, with the number of the file."""
    keep = None if keys is None else keys.prepared()

    def with_keys(task: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        found = rows if keep is None else keep(rows)
        if found.num_rows:
            of_file = pa.repeat(pa.scalar(numbers[task], pa.int64()), found.num_rows)
            fields = [pa.field(FILE, pa.int64()), *found.schema]
            yield pa.RecordBatch.from_arrays([of_file, *found.columns], schema=pa.schema(fields))

    yield from read_each(context, tasks, with_keys, threads)


_MOST_SLOTS = 1 << 24  # one byte each


@dataclass(frozen=True, slots=True)
class KeySet:
    """Distinct values, none null; numbers, dates and times are looked up in `table`."""

    values: pa.Array
    table: DirectAddressTable | None = None

    @classmethod
    def of(cls, values: pa.Array) -> KeySet:
        """Return some values, of any type."""
        return cls(
            values, DirectAddressTable.of(_numbers(values)) if len(values) and _has_numbers(values.type) else None
        )

    def mask(self, keys: pa.Array) -> np.ndarray:
        """Return True for each key, of the type of the values, that is in the set; null never is."""
        if self.table is None:
            is_in: np.ndarray = pc.is_in(keys, value_set=self.values).to_numpy(zero_copy_only=False)
            return is_in
        found = self.table.mask(_numbers(keys))
        return found & keys.is_valid().to_numpy(zero_copy_only=False) if keys.null_count else found


@dataclass(frozen=True, slots=True)
class DirectAddressTable:
    """A direct-address table for integers: the distances from the least one, with long gaps left out.

    It is many times faster than hashing: Arrow would build its hash table again for every batch.
    """

    numbers: np.ndarray
    taken: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray) -> DirectAddressTable:
        """Return the table of some numbers, at least one."""
        numbers = np.sort(numbers)
        span = int(numbers[-1]) - int(numbers[0])
        table = cls(numbers, np.zeros(min(1 << span.bit_length(), _MOST_SLOTS), np.bool_))
        table.taken[table._slot(table._distances(numbers))] = True
        return table

    def mask(self, numbers: np.ndarray) -> np.ndarray:
        """Return True for each number that is in the table."""
        distances = self._distances(numbers)
        found: np.ndarray = self.taken[self._slot(distances)]
        if int(self.numbers[-1]) - int(self.numbers[0]) < len(self.taken):  # each number has its own slot
            found &= distances < len(self.taken)
        else:
            maybe = np.flatnonzero(found)
            nearest = np.searchsorted(self.numbers[:-1], numbers[maybe])
            found[maybe] = self.numbers[nearest] == numbers[maybe]
        return found

    def _distances(self, numbers: np.ndarray) -> np.ndarray:
        """Return the distances of numbers from the least one; numbers below it get distances beyond the greatest."""
        distances: np.ndarray = numbers.view(np.uint64) - self.numbers[0].view(np.uint64)
        return distances

    def _slot(self, distances: np.ndarray) -> np.ndarray:
        slot: np.ndarray = distances & np.uint64(len(self.taken) - 1)
        return slot


def _has_numbers(data_type: pa.DataType) -> bool:
    """Return True if values of a type are ordered like integers."""
    types = pa.types
    return bool(types.is_signed_integer(data_type) or types.is_date32(data_type) or types.is_timestamp(data_type))


def _numbers(values: pa.Array) -> np.ndarray:
    """Return the values of such a type as integers; 0 for null."""
    if not pa.types.is_integer(values.type):
        values = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    numbers: np.ndarray = (values.fill_null(0) if values.null_count else values).cast(pa.int64()).to_numpy()
    return numbers
