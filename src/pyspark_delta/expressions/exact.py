"""Conditions and values of statements that Arrow computes exactly as Spark would, with any session settings.

If every part of a statement can be bound here, it needs no Spark job. If a computation fails, because a number is too
large for its type, Spark runs the statement: its settings determine the result for such a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions import coercion
from pyspark_delta.expressions.current_time import one_moment
from pyspark_delta.expressions.functions.registry import is_portable
from pyspark_delta.expressions.literals import INTEGRAL_BITS, NotExactError, zone_of
from pyspark_delta.expressions.name_resolution import find_fields
from pyspark_delta.expressions.sql import Binder
from pyspark_delta.expressions.syntax import parse
from pyspark_delta.expressions.text import parts_of
from pyspark_delta.expressions.tree import Call, Cast, Expression, Literal, type_of
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    StructField,
    StructType,
    is_same_type,
)

Names: TypeAlias = Callable[[Sequence[str]], "tuple[StructField, ...] | None"]
"""Finds the column of a schema for the parts of a name; None if the name is ambiguous."""


def exact_condition(text: str | exp.Expression, schema: StructType, names: Names, time_zone: str) -> Expression | None:
    """Return a condition, from text or parsed, bound to a schema; None if only Spark can evaluate a part of it."""
    try:
        return _condition(text, schema, names, time_zone)
    except (InvalidPredicateError, NotExactError):
        return None


def exact_value(text: str, data_type: DataType, schema: StructType, names: Names, time_zone: str) -> Expression | None:
    """Return a value of a type, ignoring nullability; None if only Spark can evaluate a part of it, or a cast.

    An integer may be stored as a narrower type; the computation fails for a row with a value that does not fit.
    """
    try:
        return _value(text, data_type, schema, names, time_zone)
    except (InvalidPredicateError, NotExactError):
        return None


def exact_type(text: str, schema: StructType) -> DataType | None:
    """Return the type of a value in every session of Spark; None if only Spark knows it, such as names in structs."""
    try:
        names = names_of_table(schema, None)
        found = type_of(_session_independent(_Binder(text, schema, names, "UTC").value(parse(text))))
    except (InvalidPredicateError, NotExactError):
        return None
    return None if any(isinstance(part, StructType) for part in types_in(found)) else found


def inexact_reason(
    text: str | exp.Expression,
    schema: StructType,
    names: Names,
    time_zone: str,
    data_type: DataType | None = None,
) -> str:
    """Return why Arrow does not compute a condition, or a value of a type, exactly; "" if it does.

    The reason is a part of a sentence, such as "Arrow does not compute soundex(...) exactly as Spark does; ...".
    """
    try:
        if data_type is None:
            _condition(text, schema, names, time_zone)
        else:
            _value(str(text), data_type, schema, names, time_zone)
    except NotExactError as error:
        return str(error)
    except InvalidPredicateError as error:
        cause = error.__context__  # without the condition, which the caller names
        return str(cause) if isinstance(cause, NotExactError) else error.message.removesuffix(".")
    return ""


def _condition(text: str | exp.Expression, schema: StructType, names: Names, time_zone: str) -> Expression:
    node, shown = (parse(text), text) if isinstance(text, str) else (text, text.sql(dialect="spark"))
    with one_moment():
        return _session_independent(_Binder(shown, schema, names, time_zone).condition(node))


def _value(text: str, data_type: DataType, schema: StructType, names: Names, time_zone: str) -> Expression:
    with one_moment():
        found = _session_independent(_Binder(text, schema, names, time_zone).value(parse(text)))
    if is_same_type(type_of(found), data_type):
        return found
    if not isinstance(found, Literal) and {type_of(found), data_type} <= INTEGRAL_BITS.keys():
        return Cast(found, data_type)
    return coercion.cast(found, data_type, zone_of(time_zone))


def names_of_table(schema: StructType, alias: str | None) -> Names:
    """Return the names of a table's columns, optionally prefixed by its alias."""

    def names(parts: Sequence[str]) -> tuple[StructField, ...] | None:
        found = find_fields(parts, schema)
        if alias is None or len(parts) < 2 or parts[0].casefold() != alias.casefold():
            return found
        return None if found is not None else find_fields(parts[1:], schema)

    return names


def _session_independent(expression: Expression) -> Expression:
    """Return the expression. Raises NotExactError if settings of a session change its meaning."""
    for part in parts_of(expression):
        if isinstance(part, Cast) and type_of(part.operand) == FLOAT:
            raise NotExactError("the type that a FLOAT is converted to depends on the session")
        if isinstance(part, Call) and not is_portable(part.name):
            raise NotExactError(f"the result of {part.name}(...) for NULL depends on the session; array_size works")
    return expression


class _Binder(Binder):
    def __init__(self, text: str, schema: StructType, names: Names, time_zone: str) -> None:
        super().__init__(text, schema, zone_of(time_zone), keep=False)
        self._names = names

    def fields(self, names: list[exp.Identifier]) -> tuple[StructField, ...]:
        found = self._names([str(name.this) for name in names])
        if found is None:
            raise NotExactError("the column is ambiguous")
        return found

    def compare(self, op: str, left: exp.Expression, right: exp.Expression) -> Expression:
        self._require_alike([self.value(left), self.value(right)])
        return super().compare(op, left, right)

    def membership(self, node: exp.Expression) -> Expression:
        self._require_alike([self.value(part) for part in (node.this, *node.expressions)], in_list=True)
        return super().membership(node)

    def _require_alike(self, operands: Sequence[Expression], *, in_list: bool = False) -> None:
        """Refuse types that Spark compares differently without ANSI: strings with numbers; in lists, also dates."""
        types = {type_of(operand) for operand in operands} - {VOID}
        others = types - {STRING} if in_list else types - {STRING, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ}
        if STRING in types and others:
            raise NotExactError("the type for comparing a string depends on the session")
