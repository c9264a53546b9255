"""Changes to the columns of a table: add, drop, rename, move, comment, nullability, default."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pyspark_delta.ddl.change import TableChange, require_text, with_properties, with_schema
from pyspark_delta.ddl.dependents import check_no_dependents
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.protocol.properties import STATS_COLUMNS, lookup
from pyspark_delta.protocol.rows import CheckKind, RowCheck
from pyspark_delta.schema.column_mapping import mapping_mode
from pyspark_delta.schema.column_paths import column_path_text, parse_column_path
from pyspark_delta.schema.declaration_keys import (
    COMMENT,
    CURRENT_DEFAULT,
    EXISTS_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_START,
)
from pyspark_delta.schema.edits import (
    After,
    First,
    Path,
    Position,
    change_column,
    find_column,
    move_column,
    rename_column,
    spelled,
    type_at,
)
from pyspark_delta.schema.edits import add_columns as insert_columns
from pyspark_delta.schema.edits import drop_columns as remove_columns
from pyspark_delta.schema.inner_names import follow_change, follow_drops
from pyspark_delta.schema.json import dump_json, type_to_json
from pyspark_delta.schema.types import ArrayType, MapType, StructField, StructType


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column to add: the field, the path of its struct (empty for the top level), its position if not the last."""

    field: StructField
    parent: tuple[str, ...] = ()
    position: Position | None = None


def add_columns(configuration: TableConfiguration, columns: Sequence[NewColumn]) -> TableChange:
    """Add columns, null in every existing row. Raises InvalidOperationError for existing names and NOT NULL columns."""
    schema = configuration.schema
    described: list[dict[str, Any]] = []
    for parent, group in groupby(columns, key=lambda column: column.parent):
        new = list(group)
        for column in new:
            _check_new(column)
        wider = insert_columns(schema, parent, [(column.field, column.position) for column in new])
        schema = follow_change(schema, wider, parent, parent)
        path = spelled(schema, parent)
        described += [
            {"column": described_column(column.field, (*path, column.field.name)), **_position(column.position)}
            for column in new
        ]
    if not described:
        raise InvalidOperationError("No columns to add were given.")
    operation = Operation("ADD COLUMNS", {"columns": _text(described)})
    return TableChange(operation=operation, metadata=with_schema(configuration.metadata, schema))


def drop_columns(
    configuration: TableConfiguration, paths: Sequence[Path], *, clustering_columns: Sequence[str] = ()
) -> TableChange:
    """Drop columns from the schema; data files keep their values.

    Raises InvalidOperationError if columns are not mapped by name or id, and for columns that constraints, partitioning
    or clustering use.
    """
    _require_mapping(configuration, "dropped", "DELTA_UNSUPPORTED_DROP_COLUMN")
    if not paths:
        raise InvalidOperationError("No columns to drop were given.")
    dropped = [spelled(configuration.schema, path) for path in paths]
    for path in dropped:
        _check_not_partitioning(configuration, path, "dropped", "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN")
        _check_not_clustering(path, clustering_columns)
    schema = remove_columns(configuration.schema, dropped)
    schema = follow_drops(configuration.schema, schema, dropped)
    check_no_dependents(replace_schema(configuration, schema), dropped, "dropped")
    metadata = with_schema(configuration.metadata, schema)
    folded = {tuple(part.casefold() for part in path) for path in dropped}
    properties = _stats_columns(configuration, lambda name: None if _is_within(name, folded) else name)
    operation = Operation("DROP COLUMNS", {"columns": _text([_shown(path) for path in dropped])})
    return TableChange(operation=operation, metadata=with_properties(metadata, properties))


def rename(configuration: TableConfiguration, path: Path, name: str) -> TableChange:
    """Rename a column, with the same values. Raises the errors of `drop_columns`."""
    _require_mapping(configuration, "renamed", "DELTA_UNSUPPORTED_RENAME_COLUMN")
    old = spelled(configuration.schema, path)
    check_no_dependents(configuration, [old], "renamed")
    new = (*old[:-1], name)
    schema = follow_change(configuration.schema, rename_column(configuration.schema, old, name), old, new)
    metadata = with_schema(configuration.metadata, schema)
    if len(old) == 1:
        partitioning = tuple(name if p.casefold() == old[0].casefold() else p for p in metadata.partition_columns)
        metadata = replace(metadata, partition_columns=partitioning)
    properties = _stats_columns(configuration, lambda column: _renamed(column, old, new))
    operation = Operation("RENAME COLUMN", {"oldColumnPath": _shown(old), "newColumnPath": _shown(new)})
    return TableChange(operation=operation, metadata=with_properties(metadata, properties))


def move(configuration: TableConfiguration, path: Path, position: Position) -> TableChange:
    """Move a column in its struct."""
    old = spelled(configuration.schema, path)
    schema = follow_change(configuration.schema, move_column(configuration.schema, old, position), old, old)
    return _change(configuration, schema, old, position)


def set_comment(configuration: TableConfiguration, path: Path, comment: str | None) -> TableChange:
    """Set the comment of a column; None removes it. Raises TypeError if it is not a string."""
    require_text(comment, "The comment of a column")
    return _with_metadata(configuration, path, {COMMENT: comment})


def set_default(configuration: TableConfiguration, path: Path, expression: str | None) -> TableChange:
    """Set the default of a top-level column for rows without a value; None removes it (C391-C394)."""
    require_text(expression, "The default of a column")
    path = spelled(configuration.schema, path)
    if len(path) > 1:
        raise InvalidOperationError(
            f"Only top-level columns have defaults; '{column_path_text(path)}' is a nested field."
        )
    metadata = find_column(configuration.schema, path).metadata
    if expression is not None and (GENERATION_EXPRESSION in metadata or IDENTITY_START in metadata):
        raise InvalidOperationError(
            f"The column '{column_path_text(path)}' is generated, so it cannot have a default.",
            error_class="DELTA_DEFAULT_COLUMN_IS_GENERATED",
        )
    changes = {CURRENT_DEFAULT: expression}
    if expression is None:
        changes[EXISTS_DEFAULT] = None
    return _with_metadata(configuration, path, changes)


def set_nullable(configuration: TableConfiguration, path: Path, nullable: bool) -> TableChange:
    """Set whether a column may be null. NOT NULL requires that all existing rows have a value (`row_check`)."""
    path = spelled(configuration.schema, path)
    field = find_column(configuration.schema, path)
    schema = change_column(configuration.schema, path, lambda f: replace(f, nullable=nullable))
    change = _change(configuration, schema, path)
    if nullable or not field.nullable:
        return change
    for depth in range(1, len(path)):
        if isinstance(type_at(configuration.schema, path[:depth]), ArrayType | MapType):
            raise InvalidOperationError(
                f"The column '{column_path_text(path)}' is inside an array or map, where NOT NULL cannot be added. "
                "Write a new table with the intended schema."
            )
    return replace(change, row_check=_not_null(path))


def _not_null(path: Sequence[str]) -> RowCheck:
    name = column_path_text(path)
    return RowCheck(name, f"{name} IS NOT NULL", CheckKind.NOT_NULL)


# ------------------------------------------------------------------------------------------------------- details
def replace_schema(configuration: TableConfiguration, schema: StructType) -> TableConfiguration:
    """Return the configuration with another schema."""
    metadata = with_schema(configuration.metadata, schema)
    kept = tuple(name for name in metadata.partition_columns if schema.find(name) is not None)
    return TableConfiguration(configuration.protocol, replace(metadata, partition_columns=kept), configuration.location)


def _check_new(column: NewColumn) -> None:
    name = column_path_text((*column.parent, column.field.name))
    if not column.field.nullable:
        raise InvalidOperationError(
            f"The new column '{name}' is NOT NULL, but existing rows have no value for it. Add it as nullable, update "
            "the rows, and then set it to NOT NULL.",
            error_class="DELTA_ADD_COLUMN_NOT_NULL",
            column=name,
        )
    if column.field.metadata.keys() & {GENERATION_EXPRESSION, IDENTITY_START}:
        raise InvalidOperationError(
            f"The new column '{name}' is generated; generated and identity columns can only be declared when a table "
            "is created. Write a new table.",
            error_class="DELTA_UNSUPPORTED_ADD_GENERATED_COLUMN",
            column=name,
        )
    if CURRENT_DEFAULT in column.field.metadata:
        raise InvalidOperationError(
            f"The new column '{name}' has a default, which existing rows would not get. Add the column without a "
            "default, and then set the default for new rows.",
            error_class="WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
            column=name,
        )


def _require_mapping(configuration: TableConfiguration, what: str, error_class: str) -> None:
    if mapping_mode(configuration) == "none":
        raise InvalidOperationError(
            f"Columns can be {what} only with column mapping, because data files keep the old names. Set the table "
            "property delta.columnMapping.mode to 'name' first (readers then need reader version 2 or the feature "
            "columnMapping).",
            error_class=error_class,
        )


def _check_not_partitioning(
    configuration: TableConfiguration, path: Sequence[str], what: str, error_class: str
) -> None:
    partitioning = {name.casefold() for name in configuration.partition_columns}
    if len(path) == 1 and path[0].casefold() in partitioning:
        raise InvalidOperationError(
            f"The column '{path[0]}' cannot be {what}: the table is partitioned by it. Write a new table.",
            error_class=error_class,
            column=path[0],
        )


def _check_not_clustering(path: Sequence[str], clustering_columns: Sequence[str]) -> None:
    wanted = [part.casefold() for part in path]
    for name in clustering_columns:
        if [part.casefold() for part in parse_column_path(name)][: len(wanted)] == wanted:
            raise InvalidOperationError(
                f"The column '{column_path_text(path)}' cannot be dropped: the table is clustered by '{name}'. Change "
                "the clustering columns first.",
                error_class="DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
                column=column_path_text(path),
            )


def _with_metadata(configuration: TableConfiguration, path: Path, changes: dict[str, str | None]) -> TableChange:
    path = spelled(configuration.schema, path)

    def change(field: StructField) -> StructField:
        kept = {key: value for key, value in field.metadata.items() if key not in changes}
        return replace(field, metadata={**kept, **{k: v for k, v in changes.items() if v is not None}})

    return _change(configuration, change_column(configuration.schema, path, change), path)


def _change(
    configuration: TableConfiguration, schema: StructType, path: Sequence[str], position: Position | None = None
) -> TableChange:
    """Return a CHANGE COLUMN with the description of the column after the change."""
    column = described_column(find_column(schema, path), path)
    operation = Operation("CHANGE COLUMN", {"column": _text(column), **_position(position)})
    return TableChange(operation=operation, metadata=with_schema(configuration.metadata, schema))


def _shown(path: Sequence[str]) -> str:
    """Return a path as delta-spark's history shows it: with backticks only around names that contain dots."""
    return ".".join(f"`{part}`" if "." in part else part for part in path)


def described_column(field: StructField, path: Sequence[str]) -> dict[str, Any]:
    """Return a column at a path as delta-spark's history shows it: without the fields of nested types."""
    described = type_to_json(field.type)
    return {
        "name": _shown(path),
        "type": described["type"] if isinstance(described, dict) else described,
        "nullable": field.nullable,
        "metadata": dict(field.metadata),
    }


def _position(position: Position | None) -> dict[str, str]:
    match position:
        case First():
            return {"position": "FIRST"}
        case After(name):
            return {"position": f"AFTER {name}"}
        case None:
            return {}


def _stats_columns(configuration: TableConfiguration, change: Callable[[str], str | None]) -> dict[str, str]:
    """Return the properties after changing the columns with statistics one by one; None drops one."""
    properties = dict(configuration.properties)
    text = lookup(properties, STATS_COLUMNS.name)
    if text is not None:
        key = next(k for k in properties if k.casefold() == STATS_COLUMNS.name.casefold())
        names = [changed for name in STATS_COLUMNS.parse(text) or () if (changed := change(name)) is not None]
        properties[key] = ",".join(names)
    return properties


def _is_within(name: str, dropped: Set[tuple[str, ...]]) -> bool:
    path = tuple(part.casefold() for part in parse_column_path(name))
    return any(path[:length] in dropped for length in range(1, len(path) + 1))


def _renamed(name: str, old: Sequence[str], new: Sequence[str]) -> str:
    path = parse_column_path(name)
    if [p.casefold() for p in path[: len(old)]] != [p.casefold() for p in old]:
        return name
    return column_path_text((*new, *path[len(old) :]))


def _text(value: object) -> str:
    return dump_json(value).decode()
