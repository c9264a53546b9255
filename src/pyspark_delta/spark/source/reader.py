"""Plans a scan for Spark as partitions of similar size, which Python workers read into Arrow."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.types import YearMonthIntervalType

from pyspark_delta.changes.reader import naming_versions
from pyspark_delta.data.reader import read_tasks
from pyspark_delta.engines.tasks import FileGroup, group_files
from pyspark_delta.errors import UnsupportedTableError
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.spark.conf.arrow import arrow_schema
from pyspark_delta.spark.source.arrow import conform
from pyspark_delta.spark.source.boundary import boundary
from pyspark_delta.spark.source.request import ReadRequest

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter  # since PySpark 4.1

_PUSHDOWN_PROCESS = "pyspark.sql.worker.data_source_pushdown_filters"


class FilePartition(InputPartition):
    """A group of files, as Spark passes it to a task."""

    def __init__(self, group: FileGroup) -> None:
        super().__init__(None)
        self.group = group

    def __repr__(self) -> str:
        return repr(self.group)


class DeltaReader(DataSourceReader):
    """Reads one version of a table. It is created in Spark's planning process and pickled to the workers."""

    def __init__(self, request: ReadRequest, schema: SparkStruct) -> None:
        self._request, self._schema = request, schema
        self._pushed: tuple[Expression, ...] = ()

    def partitions(self) -> list[InputPartition]:
        with boundary():
            plans = self._request.plans(self._pushed)
            cores = os.cpu_count() or 1
            return [FilePartition(group) for plan in plans for group in group_files(plan.context, plan.files, cores)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with boundary():
            # Spark passes a partition of its own if there is nothing to read.
            if isinstance(partition, FilePartition):
                expected = arrow_schema(self._schema)
                group = partition.group
                with naming_versions(group.context.table_location, group.tasks):
                    for batch in read_tasks(group.context, group.tasks()):
                        if batch.num_rows:
                            yield conform(batch, expected)


class FilteringReader(DeltaReader):
    """The reader for sessions with `spark.sql.python.filterPushdown.enabled`."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Use the filters to skip files and rows. Return them all, so that Spark evaluates them again on every row."""
        with boundary():
            from pyspark_delta.spark.source.filters import to_expressions

            self._pushed = to_expressions(filters, self._request.schema())
            return filters


def make_reader(request: ReadRequest, schema: SparkStruct) -> DataSourceReader:
    """Return the reader for this process.

    If push-down is off, Spark rejects a reader that has `pushFilters`. This process cannot read the setting. But Spark
    pushes filters from a separate process, which it starts only if push-down is on. Raises UnsupportedTableError for a
    type that Spark does not accept from Python.
    """
    require_arrow(schema)
    return FilteringReader(request, schema) if _takes_filters() else DeltaReader(request, schema)


def _takes_filters() -> bool:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHDOWN_PROCESS in sys.modules or getattr(main, "name", None) == _PUSHDOWN_PROCESS


def require_arrow(schema: SparkStruct) -> None:
    """Raise UnsupportedTableError for a type that Spark does not accept from a Python data source."""
    for field in schema.fields:
        if _holds_year_month(field.dataType):
            raise UnsupportedTableError(
                f"Spark does not accept year-month intervals from a Python data source, but the column '{field.name}' "
                f"has the type {field.dataType.simpleString()}. Call pyspark_delta.enable(spark), or leave the column "
                "out with .option('columns', ...).",
                error_class="DELTA_UNSUPPORTED_DATA_TYPES",
            )


def _holds_year_month(data_type: object) -> bool:
    if isinstance(data_type, YearMonthIntervalType):
        return True
    if isinstance(data_type, SparkStruct):
        return any(_holds_year_month(field.dataType) for field in data_type.fields)
    parts = (getattr(data_type, name, None) for name in ("elementType", "keyType", "valueType"))
    return any(part is not None and _holds_year_month(part) for part in parts)
