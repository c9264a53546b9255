"""The schema of a directory of Parquet files: of each footer as Spark reads it, and of all files together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.errors import CorruptLogError, SchemaMismatchError, UnsupportedTableError
from pyspark_delta.schema.arrow import schema_from_arrow
from pyspark_delta.schema.json import parse_schema
from pyspark_delta.schema.types import (
    BYTE,
    INTEGER,
    SHORT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from pyspark_delta.transaction.new_table import stored_columns

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
# Spark merges types that Parquet stores alike, and no others.
_STORED_AS_INT32 = (BYTE, SHORT, INTEGER)


class IncompatibleTypesError(Exception):
    """Two files have types of a column that no type of the table can hold."""

    def __init__(self, column: str, table: DataType, file: DataType) -> None:
        super().__init__(column)
        self.column, self.table, self.file = column, table, file


def schema_of_file(file: pq.ParquetFile) -> StructType:
    """Return the columns of a data file: all nullable, without metadata that writers would act on.

    Spark's own description is used if the file has one. Raises SchemaMismatchError for a type that Delta does not have.
    """
    described = (file.metadata.metadata or {}).get(_SPARK_SCHEMA)
    if described is not None:
        try:
            return stored_columns(parse_schema(described.decode()))
        except (CorruptLogError, UnsupportedTableError, UnicodeDecodeError):
            pass  # not a description of Spark, or of a type that Delta does not have
    for field in file.schema_arrow:
        _check_type(field.type, field.name)
    physical = iter([file.schema.column(at).physical_type for at in range(len(file.schema))])
    found = schema_from_arrow(file.schema_arrow)
    return stored_columns(_with_instants(found, physical))


def merge_file_schemas(table: StructType, file: StructType, *, path: str = "") -> StructType:
    """Return the schema with the columns of another file; names are compared ignoring case, as Spark does.

    Raises IncompatibleTypesError.
    """
    merged = []
    for field in table:
        other = file.find(field.name)
        where = f"{path}{field.name}"
        merged.append(field if other is None else replace(field, type=_merged(field.type, other.type, where)))
    return StructType((*merged, *(field for field in file if table.find(field.name) is None)))


def is_spelled_alike(table: StructType, file: StructType) -> bool:
    """True if every column of the file, at every level, has the name that the table has for it."""
    for field in file:
        known = table.find(field.name)
        if known is None or known.name != field.name:
            return False
        match known.type, field.type:
            case StructType() as ours, StructType() as theirs if not is_spelled_alike(ours, theirs):
                return False
    return True


def _merged(table: DataType, file: DataType, where: str) -> DataType:
    match table, file:
        case StructType(), StructType():
            return merge_file_schemas(table, file, path=f"{where}.")
        case ArrayType(ours), ArrayType(theirs):
            return ArrayType(_merged(ours, theirs, f"{where}.element"), True)
        case MapType(key, value), MapType(other_key, other_value):
            return MapType(_merged(key, other_key, f"{where}.key"), _merged(value, other_value, f"{where}.value"), True)
        case _ if table == file:
            return table
        case _ if table in _STORED_AS_INT32 and file in _STORED_AS_INT32:
            return max(table, file, key=_STORED_AS_INT32.index)
    raise IncompatibleTypesError(where, table, file)


def _check_type(data_type: pa.DataType, where: str) -> None:
    """Raise SchemaMismatchError for values that other readers of the table could not read, or would read otherwise."""
    if pa.types.is_timestamp(data_type) and data_type.unit == "ns":
        raise SchemaMismatchError(
            f"Column '{where}' holds timestamps in nanoseconds, which Delta tables do not have. Write the files again "
            "with microseconds.",
            column=where,
        )
    if pa.types.is_duration(data_type):
        raise SchemaMismatchError(
            f"Column '{where}' holds durations, which other readers take for numbers. Write the files again with a "
            "number in its place.",
            column=where,
        )
    if pa.types.is_float16(data_type):
        raise SchemaMismatchError(
            f"Column '{where}' holds floats of 16 bits, which Spark cannot read. Write the files again with FLOAT.",
            column=where,
        )
    for at in range(data_type.num_fields):
        field = data_type.field(at)
        _check_type(field.type, f"{where}.{field.name}")


def _with_instants(struct: StructType, physical: Iterator[str]) -> StructType:
    """Return the schema with timestamps where the file has INT96, which Arrow returns without a zone."""
    return StructType(tuple(replace(field, type=_with_instant(field.type, physical)) for field in struct))


def _with_instant(data_type: DataType, physical: Iterator[str]) -> DataType:
    match data_type:
        case StructType():
            return _with_instants(data_type, physical)
        case ArrayType(element, contains_null):
            return ArrayType(_with_instant(element, physical), contains_null)
        case MapType(key, value, contains_null):
            return MapType(_with_instant(key, physical), _with_instant(value, physical), contains_null)
    stored = next(physical)
    return TIMESTAMP if stored == "INT96" and data_type == TIMESTAMP_NTZ else data_type


def without(schema: StructType, columns: StructType) -> StructType:
    """Return the schema without some columns, ignoring the case of names."""
    return StructType(tuple(field for field in schema if columns.find(field.name) is None))


def with_partitions(schema: StructType, columns: StructType) -> StructType:
    """Return the schema with the partition columns: in their place if the files have them, otherwise at the end."""
    present: tuple[StructField, ...] = tuple(columns.find(field.name) or field for field in schema)
    return StructType((*present, *(field for field in columns if schema.find(field.name) is None)))
