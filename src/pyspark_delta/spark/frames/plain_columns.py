"""Names, aliases and choices as Columns, for frames that have every column of a table.

PySpark's functions send the JVM a dozen messages for each Column, because they note the line of Python that makes it.
These functions send one. For hundreds of columns, PySpark's take longer than the job; and no user wrote the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as sf

from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.spark.conf.classes import classic_column
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_FUNCTIONS = "org.apache.spark.sql.functions"


def named_columns(spark: SparkSession, names: Iterable[str]) -> list[Column]:
    """Return the columns of a frame with these names, which are not quoted."""
    return [column_at(spark, quoted(name)) for name in names]


def column_at(spark: SparkSession, path: str, alias: str | None = None) -> Column:
    """Return the column or the member at a path, which is quoted; with `alias`, under another name."""
    if not hasattr(spark, "_jsparkSession"):
        column = sf.col(path)
        return column if alias is None else column.alias(alias)
    java: Any = jvm_of(spark).static(_FUNCTIONS, "col")(path)
    found: Column = classic_column()(java)
    return found if alias is None else aliased(found, alias)


def aliased(column: Column, name: str) -> Column:
    """Return a column under another name."""
    java: Any = getattr(column, "_jc", None)
    if java is None:
        return column.alias(name)
    found: Column = classic_column()(getattr(java, "as")(name))
    return found


def chosen(spark: SparkSession, choices: Sequence[tuple[Column, Column]], otherwise: Column | None) -> Column:
    """Return the value of the first condition that is true, or `otherwise`; `choices` are conditions and values."""
    if not hasattr(spark, "_jsparkSession"):
        chain: Any = sf
        for test, value in choices:
            chain = chain.when(test, value)
        result: Column = chain if otherwise is None else chain.otherwise(otherwise)
        return result
    java: Any = None
    for test, value in choices:
        when = jvm_of(spark).static(_FUNCTIONS, "when") if java is None else java.when
        java = when(_java(test), _java(value))
    found: Column = classic_column()(java if otherwise is None else java.otherwise(_java(otherwise)))
    return found


def _java(column: Column) -> Any:
    java: Any = column
    return java._jc
