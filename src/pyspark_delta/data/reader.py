"""Reading data files as rows of the table: executes a `ScanPlan` with Arrow.

`read_plan` runs a complete plan in this process; `read_tasks` runs some tasks, for engines that distribute them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta import progress
from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.data.decoders import Decoder
from pyspark_delta.data.files import DataFileReader
from pyspark_delta.data.raw_rows import RowSelection, without_columns
from pyspark_delta.deletion_vectors import read_deletion_vectors
from pyspark_delta.parallel import flat_map_ordered
from pyspark_delta.scan.plan import ChangeType, PartitionConstant, ReadContext, ScanPlan, ScanTask
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.partition_values import parse_partition_column
from pyspark_delta.schema.types import StructType
from pyspark_delta.storage import ObjectStore, store_for

_UNIT_BYTES = 16 << 20  # small files are read together up to this size
_UNIT_FILES = 64
_SLICE = 4096  # rows of the file table that become tasks at once
_SMALL_BATCH = 16_384  # batches below this many rows are joined
_JOINED_ROWS = 65_536
_JOINED_BYTES = 32 << 20
_MAX_THREADS = 8
READ_FILES = "Read files"
Item = TypeVar("Item")

TASK_COLUMNS = (
    "path",
    "size",
    "partition_values",
    "deletion_vector",
    "base_row_id",
    "default_row_commit_version",
    "selects_rows",
    "share",
)
"""The columns of a file table that tasks are made from."""


def read_task(context: ReadContext, task: ScanTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one task, as batches of `output_schema(context)`; see `read_tasks`."""
    yield from read_tasks(context, [task])


def read_tasks(context: ReadContext, tasks: Sequence[ScanTask]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some tasks in order, as batches of `output_schema(context)`. Small batches are joined.

    Raises DataFileError if a file is missing, damaged, or does not match the table's schema; DeletionVectorError if a
    deletion vector cannot be applied; CorruptLogError for a partition value that is not of its type.
    """
    scan = _Scan(context, threads_within_file=True)
    step = progress.begin(READ_FILES, len(tasks), "files")
    for unit in _grouped(_with_constants(context, tasks)):
        yield from scan.read_unit(unit)
        step.add(len(unit))


def read_each(
    context: ReadContext,
    tasks: Sequence[ScanTask],
    make: Callable[[int, pa.RecordBatch], Iterable[Item]],
    threads: int = 1,
) -> Iterator[Item]:
    """Yield the results of `make` for each batch of some tasks, in order. `make` gets the task's number and the batch.

    `threads` threads read tasks ahead and call `make` on their rows. Raises the errors of `read_tasks` and `make`.
    """
    threads = min(threads, len(tasks))
    scan = _Scan(context, threads_within_file=threads <= 1)
    selections = scan.selections(tasks)

    def read(numbered: tuple[int, Prepared]) -> Iterator[Item]:
        number, prepared = numbered
        for batch in scan.read_file(prepared, selections[number]):
            yield from make(number, batch)

    step = progress.begin(READ_FILES, len(tasks), "files")
    counted = step.counting(read, lambda _: 1)
    yield from step.shown(flat_map_ordered(counted, enumerate(_with_constants(context, tasks)), threads))


def read_plan(plan: ScanPlan, threads: int | None = None, decoder: Decoder | None = None) -> pa.RecordBatchReader:
    """Read the rows of a plan, file by file in the plan's order, decoded by `threads` workers (the cores, by default).

    Batches are read as they are consumed, with a bounded number ahead, so memory does not grow with the table.
    `decoder`, which has no views, decodes the files that it does not decline. The errors of `read_tasks` are raised
    while reading.
    """
    return pa.RecordBatchReader.from_batches(output_schema(plan.context), read_batches(plan, threads, decoder))


def read_batches(
    plan: ScanPlan, threads: int | None = None, decoder: Decoder | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the rows as `read_plan` does. If the decoder has views, texts and binaries of some batches are views."""
    workers = threads if threads is not None else min(os.cpu_count() or 1, _MAX_THREADS)
    scan = _Scan(plan.context, threads_within_file=plan.files.num_rows < workers, decoder=decoder)
    step = progress.begin(READ_FILES, plan.files.num_rows, "files")
    read = step.counting(scan.read_unit, len)
    units = _grouped(_prepared(plan), *(() if decoder is None else decoder.unit))
    return step.shown(flat_map_ordered(read, units, min(workers, max(1, plan.files.num_rows))))


def output_schema(context: ReadContext) -> pa.Schema:
    """Return the Arrow schema of the rows of a scan: every column and field is nullable (C374)."""
    by_name = {column.field.name: column.field for column in context.columns}
    return schema_to_arrow(StructType(tuple(by_name[name] for name in context.output)), all_nullable=True)


Prepared = tuple[ScanTask, dict[str, pa.Scalar]]


class _Scan:
    """The state that the tasks of one context share; thread-safe."""

    def __init__(self, context: ReadContext, *, threads_within_file: bool, decoder: Decoder | None = None) -> None:
        self._context = context
        schema = output_schema(context)
        self._reader = DataFileReader(context, schema, use_threads=threads_within_file, decoder=decoder)
        self._joins = decoder is None or not decoder.has_views

    def read_unit(self, unit: list[Prepared]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some files. Small batches of equal types are joined."""
        if not self._joins:
            yield from self._read_files(unit)
            return
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in self._read_files(unit):
            if batch.num_rows >= _SMALL_BATCH and not waiting:
                yield batch
                continue
            if waiting and (rows + batch.num_rows > _JOINED_ROWS or size + batch.nbytes > _JOINED_BYTES):
                yield from _joined(waiting)
                waiting, rows, size = [], 0, 0
            waiting.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        yield from _joined(waiting)

    def _read_files(self, unit: list[Prepared]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some files. Their deletion vectors are fetched together."""
        selections = self.selections([task for task, _ in unit])
        files = ((task, constants, selection) for (task, constants), selection in zip(unit, selections, strict=True))
        yield from self._reader.read_together(files)

    def read_file(self, prepared: Prepared, selection: RowSelection) -> Iterator[pa.RecordBatch]:
        """Return an iterator of the rows of one file."""
        task, constants = prepared
        return self._reader.read(task, constants, selection)

    def selections(self, tasks: Sequence[ScanTask]) -> list[RowSelection]:
        """Return the rows to read of some files, by their deletion vectors."""
        with_vector = [i for i, task in enumerate(tasks) if task.deletion_vector is not None]
        if not with_vector:
            return [RowSelection()] * len(tasks)
        vectors = read_deletion_vectors(
            self._store_for,
            self._context.table_location,
            [vector for i in with_vector if (vector := tasks[i].deletion_vector) is not None],
            data_files=[tasks[i].path for i in with_vector],
        )
        found = dict(zip(with_vector, vectors, strict=True))
        return [
            RowSelection(found[i], task.selects_rows) if i in found else RowSelection() for i, task in enumerate(tasks)
        ]

    def _store_for(self, location: str) -> ObjectStore:
        return store_for(location, self._context.storage_options)


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join the rows of some batches into as few as possible."""
    if len(batches) <= 1:
        yield from batches
    elif batches[0].num_columns:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()
    else:
        yield without_columns(sum(batch.num_rows for batch in batches))


# ------------------------------------------------------------------------------------- from the file table to tasks
def _grouped(
    files: Iterable[Prepared], most_bytes: int = _UNIT_BYTES, most_files: int = _UNIT_FILES
) -> Iterator[list[Prepared]]:
    """Yield groups of files, in order, so that small files are read together."""
    unit: list[Prepared] = []
    size = 0
    for prepared in files:
        if unit and (size + prepared[0].size > most_bytes or len(unit) >= most_files):
            yield unit
            unit, size = [], 0
        unit.append(prepared)
        size += prepared[0].size
    if unit:
        yield unit


def _with_constants(context: ReadContext, tasks: Sequence[ScanTask]) -> list[Prepared]:
    """Return tasks with their typed partition values."""
    typed = {
        column.physical_name: _typed(
            pa.array([task.partition_values.get(column.physical_name) for task in tasks], pa.string()), column, context
        )
        for column in _constants(context)
    }
    return [(task, {name: values[i] for name, values in typed.items()}) for i, task in enumerate(tasks)]


def _prepared(plan: ScanPlan) -> Iterator[Prepared]:
    """Yield the tasks of a plan with their typed partition values, one slice of the file table after another."""
    for start in range(0, plan.files.num_rows, _SLICE):
        files = plan.files.slice(start, _SLICE)
        typed = {
            column.physical_name: _typed(partition_text(files, column.physical_name), column, plan.context)
            for column in _constants(plan.context)
        }
        for i, task in enumerate(tasks_of(files)):
            yield task, {name: values[i] for name, values in typed.items()}


def _constants(context: ReadContext) -> list[PartitionConstant]:
    """Return the columns that are constant in a file, or may be."""
    found = []
    for column in context.columns:
        match column:
            case PartitionConstant():
                found.append(column)
            case ChangeType(field):
                found.append(PartitionConstant(field, field.name))
    return found


def _typed(text: pa.Array, column: PartitionConstant, context: ReadContext) -> pa.Array:
    return parse_partition_column(
        text, column.field.type, context.time_zone, column=column.field.name, table=context.table_location
    )


def partition_text(files: pa.Table, physical_name: str) -> pa.Array:
    """Return the text of one partition column for every file, null where the log has none."""
    values = files.column("partition_values").combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    return pc.map_lookup(values, pa.scalar(physical_name), "last").cast(pa.string())


def tasks_of(files: pa.Table) -> Iterator[ScanTask]:
    """Yield the rows of a file table (`actions.columns`) as tasks; absent columns count as null."""

    def column(name: str) -> list[Any]:
        return files.column(name).to_pylist() if name in files.column_names else [None] * files.num_rows

    columns = (column(name) for name in TASK_COLUMNS)
    for path, size, values, vector, base_row_id, version, selects, share in zip(*columns, strict=True):
        yield ScanTask(
            path=path,
            size=size or 0,
            partition_values=dict(values or ()),
            deletion_vector=None if vector is None else DeletionVectorDescriptor(**vector),
            base_row_id=base_row_id,
            default_row_commit_version=version,
            selects_rows=bool(selects),
            share=None if share is None else (share["number"], share["of"]),
        )
