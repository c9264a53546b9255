"""Optimized writes: an exchange of rows between tasks before the write, so that it makes few, large files.

Without one, each task writes a file to each partition of the table that its rows belong to. Spark's REBALANCE puts the
rows of a partition into one task, splits partitions that are too large, and combines small ones by their shuffled
bytes. So no code of this package has to know how large the rows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import TARGET_FILE_SIZE
from pyspark_delta.protocol.property_values import parse_size
from pyspark_delta.spark.conf.temporary import temporary_conf
from pyspark_delta.spark.conf.write_defaults import boolean_setting, delta_setting, whole_number_setting
from pyspark_delta.spark.frames.hints import rebalanced
from pyspark_delta.write.optimized import asks_for_optimized_write
from pyspark_delta.write.options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Bytes of shuffled rows in a task. delta-spark combines 512 MiB, but only in its own exchange; this size holds for all
# exchanges of the job, because Spark has no other setting.
_TASK_SIZE = 128 << 20
_ADAPTIVE = "spark.sql.adaptive.enabled"
_TASK_BYTES = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_PARALLEL_FIRST = "spark.sql.adaptive.coalescePartitions.parallelismFirst"


@dataclass(frozen=True)
class Exchange:
    """An exchange by the partition columns of the table, which are at these positions; without any, in turns.

    A task gets at most `size` bytes of shuffled rows; None leaves it to the session, which prefers many tasks.
    `shuffle_partitions` is the most parts that a task exchanges; None leaves it to the session.
    """

    places: tuple[int, ...]
    size: int | None = None
    shuffle_partitions: int | None = None

    def apply(self, frame: DataFrame) -> DataFrame:
        """Return the frame with exchanged rows, and with columns named c0, c1 and so on."""
        names = [f"c{place}" for place in self.places]
        numbered = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
        parts: list[Any] = [] if self.shuffle_partitions is None else [self.shuffle_partitions]
        if self.size is None or _is_adaptive(frame.sparkSession):
            return rebalanced(numbered, parts, names)
        # Spark ignores the hint, for example in batches of a stream. Without partitions, the size of the rows decides
        # how many tasks there should be, and only adaptive execution knows it.
        return numbered.repartition(*parts, *names) if names else numbered

    @contextmanager
    def sized(self, spark: SparkSession) -> Iterator[None]:
        """Run the job that writes the frame in this block, which sets the size of tasks."""
        with ExitStack() as settings:
            if self.size is not None:
                settings.enter_context(temporary_conf(spark, _TASK_BYTES, str(self.size)))
                if not self.places:  # more tasks would make more files
                    settings.enter_context(temporary_conf(spark, _PARALLEL_FIRST, "false"))
            yield


def exchange_of(
    spark: SparkSession, options: WriteOptions, configuration: TableConfiguration, names: tuple[str, ...]
) -> Exchange | None:
    """Return the exchange before a write; None if there is none. `names` are the columns of the table by position.

    The option `optimizeWrite` decides, then the session, then the table. If none does, writes to partitioned tables
    have an exchange that prefers many tasks. Raises InvalidOptionError for settings.
    """
    asked = asks_for_optimized_write(options, configuration, boolean_setting(spark, "optimizeWrite.enabled"))
    if asked is False or (asked is None and not configuration.partition_columns):
        return None
    places = tuple(names.index(name) for name in configuration.partition_columns)
    size = _bin_size(spark)
    if size is None and asked:
        target = options.files.target_file_size or TARGET_FILE_SIZE.of(configuration.properties)
        size = max(_TASK_SIZE, target or 0)
    return Exchange(places, size, whole_number_setting(spark, "optimizeWrite.maxShufflePartitions"))


def _bin_size(spark: SparkSession) -> int | None:
    value = delta_setting(spark, "optimizeWrite.binSize")
    if value is None:
        return None
    try:
        size = parse_size(value)
    except ValueError:
        size = 0
    if not size:
        raise InvalidOptionError(
            f"The setting spark.databricks.delta.optimizeWrite.binSize is a size such as 512mb, found '{value}'."
        )
    return size


def _is_adaptive(spark: SparkSession) -> bool:
    return (spark.conf.get(_ADAPTIVE, None) or "true").lower() == "true"
