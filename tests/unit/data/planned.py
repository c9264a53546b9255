"""Plans over hand-made Parquet files, as the scan planner would make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.data.reader import read_plan
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.scan.plan import ColumnPlan, FromFile, PartitionConstant, ReadContext, ScanPlan
from pyspark_delta.schema.column_mapping import physical_field
from pyspark_delta.schema.types import DataType, StructField, StructType


def schema_of(**columns: DataType) -> StructType:
    """A schema of nullable columns."""
    return StructType(tuple(StructField(name, kind) for name, kind in columns.items()))


def mapped(name: str, kind: DataType, physical: str, identifier: int, **more: Any) -> StructField:
    """A column with column mapping metadata."""
    metadata = {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": identifier, **more}
    return StructField(name, kind, True, metadata)


def write(folder: Path, table: pa.Table, name: str = "f.parquet", **options: Any) -> dict[str, Any]:
    """Write a data file; the result is its row of the file table."""
    pq.write_table(table, folder / name, **options)
    return {"path": name, "size": (folder / name).stat().st_size}


def plan_of(
    folder: Path,
    schema: StructType,
    files: Sequence[Mapping[str, Any]],
    *,
    mode: str = "none",
    partitions: Sequence[str] = (),
    where: str | None = None,
    output: Sequence[str] | None = None,
    extra: Sequence[ColumnPlan] = (),
    time_zone: str = "UTC",
) -> ScanPlan:
    """A plan that reads the columns `output` (all by default) of the given files."""
    columns: list[ColumnPlan] = [
        PartitionConstant(f, physical_field(f, mode).name)
        if f.name in partitions
        else FromFile(f, physical_field(f, mode))
        for f in schema
    ]
    names = tuple(output if output is not None else [*schema.names, *(c.field.name for c in extra)])
    context = ReadContext(
        table_location=str(folder),
        columns=(*columns, *extra),
        output=names,
        column_mapping_mode=mode,
        residual=parse_predicate(where, schema) if where else None,
        time_zone=time_zone,
    )
    rows = [
        {
            "size": 0,
            **row,
            "deletion_vector": _vector(row.get("deletion_vector")),
            "partition_values": list(dict(row.get("partition_values", {})).items()),
        }
        for row in files
    ]
    return ScanPlan(0, schema, context, pa.Table.from_pylist(rows, pa.schema(FILE_FIELDS)))


def rows_of(*args: Any, **options: Any) -> list[dict[str, Any]]:
    """The rows of `plan_of(...)` as Python values."""
    return read_plan(plan_of(*args, **options)).read_all().to_pylist()


def _vector(descriptor: DeletionVectorDescriptor | None) -> dict[str, Any] | None:
    if descriptor is None:
        return None
    return {
        "storage_type": descriptor.storage_type,
        "path_or_inline_dv": descriptor.path_or_inline_dv,
        "offset": descriptor.offset,
        "size_in_bytes": descriptor.size_in_bytes,
        "cardinality": descriptor.cardinality,
    }
