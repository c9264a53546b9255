"""The definition of a new table, as callers without Spark give it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from pyspark_delta.ddl.create import CreateMode, TableDefinition, create_table
from pyspark_delta.ddl.properties import property_text
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.schema.arrow import schema_from_arrow
from pyspark_delta.schema.column_definitions import parse_column, parse_columns
from pyspark_delta.schema.column_paths import parse_column_path
from pyspark_delta.schema.types import DataType, StructField, StructType
from pyspark_delta.table.writing import Place

IfExists = Literal["error", "ignore", "replace"]
_MODES = {
    "error": CreateMode.CREATE,
    "ignore": CreateMode.CREATE_IF_NOT_EXISTS,
    "replace": CreateMode.CREATE_OR_REPLACE,
}


def definition(
    schema: Any,
    partition_by: Sequence[str],
    cluster_by: Sequence[str],
    properties: Mapping[str, object] | None,
    description: str | None,
) -> TableDefinition:
    """Return the definition of a table. Raises InvalidOperationError, TypeError, and as `schema_of`."""
    return TableDefinition(
        schema=schema_of(schema),
        partition_columns=tuple(partition_by),
        clustering=tuple(parse_column_path(name) for name in cluster_by),
        properties={name: property_text(name, value) for name, value in (properties or {}).items()},
        description=description,
    )


def schema_of(schema: Any) -> StructType:
    """Return a schema from column definitions, a mapping of names to types, an Arrow schema, or a schema.

    Raises InvalidOperationError, SchemaMismatchError, and TypeError for other objects.
    """
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, str):
        return parse_columns(schema)
    if isinstance(schema, Mapping):
        return StructType(tuple(field_of(name, data_type) for name, data_type in schema.items()))
    if hasattr(schema, "__arrow_c_schema__"):
        return schema_from_arrow(pa.schema(schema))
    raise TypeError(
        f"{type(schema).__name__} is not a schema. Give column definitions such as 'id BIGINT, name STRING', a dict of "
        "names and types, or a PyArrow schema."
    )


def create(place: Place, table: TableDefinition, if_exists: str) -> int | None:
    """Create a table; return the committed version, None if an existing table was kept. Raises as `create_table`."""
    if if_exists not in _MODES:
        raise InvalidOptionError(f"if_exists is one of {', '.join(_MODES)}, found {if_exists!r}.", option="if_exists")
    return create_table(
        place.location,
        table,
        _MODES[if_exists],
        storage_options=place.storage_options,
        catalog_table=place.catalog_table,
    )


def field_of(name: object, data_type: object) -> StructField:
    """Return a column of a type in SQL, of an Arrow type, or of a type of a schema. Raises TypeError for others."""
    if not isinstance(name, str):
        raise TypeError(f"The name of a column must be a string, found {type(name).__name__} {name!r}.")
    if isinstance(data_type, str):
        return parse_column(name, data_type)
    if isinstance(data_type, pa.DataType):
        return schema_from_arrow(pa.schema([pa.field(name, data_type)])).fields[0]
    if isinstance(data_type, DataType):
        return StructField(name, data_type)
    raise TypeError(f"The type of the column '{name}' is SQL text or an Arrow type, found {type(data_type).__name__}.")
