"""Arrow data to and from DataFrames; PySpark 3.5 has neither `toArrow` nor frames of Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark.sql.functions as sf
from pyspark.sql import DataFrame
from pyspark.sql.pandas import types as arrow_types
from pyspark.sql.types import StructType

from pyspark_delta.data.offsets import with_offsets
from pyspark_delta.spark.conf.after_commit import warn_of_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HAS_TABLES = hasattr(DataFrame, "toArrow")


def collect_arrow(frame: DataFrame) -> pa.Table:
    """Return the rows of a frame."""
    if _HAS_TABLES:
        return _with_offsets(frame.toArrow())
    classic: Any = frame
    batches, schema = classic._collect_as_arrow(), arrow_schema(frame.schema)
    # Timestamps come in the zone of the session.
    return _with_offsets(pa.Table.from_batches(batches).cast(schema)) if batches else schema.empty_table()


def frame_of_arrow(spark: SparkSession, table: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Return a frame with the rows of a table. If the schema is not given, it is that of the table."""
    if _HAS_TABLES:
        if schema is None and not table.num_rows:
            schema = spark_schema(table.schema)  # Spark Connect takes no schema from a table without rows
        return spark.createDataFrame(table) if schema is None else spark.createDataFrame(table, schema)
    return _classic_frame_of(spark, table, spark_schema(table.schema) if schema is None else schema)


def frame_of_counts(spark: SparkSession, counts: Mapping[str, int | None]) -> DataFrame:
    """Return a frame with one row of numbers."""
    # The rows of an Arrow table are part of the plan, so Spark collects them without a job.
    return frame_of_arrow(spark, pa.table({name: pa.array([count], pa.int64()) for name, count in counts.items()}))


def frame_of_changes(spark: SparkSession, counts: Mapping[str, int | None]) -> DataFrame:
    """Return the counts of a change that is committed, as `frame_of_counts`.

    Spark Connect asks the server for settings before it makes a frame of rows. If the server does not answer, warn, and
    return a frame for which it is asked later.
    """
    try:
        return frame_of_counts(spark, counts)
    except Exception as error:
        warn_of_failure("Spark cannot return its counts", error)
        return spark.range(1).select(*(sf.lit(count).cast("long").alias(name) for name, count in counts.items()))


def spark_schema(schema: pa.Schema) -> StructType:
    """Return a schema of Arrow as that of a frame. Timestamps without a zone are TIMESTAMP_NTZ."""
    return arrow_types.from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the schema of a frame as Arrow data has it between Spark and Python; timestamps are in UTC."""
    convert: Any = arrow_types.to_arrow_schema
    # Since PySpark 4.2, the zone is an argument; before, it is always UTC.
    return convert(schema, timezone="UTC") if "timezone" in (convert.__kwdefaults__ or ()) else convert(schema)


def _with_offsets(table: pa.Table) -> pa.Table:
    return pa.Table.from_batches(map(with_offsets, table.to_batches()), table.schema)


def _classic_frame_of(spark: Any, table: pa.Table, schema: StructType) -> DataFrame:
    """Return a frame as `createDataFrame` of PySpark 4 makes it: the JVM reads the batches from a stream."""
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer

    jvm = spark._jvm
    rows = spark._sc._serialize_to_jvm(
        table.cast(arrow_schema(schema)).to_batches(),
        ArrowStreamSerializer(),
        jvm.PythonSQLUtils.readArrowStreamFromFile,
        jvm.ArrowIteratorServer,
    )
    return DataFrame(jvm.PythonSQLUtils.toDataFrame(rows, schema.json(), spark._jsparkSession), spark)
