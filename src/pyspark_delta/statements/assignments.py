"""The columns to which a statement assigns values, resolved by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.name_resolution import find_fields, suggestion
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.rows import ComputedKind
from pyspark_delta.schema.column_paths import column_path_text, parse_column_path
from pyspark_delta.schema.declaration_keys import IDENTITY_STEP
from pyspark_delta.schema.types import StructType
from pyspark_delta.statements.target import Condition
from pyspark_delta.transaction.row_rules import row_rules

ValueT = TypeVar("ValueT")

_DEFAULT = "default"


def fill_defaults(
    given: Mapping[str, Condition],
    configuration: TableConfiguration,
    alias: str | None,
    statement: str,
    is_default: Callable[[Condition], bool],
) -> Mapping[str, Condition]:
    """Replace SQL's word DEFAULT in new values by the default of the column, or by null if it has none.

    `is_default` returns True for a value that is this word. Raises InvalidOperationError for an unknown column.
    """
    if not any(is_default(value) for value in given.values()) or configuration.schema.find(_DEFAULT) is not None:
        return given
    computed = row_rules(configuration).computed
    defaults: dict[tuple[str, ...], str] = {(c.name,): c.expression for c in computed if c.kind is ComputedKind.DEFAULT}

    return {
        name: defaults.get(resolve_column(configuration.schema, name, alias, statement), "NULL")
        if is_default(value)
        else value
        for name, value in given.items()
    }


def is_default_word(parts: Sequence[str]) -> bool:
    """Return True if the parts of a name are SQL's word DEFAULT."""
    return len(parts) == 1 and parts[0].strip().casefold() == _DEFAULT


def resolve_assignments(
    schema: StructType, given: Mapping[str, ValueT], alias: str | None, statement: str
) -> dict[tuple[str, ...], ValueT]:
    """Return the assigned values by the path of the column, as the table spells it.

    Raises InvalidOperationError for a column that does not exist, that is assigned twice, or that only the table
    numbers.
    """
    found: dict[tuple[str, ...], ValueT] = {}
    for name, value in given.items():
        path = resolve_column(schema, name, alias, statement)
        for other in found:
            shorter = min(len(other), len(path))
            if other[:shorter] == path[:shorter]:
                raise InvalidOperationError(
                    f"{statement} gives the column '{column_path_text(path)}' two values"
                    f"{'' if other == path else f', one of them as a part of {column_path_text(min(other, path))!r}'}. "
                    "Give it one.",
                    error_class="DELTA_CONFLICT_SET_COLUMN",
                    column=column_path_text(path),
                )
        found[path] = value
    return found


def check_no_identity(schema: StructType, paths: Mapping[tuple[str, ...], object], statement: str) -> None:
    """Raise InvalidOperationError if an identity column is assigned."""
    for path in paths:
        field = schema.find(path[0])
        if field is not None and IDENTITY_STEP in field.metadata:
            raise InvalidOperationError(
                f"{statement} would change the identity column '{field.name}', whose values only the table assigns. "
                "Leave it out.",
                error_class="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                column=field.name,
            )


def resolve_column(schema: StructType, name: str, alias: str | None, statement: str) -> tuple[str, ...]:
    """Return the path of a column as the table spells it.

    Raises TypeError, and InvalidOperationError for an unknown column.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"{statement} takes the names of columns as text, found {name!r} of type {type(name).__name__}."
        )
    parts = parse_column_path(name)
    fields = find_fields(parts, schema)
    if fields is None and alias is not None and len(parts) > 1 and parts[0].casefold() == alias.casefold():
        parts = parts[1:]
        fields = find_fields(parts, schema)
    if fields is None:
        raise InvalidOperationError(
            f"There is no column '{name}' in the table for {statement} to set. {suggestion(parts, schema)}",
            error_class="DELTA_MISSING_SET_COLUMN",
            column=name,
        )
    return tuple(field.name for field in fields)
