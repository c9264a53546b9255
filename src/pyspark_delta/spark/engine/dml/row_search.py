"""Rows that an exact condition is true for, found by Arrow alone: no row passes through Spark.

Such conditions mean the same here as in Spark, and need few columns of each file.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from pyspark_delta.data.reader import read_each, tasks_of
from pyspark_delta.deletion_vectors.bitmap import deserialize, of_indexes, serialize
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.scan.plan import ReadContext, ScanTask
from pyspark_delta.spark.conf.cores import cores_of
from pyspark_delta.spark.engine.dml.target import ROW
from pyspark_delta.spark.engine.write.failures import or_failure
from pyspark_delta.spark.engine.write.job import run_each
from pyspark_delta.spark.frames.tasks.partitions import numbered_groups

if TYPE_CHECKING:
    from pyspark_delta.spark.engine.dml.target import Candidates, Target

_RESULT = "file bigint, rows binary, failure binary"
_RESULT_SCHEMA = pa.schema([("file", pa.int64()), ("rows", pa.binary()), ("failure", pa.binary())])


def with_files_met(target: Target, candidates: Candidates, condition: Expression) -> Candidates:
    """The candidates without the files of which no row meets an exact condition; what a commit depends on stays.

    One look at the columns of the condition spares the statement all columns of those files. Raises as `search_rows`.
    """
    if candidates.partly.num_rows < 2:
        return candidates
    met = sorted(search_rows(target, candidates.partly, condition))
    return replace(candidates, partly=candidates.partly.take(pa.array(met, pa.int64())))


def search_rows(target: Target, files: pa.Table, condition: Expression | None) -> dict[int, BitMap64]:
    """The positions of the rows that meet an exact condition, or of all, in their files, by the number of the file.

    `files` have columns of `actions.columns`. Raises InvalidPredicateError where the condition cannot be computed for a
    row, and as `read_tasks`.
    """
    context = target.source.read_context((), residual=condition, row_index=ROW, time_zone=target.time_zone)
    columns = 0 if condition is None else len({column.path[0] for column in columns_of(condition)})
    location = context.table_location
    if target.cost.reads_in_driver(location, files, columns / len(target.configuration.schema)):
        threads = target.cost.reading_threads(location)
        return _united(_found(context, list(tasks_of(files)), range(files.num_rows), threads))
    groups = numbered_groups(context, files, cores_of(target.spark), target.cost)
    result = run_each(target.spark, groups, _search, _RESULT)
    found = zip(result["file"].to_pylist(), result["rows"].to_pylist(), strict=True)
    return _united((number, deserialize(rows)) for number, rows in found)


def _united(found: Iterable[tuple[int, BitMap64]]) -> dict[int, BitMap64]:
    """The rows of each file: large ones are searched in shares."""
    united: dict[int, BitMap64] = {}
    for number, rows in found:
        united[number] = united[number] | rows if number in united else rows
    return united


def _search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task finds; rows as in `_RESULT`."""

    def found() -> pa.Table:
        groups = (pickle.loads(pickled.as_py()) for batch in batches for pickled in batch.column(0))
        rows = [
            {"file": number, "rows": serialize(rows)}
            for numbers, group in groups
            for number, rows in _found(group.context, group.tasks(), numbers)
        ]
        return pa.Table.from_pylist(rows, _RESULT_SCHEMA)

    yield from or_failure(found, _RESULT_SCHEMA)


def _found(
    context: ReadContext, tasks: list[ScanTask], numbers: Sequence[int], threads: int = 1
) -> Iterator[tuple[int, BitMap64]]:
    """The rows that are met, of the files that have some, with the number of the file."""

    def positions(task: int, rows: pa.RecordBatch) -> Iterator[tuple[int, np.ndarray]]:
        yield task, rows.column(0).to_numpy()

    for task, found in groupby(read_each(context, tasks, positions, threads), itemgetter(0)):
        yield numbers[task], of_indexes(np.concatenate([rows for _, rows in found]))
