"""Conditions and values as a statement has written them: as text, which needs no analysis to become text for Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.errors import ParseException

from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.frames.catalyst.nodes import place_of
from pyspark_delta.spark.sql.classic.plans import Query, has_subquery
from pyspark_delta.statements.assignments import is_default_word

if TYPE_CHECKING:
    from pyspark.sql import Column

_PARSER = "org.apache.spark.sql.catalyst.parser.CatalystSqlParser"
_NAME = r"(?:`(?:[^`]|``)*`|\w+)"
_OF_SEVERAL_PARTS = re.compile(rf"{_NAME}(?:\s*\.\s*{_NAME}){{2}}")
# Comments, and what settings of the session may give another meaning: escapes, and names in double quotes.
_UNCLEAR = re.compile(r"--|/\*|[\\\"]")
_OF_QUERIES = re.compile(r"\b(?:SELECT|FROM|TABLE|VALUES|MAP|REDUCE)\b", re.IGNORECASE)  # a subquery has one of them


def written(query: Query, expression: Any, *, is_qualified: bool) -> Column | str:
    """Return a condition or a value: its text if the text alone means the same, and else a Column.

    It does not if it has subqueries, and if Spark replaced parts of it before it parsed it, such as parameters. With
    `is_qualified`, a name of several parts stands for the table, and texts cannot have it.
    """
    return _text(query, expression, is_qualified=is_qualified) or query.column(expression)


def _text(query: Query, expression: Any, *, is_qualified: bool) -> str | None:
    for text in _texts(expression):
        if is_default_word((text.strip("`"),)) or _UNCLEAR.search(text) is not None:
            return None
        if is_qualified and _OF_SEVERAL_PARTS.search(text) is not None:
            return None
        if _OF_QUERIES.search(text) is not None and has_subquery(query.jvm, expression):
            return None
        if _is_same(query, text, expression):
            return text
    return None


def _texts(expression: Any) -> Iterator[str]:
    """Yield what may be the text of an expression: Spark's place of `id IN (0)` is that of `IN (0)`."""
    whole = place_of(expression)
    if whole is None:
        return
    yield whole.statement[whole.start : whole.end]
    while not (children := expression.children()).isEmpty():
        expression = children.head()
        first = place_of(expression)
        if first is None:
            return
        yield whole.statement[first.start : whole.end]


def _is_same(query: Query, text: str, expression: Any) -> bool:
    try:
        with probing():
            return bool(query.jvm.module(_PARSER).parseExpression(text).equals(expression))
    except ParseException:
        return False
