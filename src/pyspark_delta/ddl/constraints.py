"""CHECK constraints of a table: named conditions that every row meets (CHECK Constraints; C383-C388)."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark_delta.ddl.change import TableChange, with_properties
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.name_resolution import find_fields, suggestion
from pyspark_delta.expressions.references import referenced_columns
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.protocol.expressions import check_safe
from pyspark_delta.protocol.properties import CONSTRAINT_PREFIX
from pyspark_delta.protocol.rows import CheckKind, RowCheck


def add_constraint(configuration: TableConfiguration, name: str, condition: str) -> TableChange:
    """Add a condition that rows must meet from now on, and that existing rows must meet already (`row_check`).

    Raises InvalidOperationError for an existing name and an unknown column, InvalidPredicateError for a syntax error.
    """
    _check_name(name)
    key = CONSTRAINT_PREFIX + name.lower()
    known = _find(configuration, name)
    if known is not None:
        raise InvalidOperationError(
            f"A constraint '{name}' already exists: {configuration.properties[known]}. Drop it first, or choose "
            "another name; names are compared ignoring case.",
            error_class="DELTA_CONSTRAINT_ALREADY_EXISTS",
            constraint=name,
        )
    for path in referenced_columns(condition):
        if find_fields(path[:1], configuration.schema) is None:
            raise InvalidOperationError(
                f"The constraint '{name}' refers to the column '{'.'.join(path)}', which is not in the table. "
                f"{suggestion(path, configuration.schema)}",
                error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                constraint=name,
            )
    check = RowCheck(name, condition, CheckKind.CONSTRAINT)
    check_safe(check, configuration.schema)
    return TableChange(
        operation=Operation("ADD CONSTRAINT", {"name": name, "expr": condition}),
        metadata=with_properties(configuration.metadata, {**configuration.properties, key: condition}),
        row_check=check,
    )


def constraint_properties(constraints: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the table properties of the constraints of a new table, from their names and conditions.

    Raises InvalidOperationError for a name that is given twice.
    """
    properties: dict[str, str] = {}
    for name, condition in constraints:
        _check_name(name)
        key = CONSTRAINT_PREFIX + name.lower()
        if key in properties:
            raise InvalidOperationError(
                f"The constraint '{name}' is declared twice. Choose another name; names are compared ignoring case.",
                error_class="DELTA_CONSTRAINT_ALREADY_EXISTS",
                constraint=name,
            )
        properties[key] = condition
    return properties


def drop_constraint(configuration: TableConfiguration, name: str, *, if_exists: bool = False) -> TableChange | None:
    """Drop the constraint; return None if there is none of that name and `if_exists` allows that."""
    key = _find(configuration, name)
    if key is None:
        if if_exists:
            return None
        names = sorted(k[len(CONSTRAINT_PREFIX) :] for k in configuration.properties if _is_constraint(k))
        raise InvalidOperationError(
            f"The constraint '{name}' does not exist. The constraints of the table are: {', '.join(names) or 'none'}.",
            error_class="DELTA_CONSTRAINT_DOES_NOT_EXIST",
            constraint=name,
        )
    properties = {k: v for k, v in configuration.properties.items() if k != key}
    parameters = {"name": name, "expr": configuration.properties[key], "existed": "true"}
    return TableChange(
        operation=Operation("DROP CONSTRAINT", parameters),
        metadata=with_properties(configuration.metadata, properties),
    )


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InvalidOperationError(f"The name of a constraint must be a non-empty string, found {name!r}.")


def _is_constraint(key: str) -> bool:
    return key.casefold().startswith(CONSTRAINT_PREFIX)


def _find(configuration: TableConfiguration, name: str) -> str | None:
    wanted = (CONSTRAINT_PREFIX + name).casefold()
    return next((key for key in configuration.properties if key.casefold() == wanted), None)
