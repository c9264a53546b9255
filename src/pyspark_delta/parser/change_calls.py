"""Calls of `table_changes` and `table_changes_by_path` in queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.tokens import Kind
from pyspark_delta.parser.values import TableName, TablePath, TableReference

_BY_NAME, _BY_PATH = "TABLE_CHANGES", "TABLE_CHANGES_BY_PATH"
_BEFORE = ("FROM", "JOIN", ",", "(", "TABLE")


@dataclass(frozen=True, slots=True)
class ChangeCall:
    """A call that returns the change data feed of a table, from a version or time to another one, or to the latest.

    `start` and `end` are where it stands in the query, in characters counted from 0.
    """

    table: TableReference
    first: int | str | datetime
    last: int | str | datetime | None
    start: int
    end: int


def change_calls(reader: Reader) -> Iterator[ChangeCall]:
    """Yield the calls in the order of a query. Raises InvalidOptionError for arguments that are not constants."""
    for place in range(len(reader.tokens) - 1):
        token, before = reader.tokens[place], reader.tokens[place - 1] if place else None
        if token.value not in (_BY_NAME, _BY_PATH) or reader.tokens[place + 1].text != "(":
            continue
        if token.kind is Kind.WORD and before is not None and before.value in _BEFORE:
            reader.index = place
            yield _call(reader)


def _call(reader: Reader) -> ChangeCall:
    function, start = reader.token, reader.token.start
    reader.index += 2
    name = reader.token
    values = [] if reader.at(")") else [_value(reader)]
    while reader.accept(","):
        values.append(_value(reader))
    if not 2 <= len(values) <= 3 or not isinstance(values[0], str) or values[1] is None:
        example = "'/path/to/table'" if function.value == _BY_PATH else "'schema.table'"
        raise InvalidOptionError(
            f"{function.text} takes the table, the first version or time and, if wanted, the last one, as in "
            f"{function.text.lower()}({example}, 3, 7) or {function.text.lower()}({example}, '2024-01-01').",
            error_class="INCORRECT_NUMBER_OF_ARGUMENTS",
        )
    reader.expect(")")
    end = reader.tokens[reader.index - 1].end
    table: TableReference = TablePath(values[0], name.start, name.end)
    if function.value == _BY_NAME:
        inner = Reader(values[0])
        table = TableName(inner.path("the name of a table"), name.start, name.end)
        inner.end()
    return ChangeCall(table, values[1], values[2] if len(values) == 3 else None, start, end)


def _value(reader: Reader) -> int | str | datetime | None:
    """Take a version, a time, or null."""
    token = reader.token
    if token.kind is Kind.STRING or token.kind is Kind.VALUE:
        reader.index += 1
        if isinstance(token.value, str | datetime):
            return token.value
        if isinstance(token.value, date):
            return token.value.isoformat()
    elif token.kind is Kind.NUMBER:
        return reader.integer("a version")
    elif reader.accept("NULL"):
        return None
    elif reader.at_any("TIMESTAMP", "DATE") and reader.peek().kind is Kind.STRING:
        reader.index += 1
        return reader.string()
    raise InvalidOptionError(
        f"The arguments of table_changes are constants, found {token.text}. Give a version, or a time as text.",
        error_class="DELTA_UNSUPPORTED_EXPRESSION",
    )
