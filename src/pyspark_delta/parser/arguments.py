"""Arguments of a statement: literals in place of the parameters `:name` and `?`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.parser.tokens import Kind, Token, line_and_column

Arguments: TypeAlias = Mapping[str, Any] | Sequence[Any] | None
"""Values by the names of parameters, or in the order of question marks."""


def with_arguments(text: str, tokens: list[Token], arguments: Arguments) -> list[Token]:
    """Return the tokens with the literals of arguments in place of parameters.

    A literal is a token of its own: nothing of a value is parsed as SQL. A parameter without an argument, or whose
    value has no literal, stays, with the error as its value: it matters only if the statement is read.
    """
    if not any(token.kind is Kind.PARAMETER for token in tokens):
        return tokens
    count = 0
    bound = []
    for token in tokens:
        if token.kind is Kind.PARAMETER:
            try:
                bound.append(_literal(token, _argument(text, token, count, arguments)))
            except InvalidOperationError as error:
                bound.append(token._replace(value=error))
            count += token.text == "?"
        else:
            bound.append(token)
    return bound


def _argument(text: str, token: Token, count: int, arguments: Arguments) -> Any:
    name = str(token.value)
    if isinstance(arguments, Mapping):
        if token.text != "?" and name in arguments:
            return arguments[name]
    elif arguments is not None and token.text == "?" and count < len(arguments):
        return arguments[count]
    line, column = line_and_column(text, token.start)
    shown = f"the parameter {token.text}" if name else f"the parameter ? number {count + 1}"
    raise InvalidOperationError(
        f"Found {shown} without an argument (line {line}, pos {column}). Give its value in args.",
        error_class="UNBOUND_SQL_PARAMETER",
        sqlstate="42P02",
        name=name or str(count + 1),
    )


def _literal(token: Token, value: Any) -> Token:
    text = sql_literal(value)
    if isinstance(value, str):
        kind = Kind.STRING
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool) and text[0].isdigit():
        kind = Kind.NUMBER
    else:
        kind = Kind.VALUE
    return Token(kind, text, token.start, token.end, value)


def sql_literal(value: Any) -> str:
    """Return a value as a literal of Spark SQL. Raises InvalidOptionError for a value that has none."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"DOUBLE('{value}')"
        case Decimal() if value.is_finite():
            return f"{value:f}BD"
        case str():
            return _quoted(value)
        case bytes():
            return f"X'{value.hex()}'"
        case datetime() if value.tzinfo is None:
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case datetime():
            return f"TIMESTAMP'{value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')}Z'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case list() | tuple():
            return f"array({', '.join(map(sql_literal, value))})"
        case Mapping():
            return f"map({', '.join(sql_literal(one) for entry in value.items() for one in entry)})"
    raise InvalidOptionError(
        f"An argument of type {type(value).__name__} has no SQL literal. Give a string, number, boolean, bytes, date, "
        "datetime, list, dict or None.",
        option="args",
    )


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
