"""Results of statements that the methods return in another form: delta-spark's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_delta.actions.columns import DELETION_VECTOR
from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.deletion_vectors import deletion_vector_path
from pyspark_delta.maintenance.missing_files import missing_files
from pyspark_delta.storage.paths import resolve_file, to_hadoop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_delta.snapshot import Snapshot

_LOST = "dataFilePath string, dataFileMissing boolean, deletionVectorPath string, deletionVectorFileMissing boolean"


def vacuum_paths(frame: DataFrame) -> DataFrame:
    """Return the result of VACUUM: the paths of files that would go, or the path of the table."""
    return frame.select("path")


def lost_files(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    """Return the result of FSCK REPAIR TABLE: files of a version that do not exist, or whose vector does not."""
    lost = missing_files(snapshot, snapshot.files(("path", DELETION_VECTOR.name)))
    at = lost.column_names.index(DELETION_VECTOR.name)
    alone = lost.set_column(at, DELETION_VECTOR, pa.nulls(lost.num_rows, DELETION_VECTOR.type))
    gone = set(missing_files(snapshot, alone)["path"].to_pylist())
    rows = []
    for path, vector in zip(lost["path"].to_pylist(), lost[DELETION_VECTOR.name].to_pylist(), strict=True):
        where = vector and deletion_vector_path(snapshot.location, DeletionVectorDescriptor(**vector))
        file = to_hadoop(resolve_file(snapshot.location, path))
        rows.append((file, path in gone, to_hadoop(where) if where else None, bool(where) and path not in gone))
    return spark.createDataFrame(rows, _LOST)
