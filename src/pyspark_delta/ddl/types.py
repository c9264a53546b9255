"""Change the type of a column to one that holds all old values (Type Widening; beyond the 2024-12 text).

The length that a column of texts declares is part of its type in SQL, and in Delta part of its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark_delta.ddl.change import TableChange, with_schema
from pyspark_delta.ddl.dependents import check_no_dependents
from pyspark_delta.errors import InvalidOperationError, SchemaMismatchError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.edits import Path, change_column, find_column, spelled, type_at
from pyspark_delta.schema.inner_names import follow_change
from pyspark_delta.schema.json import dump_json, type_to_json
from pyspark_delta.schema.text_lengths import DECLARED_TYPE, declared_lengths, declared_type
from pyspark_delta.schema.types import STRING, VOID, ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.schema.widening import TYPE_CHANGES, is_widening

_LENGTH = re.compile(r"(?P<var>var)?char\((?P<n>\d+)\)")


def change_type(
    configuration: TableConfiguration, path: Path, data_type: DataType, length: str | None = None
) -> TableChange:
    """Set a wider type for the column, element, key or value at a path.

    For strings, `length` is the type that limits them, such as `varchar(10)`; None for any length.

    Raises SchemaMismatchError for a type that cannot hold all old values, InvalidOperationError if the table does not
    allow types to change, and for a column that constraints or generated columns use.
    """
    schema = configuration.schema
    path = spelled(schema, path)
    before = type_at(schema, path)
    if before == data_type == STRING:
        return _change_length(configuration, path, length)
    if before == data_type:
        raise InvalidOperationError(f"The column '{column_path_text(path)}' already has the type {before}.")
    _check_widening(configuration, path, before, data_type)
    owner = _fields_above(schema, path)[-1]
    inside = path[len(owner) :]
    check_no_dependents(configuration, [owner], f"changed from {before} to {data_type}")

    def change(field: StructField) -> StructField:
        changed = replace(field, type=_replaced(field.type, inside, data_type))
        return changed if before == VOID else recorded(changed, before, data_type, inside)

    changed = follow_change(schema, change_column(schema, owner, change), owner, owner)
    return _changed(configuration, changed, owner)


def _change_length(configuration: TableConfiguration, path: tuple[str, ...], declared: str | None) -> TableChange:
    """Set the length that the texts at a path may have; None allows any."""
    schema = configuration.schema
    owners = _fields_above(schema, path)
    found = {
        owner: length
        for owner in owners
        if (length := declared_lengths(find_column(schema, owner)).get(path[len(owner) :])) is not None
    }
    before = next(iter(found.values()), None)
    _check_length(column_path_text(path), before, declared)
    for owner in found:

        def change(field: StructField, inside: tuple[str, ...] = path[len(owner) :]) -> StructField:
            return _with_length(field, inside, declared)

        schema = change_column(schema, owner, change)
    return _changed(configuration, schema, owners[-1])


def _with_length(field: StructField, inside: tuple[str, ...], declared: str | None) -> StructField:
    lengths = {path: length for path, length in declared_lengths(field).items() if path != inside}
    if declared is not None:
        lengths[inside] = declared
    metadata = {key: value for key, value in field.metadata.items() if key != DECLARED_TYPE}
    if lengths:
        metadata[DECLARED_TYPE] = declared_type(field.type, lengths)
    return replace(field, metadata=metadata)


def _check_length(name: str, before: str | None, after: str | None) -> None:
    if before == after:
        raise InvalidOperationError(f"The column '{name}' already has the type {before or STRING}.")
    old, new = (None if one is None else _LENGTH.fullmatch(one) for one in (before, after))
    becomes_longer = old is not None and new is not None and bool(new["var"]) and int(old["n"]) <= int(new["n"])
    if after is not None and not becomes_longer:
        raise SchemaMismatchError(
            f"The column '{name}' of type {before or STRING} cannot become {after}: texts in data files may be longer. "
            "A char or varchar column can become a varchar column that is not shorter, or a string column.",
            error_class="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            column=name,
        )


def _changed(configuration: TableConfiguration, schema: StructType, owner: tuple[str, ...]) -> TableChange:
    column = find_column(schema, owner)
    described = {
        "name": column_path_text(owner),
        "type": type_to_json(column.type),
        "nullable": column.nullable,
        "metadata": dict(column.metadata),
    }
    operation = Operation("CHANGE COLUMN", {"column": dump_json(described).decode()})
    return TableChange(operation=operation, metadata=with_schema(configuration.metadata, schema))


def recorded(field: StructField, before: DataType, after: DataType, inside: Sequence[str]) -> StructField:
    """Return the field with one more change in its history, of the type at the path `inside` its own type."""
    change: dict[str, Any] = {"fromType": type_to_json(before), "toType": type_to_json(after)}
    if inside:
        change["fieldPath"] = ".".join(inside)
    history = [*field.metadata.get(TYPE_CHANGES, []), change]
    return replace(field, metadata={**field.metadata, TYPE_CHANGES: history})


def _check_widening(configuration: TableConfiguration, path: Sequence[str], before: DataType, after: DataType) -> None:
    name = column_path_text(path)
    if not is_widening(before, after):
        raise SchemaMismatchError(
            f"The column '{name}' of type {before} cannot become {after}: values in data files may not fit the new "
            "type. Types can only become wider, as from integer to long. For other changes, rewrite the table with a "
            "cast.",
            error_class="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            column=name,
        )
    if before != VOID and not is_active(configuration, Feature.TYPE_WIDENING):
        raise InvalidOperationError(
            f"The column '{name}' cannot change from {before} to {after}: type widening is not enabled. Set the table "
            "property delta.enableTypeWidening to true first (readers then need the feature typeWidening).",
            error_class="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            column=name,
        )


def _fields_above(schema: StructType, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the paths of the fields that hold the column, element, key or value at a path, the nearest last."""
    return [path[:end] for end in range(1, len(path) + 1) if isinstance(type_at(schema, path[: end - 1]), StructType)]


def _replaced(data_type: DataType, inside: Sequence[str], new: DataType) -> DataType:
    if not inside:
        return new
    match data_type, inside[0]:
        case ArrayType(element), "element":
            return replace(data_type, element_type=_replaced(element, inside[1:], new))
        case MapType(key, _), "key":
            return replace(data_type, key_type=_replaced(key, inside[1:], new))
        case MapType(_, value), "value":
            return replace(data_type, value_type=_replaced(value, inside[1:], new))
        case _:
            raise AssertionError(f"{data_type} has no {inside[0]}")
