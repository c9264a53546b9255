"""Reads the source of a merge in this process if it is a few local Parquet files, before Spark starts a job.

The files may be those of a table. This applies only if the rows are certain to be those that Spark would read: its
optimized plan reads the files and nothing else, each file has every column under exactly its name and of exactly its
type, and no setting changes how values are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.data.opened import opened_file
from pyspark_delta.data.reader import output_schema, read_tasks
from pyspark_delta.errors import DeltaError, SchemaMismatchError
from pyspark_delta.scan.plan import FromFile, ReadContext, ScanTask
from pyspark_delta.schema.arrow import from_arrow
from pyspark_delta.schema.types import TIMESTAMP, DataType, DecimalType, PrimitiveType, StructType
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of
from pyspark_delta.spark.frames.columns import PLAIN_LOCAL_FILES, RELATION_OPTIONS
from pyspark_delta.storage.paths import resolve_file, to_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK = "org.apache.spark.sql.execution.datasources"
_OPTIONS = {"path", "paths", *PLAIN_LOCAL_FILES}  # options that do not change what is read from a file
_SETTINGS = {  # settings, with their defaults
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Some columns of Parquet files, by name and type, and the number of rows of the files."""

    paths: tuple[str, ...]
    columns: StructType
    rows: int

    def read(self) -> pa.Table:
        """Return the rows. Raises as `read_tasks`."""
        context = ReadContext("/", tuple(FromFile(field, field) for field in self.columns), self.columns.names)
        tasks = [ScanTask(path, 0, {}) for path in self.paths]
        return pa.Table.from_batches(read_tasks(context, tasks), output_schema(context))


def source_files(spark: SparkSession, plan: Any, columns: StructType, most: int) -> SourceFiles | None:
    """Return the files of an optimized plan of a classic session that only reads these columns; else None.

    Also return None for more than `most` files.
    """
    relation = _relation(plan)
    if relation is None or any(spark.conf.get(name, value) != value for name, value in _SETTINGS.items()):
        return None
    paths = _paths(relation.location(), most)
    if not paths:
        return None
    try:
        rows = [_rows_of(path, columns) for path in paths]
    except (DeltaError, OSError):
        return None  # Spark reports what is wrong with a file
    counts = [count for count in rows if count is not None]
    return SourceFiles(paths, columns, sum(counts)) if len(counts) == len(paths) else None


def _relation(plan: Any) -> Any:
    """Return the relation that a plan reads, if it is Parquet files without partitions."""
    while kind_of(plan) == "Project" and _are_names(plan.projectList()):
        plan = plan.child()
    if kind_of(plan) != "LogicalRelation" or kind_of(plan.relation()) != "HadoopFsRelation":
        return None
    relation = plan.relation()
    index = relation.location()
    is_plain = (
        relation.fileFormat().getClass().getName() == f"{_SPARK}.parquet.ParquetFileFormat"
        and (_is_of_table(index) or index.getClass().getName() == f"{_SPARK}.InMemoryFileIndex")
        and not relation.partitionSchema().length()
        and all(_is_harmless(option._1(), option._2()) for option in elements(relation.options().toSeq()))
    )
    return relation if is_plain else None


def _are_names(columns: Any) -> bool:
    return all(kind_of(column) == "AttributeReference" for column in elements(columns))


def _is_harmless(option: str, value: str) -> bool:
    return option in _OPTIONS or RELATION_OPTIONS.get(option) == value


def _paths(index: Any, most: int) -> tuple[str, ...]:
    """Return the files of an index, as paths in a log.

    Return none if there are many, or if some are not local.
    """
    found = index.inputFiles()
    if len(found) > most:
        return ()
    paths = tuple(str(path) for path in found)
    if not all(path.startswith("file:/") for path in paths):
        return ()
    # The index of a table has paths in Hadoop's form, without escapes.
    return tuple(to_uri(path.removeprefix("file:")) for path in paths) if _is_of_table(index) else paths


def _is_of_table(index: Any) -> bool:
    """Return True if an index is the proxy of a `DeltaFileIndex`."""
    return "$Proxy" in kind_of(index) and str(index.toString()).startswith("Delta[")


def _rows_of(path: str, columns: StructType) -> int | None:
    """Return the number of rows of a file; None if a column differs from Spark's. Raises DeltaError, OSError."""
    with opened_file(resolve_file("/", path), None) as file:
        types = _types(file)
        is_same = all(types.get(field.name) == field.type for field in columns) and not _is_of_spark_2(file)
        rows: int = file.metadata.num_rows
        return rows if is_same else None


def _is_of_spark_2(file: pq.ParquetFile) -> bool:
    """Return True if a file does not name its writer's time zone.

    Its timestamps before 1900 then depend on that zone.
    """
    return bool((file.schema_arrow.metadata or {}).get(b"org.apache.spark.version", b"3") < b"3")


def _types(file: pq.ParquetFile) -> dict[str, DataType]:
    """Return the types that Spark gives to columns of primitive values, by name."""
    physical = {column.path: column.physical_type for column in map(file.schema.column, range(len(file.schema.names)))}
    found: dict[str, DataType] = {}
    for field in file.schema_arrow:
        try:
            data_type = TIMESTAMP if physical.get(field.name) == "INT96" else from_arrow(field.type)
        except SchemaMismatchError:
            continue
        if isinstance(data_type, PrimitiveType | DecimalType):
            found[field.name] = data_type
    return found
