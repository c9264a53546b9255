"""References to tables in queries: which names they are, at which version, and where they stand in the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.interpreter.values import computed_time
from pyspark_delta.lazy_sqlglot import exp, sqlglot, sqlglot_errors
from pyspark_delta.parser.values import TableName, TimestampAsOf, TimeTravel, VersionAsOf

_DIALECT = "databricks"


def parse_query(text: str) -> Any:
    """Return the tree of one query in Spark's dialect. Raises InvalidOperationError for any other text."""
    try:
        trees = sqlglot.parse(text, read=_DIALECT)
    except sqlglot_errors.SqlglotError as error:
        raise InvalidOperationError(
            f"The query cannot be parsed: {str(error).splitlines()[0]}", error_class="PARSE_SYNTAX_ERROR"
        ) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise InvalidOperationError("This is not one query. Separate statements, and run them one by one.")
    return trees[0]


def table_references(tree: Any) -> Iterator[Any]:
    """Yield the nodes that refer to tables, without those that name common table expressions or functions."""
    for node in list(tree.find_all(exp.Table)):
        if isinstance(node.this, exp.Identifier) and not _is_common_table_expression(node):
            yield node


def _is_common_table_expression(node: exp.Table) -> bool:
    if node.args.get("db") is not None:
        return False
    name = node.name.casefold()
    inside: Any = node
    while inside.parent is not None:
        parent = inside.parent
        ctes = list(parent.ctes) if isinstance(parent, exp.Query) else []
        visible = ctes
        if isinstance(inside, exp.With) and not inside.args.get("recursive"):
            own = next((place for place, cte in enumerate(ctes) if _holds(cte, node)), len(ctes))
            visible = ctes[:own]  # an expression does not see itself, nor those after it
        if any(cte.alias.casefold() == name for cte in visible):
            return True
        inside = parent
    return False


def _holds(outer: exp.Expression, node: Any) -> bool:
    while node is not None:
        if node is outer:
            return True
        node = node.parent
    return False


def name_of(node: exp.Table) -> TableName:
    """Return the name of a reference, and where it stands in the text that was parsed."""
    parts = node.parts
    start, end = parts[0].meta.get("start", 0), parts[-1].meta.get("end", -1) + 1
    return TableName(tuple(part.name for part in parts), start, end)


def time_of(node: exp.Table) -> TimeTravel | None:
    """Return the point in time of a reference. Raises InvalidOperationError for one that cannot be computed."""
    version = node.args.get("version")
    if version is None:
        return None
    value = version.expression
    if version.this == "VERSION" and isinstance(value, exp.Literal) and value.name.isdecimal():
        return VersionAsOf(int(value.name))
    if version.this == "TIMESTAMP":
        literal = isinstance(value, exp.Literal) and value.is_string
        return TimestampAsOf(value.name if literal else computed_time(value.sql(_DIALECT)))
    raise InvalidOperationError(
        f"{version.sql(_DIALECT)} must have a number: VERSION AS OF 3, or TIMESTAMP AS OF '2026-01-31'.",
        error_class="DELTA_TIMESTAMP_INVALID",
    )
