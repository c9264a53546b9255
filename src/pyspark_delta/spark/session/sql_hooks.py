"""The one way from `enable` to SQL, which stands above this package and is imported when a session needs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyspark.sql import SparkSession

_MODULE = "pyspark_delta.spark.sql.session"


def install_sql(spark: SparkSession) -> None:
    """Let the statements of a classic session use Delta tables. On Spark Connect, nothing is installed."""
    if hasattr(spark, "_jsparkSession"):
        _module().install(spark)


def uninstall_sql(spark: SparkSession) -> None:
    """Undo `install_sql`."""
    if hasattr(spark, "_jsparkSession"):
        _module().uninstall(spark)


def has_sql(spark: SparkSession) -> bool:
    """Return True if the statements of a session can use Delta tables."""
    return hasattr(spark, "_jsparkSession") and bool(_module().is_installed(spark))


def find_named(spark: SparkSession, identifier: str, *, create: bool) -> Any:
    """Return the `Identified` of a name that SQL knows; None if it has no Delta table, or SQL is not installed.

    With `create`, a name that is free in Spark's catalog gets the location of a new table.
    """
    return _module().identify(spark, identifier, create=create) if has_sql(spark) else None


def _module() -> Any:
    return import_module(_MODULE)
