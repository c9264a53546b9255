"""Explains why a parameter has no value: before Spark 4.1, the parser of a session does not get the arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.conf.conditions import condition_of
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of

_PARSER = "org.apache.spark.sql.catalyst.parser.ParserInterface"
_UNBOUND = "UNBOUND_SQL_PARAMETER"
_WITH_ARGUMENTS = re.compile(r"\s*EXECUTE\s+IMMEDIATE\b.*\bUSING\b", re.IGNORECASE | re.DOTALL)


@contextmanager
def explaining_parameters(spark: SparkSession, text: object, arguments: Any) -> Iterator[None]:
    """Raise InvalidOperationError for parameters in a statement of Delta tables if Spark passes no arguments to it."""
    try:
        yield
    except PySparkException as error:
        is_given = bool(arguments) or _WITH_ARGUMENTS.match(str(text)) is not None
        if not is_given or condition_of(error) != _UNBOUND or _are_parsed(spark):
            raise
        raise InvalidOperationError(
            "Statements that change or describe Delta tables take parameters (args of spark.sql, USING of EXECUTE "
            f"IMMEDIATE) from PySpark 4.1 on, found {pyspark.__version__}. Nothing was changed. Write the values into "
            "the statement, or use DeltaTable.",
            error_class=_UNBOUND,
        ) from error


def _are_parsed(spark: SparkSession) -> bool:
    if not hasattr(spark, "_jsparkSession"):
        return True
    return jvm_of(spark).has_method(_PARSER, "parsePlanWithParameters")
