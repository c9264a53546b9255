"""Rewrites files that lose rows: reads and writes the remaining rows with Arrow, in this process or in tasks.

Rows stay in the memory of one process. They are not converted for Spark, and deleted rows are known by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa

from pyspark_delta.data.parts import write_all
from pyspark_delta.data.reader import read_tasks, tasks_of
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext, written_files
from pyspark_delta.engines.contract import DRIVER, TASKS, Done
from pyspark_delta.engines.tasks import FileGroup, group_files, in_shares
from pyspark_delta.engines.write_task import RESULT, write_rows
from pyspark_delta.statements.target import Target, by_partition
from pyspark_delta.write.written import Written, with_row_ids


def rewrite_files(target: Target, files: pa.Table) -> Done[Written]:
    """Write the rows of files that their deletion vectors do not delete, with their ids if they have some.

    `files` have columns of `actions.columns`; rows are read in the schema of the target, and written as its context
    says. Small files of a partition of the table are combined.

    Raises as `read_tasks` and `write_all`. Files of other tasks then stay behind; no commit names them.
    """
    context = with_row_ids(target.configuration, target.context)
    read = target.source.read_context(
        target.context.schema.fields, row_ids=context is not target.context, time_zone=target.time_zone
    )
    files = by_partition(files, target.context)
    tasks, cost = target.tasks, target.cost
    if tasks is None or cost.rewrites_in_driver(files):
        rows = _named(context, read_tasks(read, list(tasks_of(files))))
        return Done(Written.of(written_files(write_all(context, rows)), context), DRIVER)
    groups = group_files(read, in_shares(files, cost), tasks.cores(), cost)
    written = tasks.run_each(groups, partial(_rewrite, context), RESULT)
    return Done(Written.of(written.select(WRITTEN_SCHEMA.names).cast(WRITTEN_SCHEMA), context), TASKS)


def _named(context: WriteContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, list(context.schema.names))


def _rewrite(context: WriteContext, part: int, group: FileGroup) -> Iterator[pa.RecordBatch]:
    yield from write_rows(context, False, part, read_tasks(group.context, group.tasks()))
