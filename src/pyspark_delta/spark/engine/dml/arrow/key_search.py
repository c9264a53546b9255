"""The rows of a table whose keys are among those of a merge's source, found by Arrow."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.reader import output_schema, read_each, tasks_of
from pyspark_delta.engines.arrow.key_sets import KeySet
from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.scan.plan import ReadContext, ScanTask
from pyspark_delta.spark.conf.cores import cores_of
from pyspark_delta.spark.engine.dml.target import FILE, ROW, Target
from pyspark_delta.spark.engine.write.failures import or_failure
from pyspark_delta.spark.engine.write.job import run_each
from pyspark_delta.spark.frames.tasks.partitions import numbered_groups

_RESULT = "rows binary, failure binary"
_RESULT_SCHEMA = pa.schema([("rows", pa.binary()), ("failure", pa.binary())])


@dataclass(frozen=True, slots=True)
class Keys:
    """Columns of a table in some type, and for each the distinct values that it may have."""

    columns: tuple[Expression, ...]
    values: tuple[pa.Array, ...]

    def sets(self) -> list[KeySet]:
        """The values as sets to look rows up in."""
        return [KeySet.of(values) for values in self.values]

    def meeting(self, sets: Sequence[KeySet], rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of which each column has one of its values; such a row may still be no match."""
        masks = [keys.mask(compute(column, rows)) for column, keys in zip(self.columns, sets, strict=True)]
        found = np.flatnonzero(np.logical_and.reduce(masks))
        return rows if len(found) == rows.num_rows else rows.take(pa.array(found))


def find_rows(target: Target, files: pa.Table, keys: Keys, columns: Sequence[str], *, row_ids: bool) -> pa.Table:
    """The rows that may match: their `columns`, their ids with `row_ids`, `ROW`, and `FILE` as the number of the file.

    `files` have columns of `actions.columns`, `columns` are top-level ones of the table, those of the keys among them.
    Raises InvalidPredicateError where there are too many, and as `read_tasks`.
    """
    schema, asked = target.configuration.schema, dict.fromkeys(columns)
    of_keys = dict.fromkeys(column.path[0] for key in keys.columns for column in columns_of(key))
    numbers = pa.array(range(files.num_rows), pa.int64())
    if files.num_rows > 1 and (row_ids or len(asked) > len(of_keys)):
        # Not every file has such rows: a look at the keys spares the other columns of the rest.
        found = _Search(target, keys, tuple(of_keys), row_ids=False).run(files, len(of_keys) / len(schema))
        numbers = pc.unique(found[FILE].combine_chunks())
    part = (len(asked) + row_ids) / len(schema)
    rows = _Search(target, keys, tuple(asked), row_ids=row_ids).run(files.take(numbers), part)
    return rows.set_column(0, FILE, numbers.take(rows[FILE].combine_chunks()))


class _Search:
    """Reads some columns of files."""

    def __init__(self, target: Target, keys: Keys, columns: Sequence[str], *, row_ids: bool) -> None:
        source, schema = target.source, target.configuration.schema
        self._spark, self._cost, self._keys = target.spark, target.cost, keys
        self._context = source.read_context(
            [field for field in schema if field.name in columns],
            row_ids=row_ids,
            row_index=ROW,
            time_zone=target.time_zone,
        )

    def run(self, files: pa.Table, part: float) -> pa.Table:
        """The rows found, `FILE` first; `part` is about the part of the bytes of files that the columns take."""
        context = self._context
        schema = pa.schema([pa.field(FILE, pa.int64()), *output_schema(context)])
        if not files.num_rows:
            return schema.empty_table()
        location, most = context.table_location, self._cost.matched_rows
        if self._cost.reads_in_driver(location, files, part):
            tasks, threads = list(tasks_of(files)), self._cost.reading_threads(location)
            return _gathered(_found(self._keys, context, tasks, range(len(tasks)), threads), schema, most)
        groups = numbered_groups(context, files, cores_of(self._spark), self._cost)
        result = run_each(self._spark, groups, partial(_search, self._keys, schema, most), _RESULT)
        streams = (pa.ipc.open_stream(rows).read_all() for rows in result["rows"].to_pylist())
        return _gathered((batch for table in streams for batch in table.to_batches()), schema, most)


def _gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int) -> pa.Table:
    found, rows = [], 0
    for batch in batches:
        found.append(batch)
        rows += batch.num_rows
        if rows > most:
            raise InvalidPredicateError("More rows of the table than one process should hold have keys of the source.")
    return pa.Table.from_batches(found, schema).combine_chunks()


def _search(keys: Keys, schema: pa.Schema, most: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task finds; rows as in `_RESULT`."""

    def found() -> pa.Table:
        groups = (pickle.loads(pickled.as_py()) for batch in batches for pickled in batch.column(0))
        rows = _gathered(
            (rows for of, group in groups for rows in _found(keys, group.context, group.tasks(), of)), schema, most
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as stream:
            stream.write_table(rows)
        return pa.Table.from_pylist([{"rows": sink.getvalue().to_pybytes()}], _RESULT_SCHEMA)

    yield from or_failure(found, _RESULT_SCHEMA)


def _found(
    keys: Keys, context: ReadContext, tasks: list[ScanTask], numbers: Sequence[int], threads: int = 1
) -> Iterator[pa.RecordBatch]:
    """The rows that some files have, with the number of the file."""
    sets = keys.sets()

    def with_keys(task: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        found = keys.meeting(sets, rows)
        if found.num_rows:
            of_file = pa.repeat(pa.scalar(numbers[task], pa.int64()), found.num_rows)
            fields = [pa.field(FILE, pa.int64()), *found.schema]
            yield pa.RecordBatch.from_arrays([of_file, *found.columns], schema=pa.schema(fields))

    yield from read_each(context, tasks, with_keys, threads)
