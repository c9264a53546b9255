"""The methods of `DeltaTable` that look inside: metadata tables as DataFrames, and differences between versions."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.inspection import TableDiff
from pyspark_delta.spark.conf.arrow import frame_of_arrow
from pyspark_delta.spark.frames.schemas import empty_frame, to_spark
from pyspark_delta.table import Table
from pyspark_delta.table.inspecting import MetadataName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_delta.snapshot import Snapshot


class InspectedDeltaTable:
    """A look inside a table: in this process, without a Spark job."""

    _spark: SparkSession

    @abstractmethod
    def _open(self, version: int | None = None, timestamp: str | datetime | int | None = None) -> Snapshot: ...

    def inspect(
        self,
        name: MetadataName,
        version: int | None = None,
        timestamp: str | datetime | int | None = None,
    ) -> DataFrame:
        """Return a metadata table of the latest version, or of `version` or `timestamp`, as a DataFrame.

        The names, columns and errors are those of `Table.inspect`; `timestamp` is as in `toDF`. The rows are collected
        in this process first: use `Table.inspect` to read the files of a very large table batch by batch.
        """
        if version is not None and timestamp is not None:
            raise InvalidOptionError("Give either a version or a timestamp to travel to, not both.")
        found = Table(self._open(version, timestamp)).inspect(name)
        rows, schema = found.to_arrow(), to_spark(found.schema)
        return frame_of_arrow(self._spark, rows, schema) if rows.num_rows else empty_frame(self._spark, schema)

    def diff(self, version: int, other: int | None = None) -> TableDiff:
        """Return the differences from a version to `other`, by default to the latest version; see `Table.diff`."""
        return Table(self._open()).diff(version, other)
