"""Queries that die: `python -m tests.spark.streaming_crash FOLDER` starts one for each point, and kills everything.

Each query reads FOLDER/POINT/source and writes FOLDER/POINT/t. When all have come to their points in batch 1, this
process and its JVM get SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from threading import Barrier
from typing import Any

POINTS = ("before", "files", "committed")
"""Before anything is written; with the data files, and without the table's commit; with it, and without Spark's."""


def main(folder: Path) -> None:
    """Start the queries, and die."""
    from pyspark.sql import SparkSession
    from tests.spark.streams import writer

    from pyspark_delta import enable
    from pyspark_delta.spark.streaming.sink import StreamWrite
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

    StreamWrite.write = dying_write  # type: ignore[method-assign]
    pipeline.draft_plan = dying_draft
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = enable(builder.config("spark.log.level", "OFF").getOrCreate())
    for name in POINTS:
        reader = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1)
        frame = reader.parquet(str(folder / name / "source"))
        writer(frame, folder / name / "c").start(str(folder / name / "t"))
    spark.streams.awaitAnyTermination(300)
    raise SystemExit("a query ended by itself")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
