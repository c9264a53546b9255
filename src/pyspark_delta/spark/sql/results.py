"""Results of statements that the methods return in another form: delta-spark's columns."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

from pyspark_delta.maintenance import missing_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_delta.snapshot import Snapshot

_LOST = "dataFilePath string, dataFileMissing boolean, deletionVectorPath string, deletionVectorFileMissing boolean"


def vacuum_paths(frame: DataFrame) -> DataFrame:
    """Return the result of VACUUM: the paths of files that would go, or the path of the table."""
    return frame.select("path")


def lost_files(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    """Return the result of FSCK REPAIR TABLE: files of a version that do not exist, or whose vector does not."""
    return spark.createDataFrame([astuple(file) for file in missing_files.lost_files(snapshot)], _LOST)
