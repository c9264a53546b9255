"""Queries that die: `python -m tests.spark.streaming_crash FOLDER` starts one for each point, and kills everything.

Each query reads FOLDER/POINT/source and writes FOLDER/POINT/t. When all have come to their points in batch 1, this
process and its JVM get SIGKILL. At the points of the source, `source` is a Delta table, else a folder of Parquet files.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from threading import Barrier
from typing import Any

POINTS_OF_SINK = ("before", "files", "committed")
"""Before anything is written; with the data files, and without the table's commit; with it, and without Spark's."""

POINTS_OF_SOURCE = {"latestOffset": "latest", "getBatch": "planned", "commit": "released"}
"""Methods of the source: before the offsets of the batch are written; after; when the batch before it is complete."""

POINTS = (*POINTS_OF_SINK, *POINTS_OF_SOURCE.values())


def main(folder: Path) -> None:
    """Start the queries, and die."""
    from pyspark.sql import SparkSession
    from tests.spark.streams import writer

    from pyspark_delta import enable
    from pyspark_delta.spark.streaming.sink import StreamWrite
    from pyspark_delta.spark.streaming.source import DeltaSource
    from pyspark_delta.write import pipeline

    together = Barrier(len(POINTS), action=lambda: os.killpg(0, signal.SIGKILL))
    write, draft_plan = StreamWrite.write, pipeline.draft_plan

    def point(path: str) -> str:
        return Path(path).parent.name

    def dying_write(self: StreamWrite, frame: Any, number: int) -> None:
        if number == 1 and point(self.location) == "before":
            together.wait()
        write(self, frame, number)
        if number == 1 and point(self.location) == "committed":
            together.wait()

    def dying_draft(plan: Any, *rest: Any) -> Any:
        batch = plan.request.batch
        if batch.number == 1 and point(plan.request.location) == "files":
            together.wait()
        return draft_plan(plan, *rest)

    def dying_call(name: str) -> Any:
        original = getattr(DeltaSource, name)

        def call(self: DeltaSource, *arguments: Any) -> Any:
            # Of the first batch, Spark passes no start.
            is_first = name != "commit" and (arguments[0] is None or arguments[0].toString() == "None")
            if not is_first and point(self._stream.location) == POINTS_OF_SOURCE[name]:
                together.wait()
            return original(self, *arguments)

        return call

    StreamWrite.write = dying_write  # type: ignore[method-assign]
    for name in POINTS_OF_SOURCE:
        setattr(DeltaSource, name, dying_call(name))
    pipeline.draft_plan = dying_draft
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = enable(builder.config("spark.log.level", "OFF").getOrCreate())
    for name in POINTS:
        writer(source_of(spark, folder / name, name), folder / name / "c").start(str(folder / name / "t"))
    spark.streams.awaitAnyTermination(300)
    raise SystemExit("a query ended by itself")


def source_of(spark: Any, folder: Path, point: str) -> Any:
    """The stream of a point, a file a batch."""
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    if point in POINTS_OF_SINK:
        return reader.schema("id LONG").parquet(str(folder / "source"))
    return reader.format("delta").load(str(folder / "source"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
