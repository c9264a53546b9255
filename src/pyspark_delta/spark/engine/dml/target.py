"""The table that a statement changes, as a Spark session sees it: its rows as a frame, its conditions as SQL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from pyspark_delta.features.support import check_writable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.limits import cost_model
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.conf.strings import as_read_here
from pyspark_delta.spark.conf.write_defaults import file_options, with_session_defaults
from pyspark_delta.spark.engine.write.job import SparkTasks
from pyspark_delta.spark.frames.catalyst.qualified import Labels, with_qualifier
from pyspark_delta.spark.frames.column_text import text_on, value_text
from pyspark_delta.spark.frames.reading import read_files
from pyspark_delta.spark.frames.schemas import empty_frame, to_spark
from pyspark_delta.statements.target import FILE, ROW, Condition, Target
from pyspark_delta.write.options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True)
class SparkTarget(Target):
    """A target whose rows Spark can read.

    `qualifier` is the name of the table in conditions if it has several parts, such as `main.sales.orders`. Text in SQL
    then has the alias in its place. Only a classic session has names of several parts.
    """

    has_one_clock: ClassVar[bool] = False  # Spark takes the current time when it runs
    spark: SparkSession
    qualifier: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        snapshot: Snapshot,
        alias: str | None = None,
        declared: TableConfiguration | None = None,
        qualifier: tuple[str, ...] = (),
    ) -> SparkTarget:
        """Return the target of a statement; `alias` and `qualifier` are the name of the table in its conditions.

        `declared` is the configuration that the same transaction declares before the statement; None outside of one.
        Raises UnsupportedFeatureError for a table that cannot be written to.
        """
        configuration = declared or snapshot.configuration
        check_writable(configuration, snapshot.location)
        options = with_session_defaults(spark, WriteOptions())
        return cls(
            snapshot,
            alias,
            declared,
            options,
            file_options(spark, configuration, options),
            session_time_zone(spark),
            cost_model(spark),
            SparkTasks(spark),
            f"PySpark/{spark.version}",
            in_transaction=declared is not None,
            spark=spark,
            qualifier=qualifier,
        )

    @property
    def labels(self) -> Labels:
        """The name that stands for the qualifier in SQL text."""
        return {self.qualifier: (self.alias,)} if self.qualifier and self.alias is not None else {}

    def empty(self) -> DataFrame:
        """Return an empty frame with the schema and the alias of the table, on which Spark analyzes conditions."""
        return self._named(self._no_rows)

    @cached_property
    def _no_rows(self) -> DataFrame:
        return empty_frame(self.spark, to_spark(self.configuration.schema))

    def text(self, condition: Condition) -> str:
        """Return a condition in SQL; it may use the alias of the table. Raises as `text_on`."""
        if isinstance(condition, str):
            return as_read_here(self.spark, condition)
        return text_on(self.empty(), condition, self.labels)

    def value_text(self, value: Condition) -> str | None:
        """Return a new value in SQL; it may use the alias of the table. None if it cannot be converted."""
        return value_text(self.empty(), value, self.labels)

    def rows(self, files: pa.Table) -> DataFrame:
        """Return the rows of some files, with the alias of the table.

        After the columns of the table come `KEPT_ROW_TRACKING_FIELDS` if rows have ids, then `FILE` and `ROW`.
        """
        frame = read_files(
            self.spark,
            self.source,
            files,
            row_tracking=self.has_row_ids,
            file_number=FILE,
            row_index=ROW,
        )
        return self._named(frame)

    def _named(self, frame: DataFrame) -> DataFrame:
        if self.qualifier:
            return with_qualifier(frame, self.qualifier)
        return frame if self.alias is None else frame.alias(self.alias)
