"""History and detail of a table as DataFrames, with the same columns as in delta-spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.arrow import frame_of_arrow
from pyspark_delta.table import Table
from pyspark_delta.table.descriptions import DETAIL, HISTORY, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def history_frame(spark: SparkSession, commits: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Return the commits of `Table.history` as rows, newest first."""
    return frame_of_arrow(spark, rows(HISTORY, commits))


def detail_frame(spark: SparkSession, snapshot: Snapshot, name: str | None) -> DataFrame:
    """Return the one row of `Table.detail`, with the name that the table has in a catalog."""
    detail = Table(snapshot).detail()
    return frame_of_arrow(spark, rows(DETAIL, [detail if name is None else {**detail, "name": name}]))
