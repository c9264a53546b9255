"""Removes deleted rows from files by vectors or by rewriting: with Arrow, or with Spark if only it can read a file."""

from __future__ import annotations

import pyarrow as pa

from pyspark_delta.engines.arrow.rewriting import rewrite_files
from pyspark_delta.engines.contract import ARROW, SPARK, CannotRun, Done, answer, first_done
from pyspark_delta.engines.row_changes import ChangedRows
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.engine.write.job import write_kept
from pyspark_delta.spark.frames.reading import read_files
from pyspark_delta.statements.outcome import FileChanges, apply_deletions
from pyspark_delta.write.written import Written


def delete_from_files(
    target: SparkTarget, candidates: pa.Table, rows: ChangedRows, removed_whole: pa.Table
) -> FileChanges:
    """Call `apply_deletions`, and rewrite files with the engine that can read them."""

    def by_arrow(files: pa.Table) -> Done[Written] | CannotRun:
        return answer(lambda: rewrite_files(target, files))

    def by_spark(files: pa.Table) -> Done[Written]:
        kept = read_files(target.spark, target.source, files, row_tracking=target.has_row_ids)
        return Done(write_kept(kept, target.configuration, target.context), SPARK)

    def rewrite(files: pa.Table) -> Written:
        return first_done("rewriting", ((ARROW, by_arrow), (SPARK, by_spark)), lambda engine: engine(files)).value

    return apply_deletions(target, candidates, rows, removed_whole, rewrite)
