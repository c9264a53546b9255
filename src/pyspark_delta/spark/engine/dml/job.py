"""The Spark job of a row change, and what came of it, whoever carried it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from pyspark_delta.data.writer import WRITTEN_SCHEMA
from pyspark_delta.deletion_vectors.bitmap import deserialize
from pyspark_delta.protocol.draft import no_files
from pyspark_delta.spark.engine.dml.task import RESULT, ChangeContext, change_partition
from pyspark_delta.spark.engine.write.job import run_on_workers
from pyspark_delta.write.change_data import change_files
from pyspark_delta.write.written import Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """What a job did: files with `new` rows, change data files, and the rows that left files, by number of the file.

    `counts` are the rows of each action. `crossed_off` counts every time that a row was to leave its file: more than
    there are in `gone` where several source rows met one row of the table.
    """

    new: Written
    changes: pa.Table
    gone: Mapping[int, BitMap64] = field(default_factory=dict)
    counts: Sequence[int] = ()
    crossed_off: int = 0

    @classmethod
    def nothing(cls, actions: int) -> ChangedRows:
        """No rows were met."""
        return cls(Written.nothing(), no_files(), {}, (0,) * actions)

    @classmethod
    def only_gone(cls, gone: Mapping[int, BitMap64]) -> ChangedRows:
        """Rows left, by the one action of a statement, and none came."""
        count = sum(map(len, gone.values()))
        return cls(Written.nothing(), no_files(), gone, (count,), count)

    @property
    def has_repetitions(self) -> bool:
        """Whether a row was to leave its file more than once."""
        return self.crossed_off > sum(len(bitmap) for bitmap in self.gone.values())


def change_rows(frame: DataFrame, context: ChangeContext) -> ChangedRows:
    """Run the job; the columns of the frame are those that `ChangeContext` says, by position.

    Raises the DeltaError that a worker met, as itself. Files that other tasks wrote stay behind; no commit names them.
    """
    frame = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
    written = context.data or context.changes
    if written is not None and written.partition_columns:
        names = context.columns.names  # so that a task has one file open at a time
        frame = frame.sortWithinPartitions(*(f"c{names.index(name)}" for name in written.partition_columns))
    return changed_rows(run_on_workers(frame, partial(change_partition, context), RESULT), context)


def changed_rows(result: pa.Table, context: ChangeContext) -> ChangedRows:
    """What tasks say that they did, put together; `result` is as in `task.RESULT`."""
    files = result.select([*WRITTEN_SCHEMA.names, "is_change"])
    new, changes = (
        files.filter(pc.equal(files["is_change"], is_change)).select(WRITTEN_SCHEMA.names).cast(WRITTEN_SCHEMA)
        for is_change in (False, True)
    )
    counts = [one for one in result["counts"].to_pylist() if one is not None]
    totals = np.sum(np.array(counts, np.int64), axis=0).tolist() if counts else [0] * len(context.actions)
    crossed_off = sum(n for n, action in zip(totals, context.actions, strict=True) if action.is_gone)
    return ChangedRows(
        new=Written.nothing() if context.data is None else Written.of(new, context.data),
        changes=change_files(changes) if changes.num_rows else no_files(),
        gone=_gone(result.filter(pc.is_valid(result["file"]))),
        counts=totals,
        crossed_off=crossed_off,
    )


def _gone(found: pa.Table) -> dict[int, BitMap64]:
    gone: dict[int, BitMap64] = {}
    for number, rows in zip(found["file"].to_pylist(), found["rows"].to_pylist(), strict=True):
        bitmap = deserialize(rows)
        known = gone.get(number)
        gone[number] = bitmap if known is None else known | bitmap
    return gone
