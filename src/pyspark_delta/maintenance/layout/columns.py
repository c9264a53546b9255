"""The columns by which rows are laid out: their names, where files have them, and whether they can be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.statistics import table_stats_columns
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.column_paths import column_path_text, parse_column_path
from pyspark_delta.schema.edits import spelled, type_at
from pyspark_delta.schema.types import VARIANT, VOID, ArrayType, DataType, MapType, StructType


@dataclass(frozen=True, slots=True)
class LayoutColumn:
    """A column that orders rows: its logical and physical path, and its type."""

    path: tuple[str, ...]
    physical: tuple[str, ...]
    type: DataType

    @property
    def name(self) -> str:
        """The logical name; dots separate the parts of nested names."""
        return column_path_text(self.path)

    def values(self, rows: pa.RecordBatch | pa.Table) -> pa.Array:
        """Return the values in rows of the table, whose columns have logical names."""
        column = rows.column(self.path[0])
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        for part in self.path[1:]:
            column = pc.struct_field(column, [column.type.get_field_index(part)])
        return column


def layout_columns(configuration: TableConfiguration, names: Sequence[str]) -> tuple[LayoutColumn, ...]:
    """Return the columns of these names, which are data columns with an order.

    Raises InvalidOperationError for names that are unknown or given twice, partition columns, and types without order.
    """
    found = tuple(_column(configuration, parse_column_path(name)) for name in names)
    for number, column in enumerate(found):
        if column in found[:number]:
            raise InvalidOperationError(
                f"The column '{column.name}' is given twice.", error_class="DELTA_DUPLICATE_COLUMNS_FOUND"
            )
    return found


def columns_at(configuration: TableConfiguration, paths: Sequence[tuple[str, ...]]) -> tuple[LayoutColumn, ...]:
    """Return the columns at physical paths, such as those of the metadata domain; unknown ones are left out."""
    mode, found = mapping_mode(configuration), []
    for physical in paths:
        names, struct = [], configuration.schema
        for part in physical:
            field = next((f for f in struct if physical_field(f, mode).name == part), None)
            if field is None:
                break
            names.append(field.name)
            struct = field.type if isinstance(field.type, StructType) else StructType()
        else:
            found.append(LayoutColumn(tuple(names), physical, type_at(configuration.schema, names)))
    return tuple(found)


def without_statistics(
    configuration: TableConfiguration, columns: Sequence[LayoutColumn], clustering: Sequence[tuple[str, ...]] = ()
) -> tuple[LayoutColumn, ...]:
    """Return the columns for which files of the table get no statistics, so that no query can skip files by them."""
    measured = {column.path for column in table_stats_columns(configuration, clustering)}
    return tuple(column for column in columns if column.physical not in measured)


def names_as_json(columns: Sequence[LayoutColumn]) -> str:
    """Return logical names as delta-spark writes them: a JSON list, in which only parts with dots are quoted."""
    names = [".".join(f"`{part}`" if "." in part else part for part in column.path) for column in columns]
    return orjson.dumps(names).decode()


def _column(configuration: TableConfiguration, path: Sequence[str]) -> LayoutColumn:
    logical = spelled(configuration.schema, path)
    name = column_path_text(logical)
    if logical[0].casefold() in {partition.casefold() for partition in configuration.partition_columns}:
        raise InvalidOperationError(
            f"'{name}' is a partition column: all rows of a file have the same value, so rows cannot be laid out by "
            "it. Name a data column.",
            error_class="DELTA_ZORDERING_ON_PARTITION_COLUMN",
            column=name,
        )
    mode, struct, physical = mapping_mode(configuration), configuration.schema, []
    for part in logical:
        field = struct.find(part)
        if field is None:  # the path leads into an array or a map
            raise _without_order(name)
        physical.append(physical_field(field, mode).name)
        struct = field.type if isinstance(field.type, StructType) else StructType()
    found = type_at(configuration.schema, logical)
    if isinstance(found, ArrayType | MapType | StructType) or found in (VARIANT, VOID):
        raise _without_order(name)
    return LayoutColumn(logical, tuple(physical), found)


def _without_order(name: str) -> InvalidOperationError:
    return InvalidOperationError(
        f"The values of '{name}' have no order, so rows cannot be laid out by it. Name a column of a simple type.",
        error_class="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
        column=name,
    )
