"""From Columns of a classic session to expressions of Catalyst, and back."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import DataType

from pyspark_delta.spark.conf.classes import classic_column, has_classic_package
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_UTILITIES = "org.apache.spark.sql.classic.ExpressionUtils"


def tree_of(spark: SparkSession, column: Column) -> Any:
    """Return the expression of a column as a tree, whose names and functions can be looked at and replaced."""
    session: Any = spark
    java: Any = column._jc
    return session._jsparkSession.expression(java) if has_classic_package() else java.expr()


def expression_of(jvm: Jvm, column: Column) -> Any:
    """Return the expression of a column, in which names are not resolved. From Spark 4 on, it is a leaf."""
    java: Any = column._jc
    return jvm.type(_UTILITIES).expression(java) if has_classic_package() else java.expr()


def column_of(jvm: Jvm, expression: Any) -> Column:
    """Return the column of an expression."""
    make = jvm.type(_UTILITIES).column if has_classic_package() else jvm.type("org.apache.spark.sql.Column")
    found: Column = classic_column()(make(expression))
    return found


def try_cast(column: Column, data_type: DataType) -> Column:
    """Return a column as another type; null for values that cannot be cast. PySpark 3.5 has it in SQL only."""
    if hasattr(Column, "try_cast"):
        return column.try_cast(data_type)
    spark = SparkSession.active()
    jvm = jvm_of(spark)
    mode = jvm.module(f"{_EXPRESSIONS}.EvalMode").TRY()
    wanted = jvm.data_type(data_type.json())
    return column_of(jvm, jvm.type(f"{_EXPRESSIONS}.Cast")(expression_of(jvm, column), wanted, jvm.none, mode))
