"""Rows that a plain condition is true for, found by Arrow alone: no row passes through Spark.

Comparisons of columns with constants mean the same here as in Spark, and need few columns of each file. What asks for
Spark's own expressions is left to it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from pyspark_delta.data.parallel import ordered_parallel
from pyspark_delta.data.reader import read_tasks
from pyspark_delta.deletion_vectors.bitmap import deserialize, of_indexes, serialize
from pyspark_delta.errors import DeltaError
from pyspark_delta.expressions.text import parts_of
from pyspark_delta.expressions.tree import Call, Cast, Expression, Opaque
from pyspark_delta.scan.plan import ReadContext, ScanTask
from pyspark_delta.scan.planner import read_context
from pyspark_delta.spark.cores import cores_of
from pyspark_delta.spark.scan.file_tasks import spread
from pyspark_delta.spark.source.partitions import FilePartition, group_files, is_little
from pyspark_delta.spark.write.job import run_on_workers

if TYPE_CHECKING:
    from pyspark_delta.spark.dml.target import Candidates, Target

_ROW = "row"
_THREADS = 8  # which wait for the store, most of the time
_RESULT = "file bigint, rows binary, failure binary"
_RESULT_SCHEMA = pa.schema([("file", pa.int64()), ("rows", pa.binary()), ("failure", pa.binary())])


def is_plain(predicate: Expression) -> bool:
    """Whether it is made of columns and constants that are compared, and nothing that is computed."""
    return not any(isinstance(part, Opaque | Cast | Call) for part in parts_of(predicate))


def with_files_met(target: Target, candidates: Candidates, predicate: Expression) -> Candidates:
    """The candidates without the files of which no row meets a plain condition; what a commit depends on stays.

    One look at the columns of the condition spares Spark all columns of those files. Raises as `read_tasks`.
    """
    if candidates.partly.num_rows < 2 or not is_plain(predicate):
        return candidates
    met = sorted(search_rows(target, candidates.partly, predicate))
    return replace(candidates, partly=candidates.partly.take(pa.array(met, pa.int64())))


def search_rows(target: Target, files: pa.Table, predicate: Expression) -> dict[int, BitMap64]:
    """The positions of the rows that meet a condition in their files, by the number of the file.

    `files` have columns of `actions.columns`. Raises as `read_tasks`.
    """
    source = target.source
    context = read_context(
        source.location,
        source.configuration,
        (),
        residual=predicate,
        row_index=_ROW,
        storage_options=source.storage_options,
        time_zone=target.time_zone,
    )
    if is_little(files, few_columns=True):
        return dict(_found(0, FilePartition(context, files), _THREADS))
    result = run_on_workers(spread(target.spark, _numbered(context, files, cores_of(target.spark))), _search, _RESULT)
    found = zip(result["file"].to_pylist(), result["rows"].to_pylist(), strict=True)
    return {number: deserialize(rows) for number, rows in found}


def _numbered(context: ReadContext, files: pa.Table, cores: int) -> Iterator[tuple[int, FilePartition]]:
    """The files in groups, with the number of the first of each."""
    first = 0
    for group in group_files(context, files, cores):
        yield first, group
        first += group.number_of_files


def _search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task finds; rows as in `_RESULT`, a single one with the error when it cannot go on."""
    try:
        groups = (pickle.loads(pickled.as_py()) for batch in batches for pickled in batch.column(0))
        found = [{"file": number, "rows": serialize(rows)} for group in groups for number, rows in _found(*group)]
    except DeltaError as error:
        found = [{"failure": pickle.dumps(error)}]
    yield from pa.Table.from_pylist(found, _RESULT_SCHEMA).to_batches()


def _found(first: int, group: FilePartition, threads: int = 1) -> Iterator[tuple[int, BitMap64]]:
    """The rows that are met, of the files that have some; `first` is the number of the first file."""
    yield from ordered_parallel(partial(_met, group.context), enumerate(group.tasks(), first), threads)


def _met(context: ReadContext, numbered: tuple[int, ScanTask]) -> Iterator[tuple[int, BitMap64]]:
    number, task = numbered
    indexes = [batch.column(0).to_numpy() for batch in read_tasks(context, [task])]
    if indexes:
        yield number, of_indexes(np.concatenate(indexes))
