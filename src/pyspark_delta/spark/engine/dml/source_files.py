"""A merge's source that is nothing but a few Parquet files at hand: this process reads them before Spark would begin.

They may be those of a table. Only where the rows are certain to be those that Spark would read: its optimised plan
reads the files and nothing else, each file has every column by its very name and of its very type, and no setting asks
for another reading of values.
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
_OPTIONS = {"path", "paths", *PLAIN_LOCAL_FILES}  # that do not change what is read of a file
_SETTINGS = {  # and what they are where nobody sets them
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Some columns of Parquet files, by name and type, and how many rows the files have."""

    paths: tuple[str, ...]
    columns: StructType
    rows: int

    def read(self) -> pa.Table:
        """The rows. Raises as `read_tasks`."""
        context = ReadContext("/", tuple(FromFile(field, field) for field in self.columns), self.columns.names)
        tasks = [ScanTask(path, 0, {}) for path in self.paths]
        return pa.Table.from_batches(read_tasks(context, tasks), output_schema(context))


def source_files(spark: SparkSession, plan: Any, columns: StructType, most: int) -> SourceFiles | None:
    """The files of an optimised plan of a classic session that does nothing but read these columns; else None.

    Return None for more than `most` files too.
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
        return None  # Spark says what is wrong with a file
    counts = [count for count in rows if count is not None]
    return SourceFiles(paths, columns, sum(counts)) if len(counts) == len(paths) else None


def _relation(plan: Any) -> Any:
    """What a plan reads, where it is files of Parquet that are not in partitions."""
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
    """The files of an index, as in a log; none where there are many, or some are not at hand."""
    found = index.inputFiles()
    if len(found) > most:
        return ()
    paths = tuple(str(path) for path in found)
    if not all(path.startswith("file:/") for path in paths):
        return ()
    # That of a table tells paths as Hadoop has them, without escapes.
    return tuple(to_uri(path.removeprefix("file:")) for path in paths) if _is_of_table(index) else paths


def _is_of_table(index: Any) -> bool:
    """Whether an index is the proxy of a `DeltaFileIndex`."""
    return "$Proxy" in kind_of(index) and str(index.toString()).startswith("Delta[")


def _rows_of(path: str, columns: StructType) -> int | None:
    """How many rows a file has; None where a column of it is not what Spark says. Raises DeltaError, OSError."""
    with opened_file(resolve_file("/", path), None) as file:
        types = _types(file)
        is_same = all(types.get(field.name) == field.type for field in columns) and not _is_of_spark_2(file)
        rows: int = file.metadata.num_rows
        return rows if is_same else None


def _is_of_spark_2(file: pq.ParquetFile) -> bool:
    """Whether a file does not name the time zone of its writer, whose clocks its timestamps before 1900 are by."""
    return bool((file.schema_arrow.metadata or {}).get(b"org.apache.spark.version", b"3") < b"3")


def _types(file: pq.ParquetFile) -> dict[str, DataType]:
    """The types that Spark gives to columns with single values, by their names."""
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
