"""Converts the Columns of a user to text: to the name of a column, or to SQL."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.schema.column_paths import parse_column_path, quoted
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.conf.classes import has_classic_package
from pyspark_delta.spark.conf.strings import as_read_here
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import kind_of, texts
from pyspark_delta.spark.frames.catalyst.qualified import Labels, relabeled
from pyspark_delta.spark.frames.schemas import empty_frame, to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_REPRESENTATION = re.compile(r"Column<'(.*)'>", re.DOTALL)
_PLAIN_NAME = re.compile(r"\w+|`(?:[^`]|``)+`")
_OPERATORS = {"==": "=", "and": "AND", "or": "OR"} | {
    symbol: symbol for symbol in ("<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&", "|", "^")
}


def column_name(column: Column | str, where: str) -> str:
    """Return the name of a top-level column. The message names `where`, the method that was called.

    Raises InvalidOptionError for an expression, such as a partition transform.
    """
    path = name_parts(column)
    if path is not None and len(path) == 1:
        return path[0]
    found = _REPRESENTATION.fullmatch(str(column))
    text = found[1] if found is not None else str(column)
    if not _PLAIN_NAME.fullmatch(text):
        raise InvalidOptionError(
            f"{where} takes columns of the table, found the expression '{text}'. Delta tables are partitioned by the "
            "values of columns; add a column with the value.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
        )
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def name_parts(column: Any) -> tuple[str, ...] | None:
    """Return the parts of the name if a Column is only a name, such as `F.col("a.b")`; None for other Columns."""
    if hasattr(column, "_jc"):
        node = _node(column)
        return texts(node.nameParts()) if kind_of(node) == "UnresolvedAttribute" else None
    expression = getattr(column, "_expr", None)
    return _reference(expression) if type(expression).__name__ == "ColumnReference" else None


def sql_of(column: Any) -> str | None:
    """Return the SQL text of a Column that was made with `F.expr`; None for other Columns."""
    if hasattr(column, "_jc"):
        node = _node(column)
        return str(node.expression()) if kind_of(node) == "SqlExpression" else None
    expression: Any = getattr(column, "_expr", None)
    return str(expression._expr) if type(expression).__name__ == "SQLExpression" else None


def _node(column: Any) -> Any:
    """Return what a Column was made of in a classic session; before Spark 4, it is an expression of Catalyst."""
    return column._jc.node() if has_classic_package() else column._jc.expr()


def _reference(expression: Any) -> tuple[str, ...]:
    return parse_column_path(expression._unparsed_identifier)


def condition_text(spark: SparkSession, condition: Column | str, schema: StructType) -> str:
    """Return a condition on a table of that schema as SQL. Raises InvalidOptionError if it cannot be converted."""
    if isinstance(condition, str):
        return as_read_here(spark, condition)
    return text_on(empty_frame(spark, to_spark(schema)), condition)


def text_on(frame: DataFrame, condition: Column | str, labels: Labels | None = None) -> str:
    """Return a condition on the columns of a frame as SQL. Raises as `condition_text`.

    In a classic session, `labels` take the place of the qualifiers of columns.
    """
    if isinstance(condition, str):
        return as_read_here(frame.sparkSession, condition)
    filtered: Any = frame.where(condition)
    if hasattr(filtered, "_jdf"):
        found = filtered._jdf.queryExecution().analyzed().expressions().head()
        return str(relabeled(jvm_of(frame.sparkSession), found, labels or {}).sql())
    return _connect_text(condition._expr)


def value_text(frame: DataFrame, value: Column | str, labels: Labels | None = None) -> str | None:
    """Return a value computed from the columns of a frame as SQL; None if it cannot be converted.

    `labels` as in `text_on`.
    """
    if isinstance(value, str):
        return as_read_here(frame.sparkSession, value)
    text = sql_of(value)
    if text is not None:
        return as_read_here(frame.sparkSession, text)
    selected: Any = frame.select(value)
    if not hasattr(selected, "_jdf"):
        try:
            return _connect_text(value._expr)
        except InvalidOptionError:
            return None
    found = selected._jdf.queryExecution().analyzed().expressions().head()
    found = found.child() if kind_of(found) == "Alias" else found
    return str(relabeled(jvm_of(frame.sparkSession), found, labels or {}).sql())


def _connect_text(expression: Any) -> str:
    match type(expression).__name__:
        case "SQLExpression":
            return f"({expression._expr})"
        case "ColumnReference":
            return ".".join(map(quoted, _reference(expression)))
        case "ColumnAlias":
            return _connect_text(expression._child)
        case "LiteralExpression":
            return _literal(expression._value)
        case "UnresolvedFunction":
            return _call(expression._name, [_connect_text(argument) for argument in expression._args])
    raise InvalidOptionError(
        f"The condition {expression} cannot be converted to SQL on Spark Connect. Give it as SQL, as in "
        "overwrite(F.expr(\"day = '2024-01-31'\"))."
    )


def _call(name: str, arguments: list[str]) -> str:
    if name in _OPERATORS and len(arguments) == 2:
        return f"({arguments[0]} {_OPERATORS[name]} {arguments[1]})"
    match name.lower():
        case "not" | "!":
            return f"(NOT {arguments[0]})"
        case "isnull":
            return f"({arguments[0]} IS NULL)"
        case "isnotnull":
            return f"({arguments[0]} IS NOT NULL)"
        case "in":
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    return f"{name}({', '.join(arguments)})"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"double('{value}')"
    if isinstance(value, int):
        return repr(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    raise InvalidOptionError(
        f"A condition with the constant {value!r} cannot be converted to SQL. Give it as SQL, as in "
        "overwrite(F.expr(\"day = DATE '2024-01-31'\"))."
    )
