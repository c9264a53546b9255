"""Where a session rewrites files: in this process or in tasks, and by Spark what only Spark can read.

Such are lists in lists in the form of old writers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pyspark import inheritable_thread_target

from pyspark_delta.data.writer import WRITTEN_SCHEMA
from pyspark_delta.engines.write_task import RESULT
from pyspark_delta.maintenance.layout.plan import LayoutPlan
from pyspark_delta.maintenance.rewriting.bins import Bin
from pyspark_delta.maintenance.rewriting.plan import RewritePlan, in_tasks
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting, rewritten_bin
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.spark.conf.classes import has_classic_package
from pyspark_delta.spark.conf.limits import cost_model
from pyspark_delta.spark.engine.write.job import SparkTasks, run_on_workers, write_partition
from pyspark_delta.spark.frames.reading import read_files
from pyspark_delta.write.written import has_row_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
R = TypeVar("R")

_FILE, _ROW = "__pyspark_delta_file", "__pyspark_delta_row"


def placed(spark: SparkSession, plan: RewritePlan) -> RewritePlan:
    """Return the plan with tasks of the session if it reads too much for this process.

    Spark reads what only it can read. Rows that are laid out have to be read by Arrow.
    """
    plan = replace(plan, options=replace(plan.options, for_threads=partial(_inheriting, spark)))
    if not isinstance(plan, LayoutPlan):
        plan = replace(plan, options=replace(plan.options, fallback=SparkBinWriter(spark)))
    if cost_model(spark).compacts_in_driver(plan.snapshot.location, plan.bytes_read):
        return plan
    return in_tasks(plan, SparkTasks(spark))


def _inheriting(spark: SparkSession, function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose jobs, in any thread, have the job group, tags and scheduler pool of this thread."""
    target: Any = inheritable_thread_target
    if has_classic_package():  # PySpark 3.5 takes no session
        target = target(spark)
    inherited: Callable[P, R] = target(function)
    return inherited


@dataclass(frozen=True)
class SparkBinWriter:
    """A `BinWriter` that lets Spark read the rows of a bin; one task writes them, in the order of the files."""

    spark: SparkSession

    def __call__(self, rewriting: Rewriting, source: Bin, check: Callable[[], None]) -> RewrittenBin:
        """Write the rows of a bin. Raises the errors of a Spark job, StorageError, and what `check` raises."""
        check()
        context, snapshot = rewriting.write_context(source), rewriting.snapshot
        rows = read_files(
            self.spark,
            file_source(snapshot),
            source.files,
            row_tracking=has_row_ids(snapshot.configuration),
            file_number=_FILE,
            row_index=_ROW,
        )
        ordered = rows.repartition(1).sortWithinPartitions(_FILE, _ROW).drop(_FILE, _ROW)
        written = run_on_workers(ordered, partial(write_partition, context, False), RESULT)
        return rewritten_bin(rewriting, source, written.select(WRITTEN_SCHEMA.names).cast(WRITTEN_SCHEMA))
