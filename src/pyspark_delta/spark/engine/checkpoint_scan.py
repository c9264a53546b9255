"""Log replay on executors: tasks of the session scan a checkpoint that is large for one driver.

The commits after the checkpoint are replayed in this process; they are few. Tasks read row groups, drop the files that
the predicates of the request exclude, and return the others. The driver holds only these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import SparkContext

from pyspark_delta.engines.tasks import FAILURE, or_failure
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.log.checkpoint_scan import scan_share
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.scanner import CheckpointShare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINIMUM_ACTIONS = "spark.pyspark_delta.log.executors.minActions"
"""The session setting for the number of actions from which tasks scan a checkpoint. By default 5 million, and never if
the tasks run on the machine of the driver."""
_MINIMUM_ACTIONS = 5_000_000
_FILES = "files"
_RESULT = pa.schema([(_FILES, pa.binary()), (FAILURE, pa.binary())])


class SparkCheckpointScanner:
    """Scans checkpoints in tasks of the active session (`log.scanner.CheckpointScanner`)."""

    def takes(self, actions: int) -> bool:
        spark = _classic_session()
        if spark is None:
            return False
        text = spark.conf.get(MINIMUM_ACTIONS, None)
        if text is None:
            return actions >= _MINIMUM_ACTIONS and not str(spark.sparkContext.master).startswith("local")
        if not text.strip().isdecimal():
            raise InvalidOptionError(f"The session setting {MINIMUM_ACTIONS} is a number of actions, found '{text}'.")
        return actions >= int(text)

    def scan(
        self, shares: Iterable[CheckpointShare], action: str, fields: Sequence[pa.Field], request: FileRequest
    ) -> Iterator[pa.RecordBatch]:
        from pyspark_delta.spark.engine.write.job import SparkTasks

        spark = _classic_session()
        assert spark is not None
        found = SparkTasks(spark).run_each(shares, partial(_scan, action, tuple(fields), request), _RESULT)
        for batch in found.column(_FILES):
            yield from pa.ipc.open_stream(batch.as_buffer())


def _scan(
    action: str, fields: tuple[pa.Field, ...], request: FileRequest, number: int, share: CheckpointShare
) -> Iterator[pa.RecordBatch]:
    """Return the requested files of a share as one Arrow stream, or an error."""

    def make() -> pa.Table:
        batches = [batch for batch in scan_share(share, action, fields, request) if batch.num_rows]
        if not batches:
            return _RESULT.empty_table()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batches[0].schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        return pa.table({_FILES: [sink.getvalue().to_pybytes()], FAILURE: [None]}, _RESULT)

    return or_failure(make, _RESULT)


def _classic_session() -> SparkSession | None:
    """Return the active session of this thread, or the last one; None in a process that has no driver of Spark."""
    if SparkContext._active_spark_context is None:
        return None
    from pyspark.sql import SparkSession

    session: Any = SparkSession.getActiveSession()
    return session if session is not None else SparkSession._instantiatedSession
