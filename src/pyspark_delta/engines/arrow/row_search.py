"""Finds rows for which an exact condition is true with Arrow alone: no row passes through Spark.

Such conditions mean the same here as in Spark, and need few columns of each file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from pyspark_delta.data.reader import read_each, tasks_of
from pyspark_delta.deletion_vectors.bitmap import deserialize, of_indexes, serialize
from pyspark_delta.engines.contract import DRIVER, TASKS, Done
from pyspark_delta.engines.tasks import FileGroup, numbered_groups, or_failure
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.scan.plan import ReadContext, ScanTask
from pyspark_delta.statements.target import ROW, Target

_RESULT = pa.schema([("file", pa.int64()), ("rows", pa.binary()), ("failure", pa.binary())])


def search_rows(target: Target, files: pa.Table, condition: Expression | None) -> Done[dict[int, BitMap64]]:
    """Return the positions of the rows that meet an exact condition, or of all rows, by the number of the file.

    `files` have columns of `actions.columns`. Raises ComputationError if the condition cannot be computed for a row,
    and as `read_tasks`.
    """
    context = target.source.read_context((), residual=condition, row_index=ROW, time_zone=target.time_zone)
    columns = 0 if condition is None else len({column.path[0] for column in columns_of(condition)})
    location, tasks, cost = context.table_location, target.tasks, target.cost
    if tasks is None or cost.reads_in_driver(location, files, columns / len(target.configuration.schema)):
        threads = cost.reading_threads(location)
        return Done(_united(_found(context, list(tasks_of(files)), range(files.num_rows), threads)), DRIVER)
    groups = numbered_groups(context, files, tasks.cores(), cost)
    result = tasks.run_each(groups, _search, _RESULT)
    found = zip(result["file"].to_pylist(), result["rows"].to_pylist(), strict=True)
    return Done(_united((number, deserialize(rows)) for number, rows in found), TASKS)


def _united(found: Iterable[tuple[int, BitMap64]]) -> dict[int, BitMap64]:
    """Return the rows of each file; large files are searched in several shares."""
    united: dict[int, BitMap64] = {}
    for number, rows in found:
        united[number] = united[number] | rows if number in united else rows
    return united


def _search(_: int, item: tuple[Sequence[int], FileGroup]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a task finds, as in `_RESULT`."""
    numbers, group = item

    def found() -> pa.Table:
        rows = [
            {"file": number, "rows": serialize(rows)} for number, rows in _found(group.context, group.tasks(), numbers)
        ]
        return pa.Table.from_pylist(rows, _RESULT)

    yield from or_failure(found, _RESULT)


def _found(
    context: ReadContext, tasks: list[ScanTask], numbers: Sequence[int], threads: int = 1
) -> Iterator[tuple[int, BitMap64]]:
    """Yield the number of each file with matching rows, and these rows."""

    def positions(task: int, rows: pa.RecordBatch) -> Iterator[tuple[int, np.ndarray]]:
        yield task, rows.column(0).to_numpy()

    for task, found in groupby(read_each(context, tasks, positions, threads), itemgetter(0)):
        yield numbers[task], of_indexes(np.concatenate([rows for _, rows in found]))
