"""Check the SQL text that a table stores: they must parse, name existing columns, and be safe to evaluate."""

from __future__ import annotations

import json

from pyspark_delta.errors import InvalidOperationError, InvalidPredicateError
from pyspark_delta.expressions.name_resolution import find_fields, suggestion
from pyspark_delta.expressions.references import referenced_columns
from pyspark_delta.expressions.stored_sql import NotAllowedError, check_stored_sql
from pyspark_delta.expressions.syntax import short
from pyspark_delta.protocol.properties import CONSTRAINT_PREFIX
from pyspark_delta.protocol.rows import CheckKind, ComputedColumn, ComputedKind, RowCheck
from pyspark_delta.schema.types import DataType, StructType, is_same_type

INVARIANT = "delta.invariants"


def invariant_condition(text: object) -> str:
    """Return the SQL of an invariant of a column: inside JSON, or as bare SQL in tables of early writers (C380)."""
    if not isinstance(text, str):
        return ""
    try:
        condition = json.loads(text)["expression"]["expression"]
    except (ValueError, KeyError, TypeError):
        return text
    return str(condition)


def check_expression(text: str, schema: StructType, what: str) -> tuple[tuple[str, ...], ...]:
    """Return the columns that an expression names, which the schema must have; `what` begins the messages.

    Raises InvalidPredicateError for a syntax error, InvalidOperationError for an unknown column.
    """
    try:
        paths = referenced_columns(text)
    except InvalidPredicateError as error:
        raise InvalidPredicateError(f"{what} cannot be parsed. {error.message}") from None
    for path in paths:
        # The second part of a name may be a map key, so only the top-level column can be checked.
        if find_fields(path[:1], schema) is None:
            raise InvalidOperationError(
                f"{what} refers to the column '{'.'.join(path)}', which is not in the table. "
                f"{suggestion(path, schema)}",
                error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                column=".".join(path),
            )
    return paths


def check_safe(rule: RowCheck | ComputedColumn, schema: StructType) -> None:
    """Check that the SQL text of a rule uses only allowed functions, before it is declared or evaluated.

    Raises InvalidOperationError that names the rule and the part of its text that is not allowed.
    """
    what, where, text, remedy = _described(rule)
    is_default = rule.kind is ComputedKind.DEFAULT
    try:
        names = () if is_default else schema.names
        check_stored_sql(text, names, current=rule.kind is not ComputedKind.GENERATED)
    except NotAllowedError as error:
        raise InvalidOperationError(
            f"{what} is not evaluated, because its text uses {error}: {short(text)}. The text is stored in the table "
            f"({where}), where any writer of the table may have chosen it, so only constants, "
            f"{'' if is_default else 'columns, '}operators and deterministic built-in functions of Spark are allowed. "
            f"Nothing was written. {remedy}",
            error_class=_ERROR_CLASSES[rule.kind],
            rule=rule.name,
        ) from None


def check_generated_type(name: str, found: DataType | None, schema: StructType) -> None:
    """Check the type of the expression of a generated column; None if it is not known.

    Raises InvalidOperationError for a type that differs from the column's in more than nullability.
    """
    field = schema.find(name)
    if found is None or field is None or is_same_type(found, field.type):
        return
    raise InvalidOperationError(
        f"The expression of the generated column '{field.name}' is of type {found}, but the column is of type "
        f"{field.type}. Cast the expression: CAST(... AS {field.type}).",
        error_class="DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
        column=field.name,
    )


_ERROR_CLASSES = {
    CheckKind.CONSTRAINT: "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
    CheckKind.INVARIANT: "DELTA_UNSUPPORTED_EXPRESSION_INVARIANT",
    ComputedKind.GENERATED: "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
    ComputedKind.DEFAULT: "INVALID_DEFAULT_VALUE.NOT_CONSTANT",
}


def _described(rule: RowCheck | ComputedColumn) -> tuple[str, str, str, str]:
    """Return what the rule is, where the table stores it, its text, and how to remove it."""
    name, text = rule.name, rule.condition if isinstance(rule, RowCheck) else rule.expression
    match rule.kind:
        case CheckKind.CONSTRAINT:
            remedy = f"Use another condition; if the table has this one, drop it with dropConstraint('{name}')."
            return f"The CHECK constraint '{name}'", f"property '{CONSTRAINT_PREFIX}{name}'", text, remedy
        case CheckKind.INVARIANT:
            remedy = "Remove the invariant with the engine that declared it."
            return f"The invariant of the column '{name}'", "key 'delta.invariants'", text, remedy
        case ComputedKind.DEFAULT:
            remedy = f"Use another default; if the table has this one, remove it with dropDefault('{name}')."
            return f"The default of the column '{name}'", "key 'CURRENT_DEFAULT'", text, remedy
        case _:
            remedy = "Use another expression, or write to a table in which the column is not generated."
            return f"The generated column '{name}'", "key 'delta.generationExpression'", text, remedy
