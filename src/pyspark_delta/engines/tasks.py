"""Tasks: groups of files of about the same size, and runners that call a function on each group."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.reader import TASK_COLUMNS, tasks_of
from pyspark_delta.engines.cost import DEFAULT, CostModel
from pyspark_delta.errors import DeltaError
from pyspark_delta.scan.plan import ReadContext, ScanTask

ArrowTask: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function of all rows of a task."""
ItemTask: TypeAlias = Callable[[int, Any], Iterator[pa.RecordBatch]]
"""A function of one picklable item, and of its number."""


class TaskRunner(Protocol):
    """Runs tasks outside of this process, such as those of a Spark session."""

    def cores(self) -> int:
        """Return how many tasks run at once."""

    def run_each(self, items: Iterable[object], task: ItemTask, result: pa.Schema) -> pa.Table:
        """Run a function on each item in a task of its own; return the rows of all.

        `result` is their schema, with a column for failures as `failures.or_failure` fills it. Raises the first
        failure.
        """

    def run_exchange(
        self, items: Iterable[object], divide: ItemTask, exchange: Exchange, write: ArrowTask, result: pa.Schema
    ) -> pa.Table:
        """Run `divide` on each item in a task of its own, exchange its rows, and run `write` on what each task gets.

        Return the rows of all, with a column for failures as above. Raises none of them: the caller may have to delete
        what other tasks wrote.
        """


@dataclass(frozen=True)
class Exchange:
    """How rows of `schema` go from tasks to others: `task` is the column with the number of the task that gets a row.

    Numbers are below `tasks`. A task gets its rows in the order of the columns `order`. A column of binaries may have
    values of some MiB; tasks get few of them at once.
    """

    schema: pa.Schema
    task: str
    tasks: int
    order: tuple[str, ...]


def pickle_items(items: Iterable[object]) -> list[bytes]:
    """Return each item with its number, as `run_items` reads them."""
    return [pickle.dumps(numbered) for numbered in enumerate(items)]


def run_items(task: ItemTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Call a function on each item in the first column of some batches; yield its rows."""
    for batch in batches:
        for pickled in batch.column(0):
            number, item = pickle.loads(pickled.as_py())
            yield from task(number, item)


class FileGroup:
    """The files that one task reads, with what it needs to read them; the files are an Arrow stream."""

    def __init__(self, context: ReadContext, files: pa.Table) -> None:
        self.context, self.number_of_files = context, files.num_rows
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, files.schema) as stream:
            stream.write_table(files)
        self._files: bytes = sink.getvalue().to_pybytes()

    def __repr__(self) -> str:
        return f"FileGroup({self.number_of_files} files of {self.context.table_location})"

    def tasks(self) -> list[ScanTask]:
        """Return the files as tasks of the Arrow reader."""
        return list(tasks_of(pa.ipc.open_stream(self._files).read_all()))


def single_files(context: ReadContext, files: pa.Table) -> Iterator[FileGroup]:
    """Yield a group for each file."""
    files = _task_columns(files)
    for number in range(files.num_rows):
        yield FileGroup(context, files.slice(number, 1))


def in_shares(files: pa.Table, cost: CostModel = DEFAULT) -> pa.Table:
    """Return the files; one larger than a task occurs once for each share of its row groups."""
    sizes = files["size"].to_numpy()
    shares = np.maximum(1, -(-sizes // cost.task_bytes))
    parts = _task_columns(files).take(pa.array(np.repeat(np.arange(files.num_rows), shares)))
    of = np.repeat(shares, shares)
    number = np.arange(len(of)) - np.repeat(np.cumsum(shares) - shares, shares)
    parts = parts.set_column(parts.column_names.index("size"), "size", pa.array(np.repeat(sizes, shares) // of))
    return parts.append_column("share", pa.StructArray.from_arrays([pa.array(number), pa.array(of)], ["number", "of"]))


def group_files(context: ReadContext, files: pa.Table, cores: int, cost: CostModel = DEFAULT) -> Iterator[FileGroup]:
    """Yield files, in order, in groups of the size of a task, or smaller ones if cores would be idle."""
    files = _task_columns(files)
    if files.num_rows == 0:
        return
    sizes = files["size"].to_numpy() + cost.file_open_bytes
    yield from _cut(context, files, sizes, min(cost.task_bytes, max(cost.file_open_bytes, int(sizes.sum()) // cores)))


def thread_groups(
    context: ReadContext, files: pa.Table, threads: int, cost: CostModel = DEFAULT
) -> Iterator[tuple[list[int], FileGroup]]:
    """Yield files, large ones `in_shares`, in a group for each thread of this process, as `numbered_groups` does.

    There are fewer groups if they would be smaller than `thread_bytes`, and more if they would be larger than a task.
    """
    shares, positions = _numbered_shares(files, cost)
    sizes = shares["size"].to_numpy()
    limit = max(cost.thread_bytes, -(-int(sizes.sum()) // max(1, threads)))
    yield from _with_positions(_cut(context, shares, sizes, min(cost.task_bytes, limit)), positions)


def numbered_groups(
    context: ReadContext, files: pa.Table, cores: int, cost: CostModel = DEFAULT
) -> Iterator[tuple[list[int], FileGroup]]:
    """Yield the groups of `group_files`, large files `in_shares`, with the position in `files` of each task."""
    shares, positions = _numbered_shares(files, cost)
    yield from _with_positions(group_files(context, shares, cores, cost), positions)


def _cut(context: ReadContext, files: pa.Table, sizes: np.ndarray, limit: int) -> Iterator[FileGroup]:
    """Yield files, in order, in groups of about `limit` bytes. A file belongs to the group that has its middle."""
    middles = np.cumsum(sizes) - sizes // 2
    bounds = [0, *(np.flatnonzero(np.diff(middles // max(1, limit))) + 1).tolist(), files.num_rows]
    for start, end in pairwise(bounds):
        yield FileGroup(context, files.slice(start, end - start))


def _numbered_shares(files: pa.Table, cost: CostModel) -> tuple[pa.Table, list[int]]:
    """Return the files `in_shares`, with the position in `files` of each share."""
    shares = in_shares(files, cost)
    is_first = pc.equal(pc.struct_field(shares["share"], "number"), 0)
    return shares, (np.cumsum(is_first.to_numpy()) - 1).tolist()


def _with_positions(groups: Iterable[FileGroup], positions: list[int]) -> Iterator[tuple[list[int], FileGroup]]:
    for group in groups:
        yield positions[: group.number_of_files], group
        del positions[: group.number_of_files]


def _task_columns(files: pa.Table) -> pa.Table:
    """Return the columns of files that tasks need."""
    return files.select([name for name in TASK_COLUMNS if name in files.column_names])


FAILURE = "failure"
"""The binary column of what tasks make, that holds the pickled DeltaError of one that could not go on."""


def or_failure(make: Callable[[], pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, with a column `FAILURE`, or a single row with the DeltaError that ends the task.

    An error is passed as a value: for an exception Spark would retry the task, and lose its class.
    """
    try:
        result = make()
    except DeltaError as error:
        result = pa.Table.from_pylist([{FAILURE: pickle.dumps(error)}], schema)
    yield from result.to_batches()


def raise_failure(result: pa.Table | pa.RecordBatch) -> None:
    """Raise the first error among the rows of tasks."""
    failures = result.column(FAILURE).drop_null()
    if len(failures):
        error: DeltaError = pickle.loads(failures[0].as_py())
        raise error
