"""Schema evolution by a MERGE: which columns of the source the table comes to have, and what that makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark_delta.features import Feature, is_active
from pyspark_delta.schema.column_paths import parse_column_path
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.merge import merge_schemas
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.spark.dml.merge_clauses import Clause
from pyspark_delta.spark.dml.target import Target
from pyspark_delta.transaction.evolution import evolve
from pyspark_delta.transaction.new_table import stored_columns


def evolve_target(target: Target, source: StructType, clauses: Sequence[Clause]) -> Target:
    """The target with the columns of the source that clauses give values to, by name or as all columns.

    Raises InvalidOperationError and SchemaMismatchError for a schema that the table cannot have.
    """
    before = target.configuration
    if any(clause.takes_all for clause in clauses):
        data = source
    else:
        names = [name for clause in clauses for name in clause.values or ()]
        data = _reachable(source, [_path(name, before.schema, target.alias) for name in names])
    widen = is_active(before, Feature.TYPE_WIDENING)
    schema = merge_schemas(before.schema, stored_columns(data), widen=widen)
    if schema == before.schema:
        return target
    metadata = replace(before.metadata, schema_string=schema_to_json(schema))
    return replace(target, evolved=evolve(before, metadata, keeps_files=True))


def _path(name: str, schema: StructType, alias: str | None) -> tuple[str, ...]:
    """The parts of a column's name, without that of the table."""
    parts = tuple(parse_column_path(name))
    qualified = len(parts) > 1 and alias is not None and parts[0].casefold() == alias.casefold()
    return parts[1:] if qualified and schema.find(parts[0]) is None else parts


def _reachable(schema: StructType, paths: Sequence[tuple[str, ...]]) -> StructType:
    """The fields that paths name, those within them, and what holds them."""
    fields: list[StructField] = []
    for field in schema:
        inner = [path[1:] for path in paths if path[0].casefold() == field.name.casefold()]
        if () in inner:
            fields.append(field)
        elif inner and isinstance(field.type, StructType):
            fields.append(replace(field, type=_reachable(field.type, inner)))
    return StructType(tuple(fields))
