"""Rewriting bins outside of this process, such as in tasks of Spark: a task for each bin, and a job for many bins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.reader import read_tasks
from pyspark_delta.data.writer import WRITTEN_SCHEMA, WriteContext
from pyspark_delta.engines.tasks import FileGroup, TaskRunner
from pyspark_delta.engines.write_task import RESULT, write_rows
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, rewritten_bin
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin

_BIN = pa.field("bin", pa.int64())
_RESULT = RESULT.append(_BIN)
_Item = tuple[int, WriteContext, FileGroup]

TaskWriter: TypeAlias = Callable[[TaskRunner, Rewriting, Sequence[Bin]], list[RewrittenBin]]
"""Writes the rows of bins to new files in tasks, and returns the bins in the same order."""


def rewrite_in_tasks(runner: TaskRunner, rewriting: Rewriting, bins: Sequence[Bin]) -> list[RewrittenBin]:
    """Write the rows of each bin to new files, in the order of its files, in a task of its own.

    Raises the first error of a task; files of other tasks then stay behind, and no commit names them.
    """
    items = [(one.number, rewriting.write_context(one), FileGroup(rewriting.read, one.files)) for one in bins]
    result = runner.run_each(items, _rewrite, _RESULT)
    found = []
    for one in bins:
        written = result.filter(pc.equal(result[_BIN.name], one.number)).select(WRITTEN_SCHEMA.names)
        found.append(rewritten_bin(rewriting, one, written.cast(WRITTEN_SCHEMA)))
    return found


def _rewrite(part: int, item: _Item) -> Iterator[pa.RecordBatch]:
    number, context, group = item
    for batch in write_rows(context, False, part, read_tasks(group.context, group.tasks())):
        yield batch.append_column(_BIN, pa.repeat(pa.scalar(number, pa.int64()), batch.num_rows))
