"""From Columns of a classic session to expressions of Catalyst, and back."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column

from pyspark_delta.spark.conf.classes import classic_column, has_classic_package
from pyspark_delta.spark.frames.catalyst.jvm import Jvm

_UTILITIES = "org.apache.spark.sql.classic.ExpressionUtils"


def expression_of(jvm: Jvm, column: Column) -> Any:
    """Return the expression of a column, in which names are not resolved."""
    java: Any = column._jc
    return jvm.type(_UTILITIES).expression(java) if has_classic_package() else java.expr()


def column_of(jvm: Jvm, expression: Any) -> Column:
    """Return the column of an expression."""
    make = jvm.type(_UTILITIES).column if has_classic_package() else jvm.type("org.apache.spark.sql.Column")
    found: Column = classic_column()(make(expression))
    return found
