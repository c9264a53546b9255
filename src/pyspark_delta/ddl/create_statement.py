"""SHOW CREATE TABLE: the statement that creates an empty table like a given one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark_delta.ddl.create import CreateMode, TableDefinition, draft_table
from pyspark_delta.ddl.like import definition_like
from pyspark_delta.errors import DeltaError
from pyspark_delta.parser.arguments import sql_literal
from pyspark_delta.protocol.properties import FEATURE_PREFIX
from pyspark_delta.schema.column_paths import column_path_text, quoted
from pyspark_delta.schema.declaration_keys import (
    COMMENT,
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
)
from pyspark_delta.schema.text_lengths import declared_lengths, declared_type
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.protocol_upgrade import features_of


def create_statement(snapshot: Snapshot, name: str, location: str | None = None) -> str:
    """Return the CREATE TABLE of a version under a name, as SQL has it, and with LOCATION if one is given.

    The new table has the columns, partitioning, clustering, properties, comment and table features of this one, as that
    of CREATE TABLE LIKE. Identity columns start again.
    """
    definition = definition_like(snapshot, {})
    columns = ",\n".join(f"  {_column(field)}" for field in definition.schema)
    lines = [f"CREATE TABLE {name} (\n{columns})", "USING delta"]
    if definition.partition_columns:
        lines.append(f"PARTITIONED BY ({', '.join(map(quoted, definition.partition_columns))})")
    if definition.clustering:
        lines.append(f"CLUSTER BY ({', '.join(map(column_path_text, definition.clustering))})")
    if location is not None:
        lines.append(f"LOCATION {sql_literal(location)}")
    if definition.description is not None:
        lines.append(f"COMMENT {sql_literal(definition.description)}")
    properties = _properties(definition)
    if properties:
        shown = ",\n".join(f"  {sql_literal(key)} = {sql_literal(value)}" for key, value in properties.items())
        lines.append(f"TBLPROPERTIES (\n{shown})")
    return "\n".join(lines)


def _properties(definition: TableDefinition) -> Mapping[str, str]:
    """Return the table properties, and a property for each table feature that the definition does not imply."""
    try:
        protocol = draft_table(replace(definition, features=()), None, CreateMode.CREATE).protocol
    except DeltaError:  # the table has what only other clients create
        protocol = None
    implied = frozenset[str]() if protocol is None else features_of(protocol)
    features = {f"{FEATURE_PREFIX}{name}": "supported" for name in definition.features if name not in implied}
    return dict(sorted({**definition.properties, **features}.items()))


def _column(field: StructField) -> str:
    metadata = field.metadata
    parts = [quoted(field.name), _type(field.type, declared_lengths(field))]
    if not field.nullable:
        parts.append("NOT NULL")
    if GENERATION_EXPRESSION in metadata:
        parts.append(f"GENERATED ALWAYS AS ({metadata[GENERATION_EXPRESSION]})")
    if IDENTITY_STEP in metadata:
        kind = "BY DEFAULT" if metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT) else "ALWAYS"
        start, step = metadata[IDENTITY_START], metadata[IDENTITY_STEP]
        parts.append(f"GENERATED {kind} AS IDENTITY (START WITH {start} INCREMENT BY {step})")
    if CURRENT_DEFAULT in metadata:
        parts.append(f"DEFAULT {metadata[CURRENT_DEFAULT]}")
    return " ".join((*parts, *_comment(field)))


def _type(data_type: DataType, lengths: Mapping[tuple[str, ...], str], path: tuple[str, ...] = ()) -> str:
    """Return a type with NOT NULL and the comments of its members. `lengths` are those of `declared_lengths`."""
    match data_type:
        case _ if path in lengths:
            return lengths[path]
        case StructType(fields):
            return f"struct<{', '.join(_member(field, lengths, (*path, field.name)) for field in fields)}>"
        case ArrayType(element):
            return f"array<{_type(element, lengths, (*path, 'element'))}>"
        case MapType(key, value):
            return f"map<{_type(key, lengths, (*path, 'key'))}, {_type(value, lengths, (*path, 'value'))}>"
        case _:
            return declared_type(data_type, {})


def _member(field: StructField, lengths: Mapping[tuple[str, ...], str], path: tuple[str, ...]) -> str:
    not_null = () if field.nullable else ("NOT NULL",)
    return " ".join((f"{quoted(field.name)}: {_type(field.type, lengths, path)}", *not_null, *_comment(field)))


def _comment(field: StructField) -> tuple[str, ...]:
    comment = field.metadata.get(COMMENT)
    return () if comment is None else (f"COMMENT {sql_literal(str(comment))}",)
