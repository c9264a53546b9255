"""`IDENTIFIER(...)` in queries: the name that a constant text holds, of a table, a column or a function."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError, InvalidPredicateError, SqlSyntaxError
from pyspark_delta.interpreter.values import constant
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.tokens import Kind
from pyspark_delta.parser.values import Path
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.types import STRING, StructField

_NAME = StructField("name", STRING)
_NAMES = (Kind.WORD, Kind.QUOTED)  # of columns
_REASONS = {"NULL": "NULL", "TRUE": "WRONG_TYPE", "FALSE": "WRONG_TYPE"}


def with_identifiers(text: str) -> str:
    """Return a query whose parameters are bound, with names in place of `IDENTIFIER(...)`.

    Raises InvalidOperationError for a text that is null, no constant string, or no name.
    """
    reader, pieces, place = Reader(text), list[str](), 0
    for index, token in enumerate(reader.tokens):
        reader.index = index
        if token.start < place or token.kind is not Kind.WORD or not reader.at("IDENTIFIER", "("):
            continue
        reader.index = index + 1
        parts = _name(reader.bracketed("the name of a table or a column").text)
        pieces += [text[place : token.start], ".".join(map(quoted, parts))]
        place = reader.tokens[reader.index - 1].end
    return "".join([*pieces, text[place:]])


def _name(text: str) -> Path:
    reader = Reader(_constant(text))
    try:
        parts = reader.path()
        reader.end()
    except SqlSyntaxError as error:
        raise InvalidOperationError(
            f"IDENTIFIER({text}) holds no name: {error.message.rstrip('.')}. Give a name such as main.sales.orders "
            "or delta.`/path/to/table`, with backticks around parts that have other characters than letters, digits "
            "and underscores.",
            error_class="PARSE_SYNTAX_ERROR",
            sqlstate="42601",
        ) from None
    return parts


def _constant(text: str) -> str:
    """Return the string that an expression of constants has."""
    first, *others = (token for token in Reader(text).tokens if token.kind is not Kind.END)
    if not others:
        if first.kind is Kind.STRING:
            return str(first.value)
        raise _no_string(text, _REASONS.get(str(first.value), "NOT_CONSTANT" if first.kind in _NAMES else "WRONG_TYPE"))
    try:
        [found] = constant(text, _NAME).to_pylist()
    except InvalidPredicateError:
        raise _no_string(text, "NOT_CONSTANT") from None
    if found is None:
        raise _no_string(text, "NULL")
    return str(found)


def _no_string(text: str, reason: str) -> InvalidOperationError:
    what = {"NULL": "null", "WRONG_TYPE": "no string", "NOT_CONSTANT": "no constant that is computed without Spark"}
    return InvalidOperationError(
        f"IDENTIFIER({text}) holds no name: it is {what[reason]}. Give a name as a string, or as a parameter whose "
        "value is one.",
        error_class=f"NOT_A_CONSTANT_STRING.{reason}",
        sqlstate="42601",
    )
