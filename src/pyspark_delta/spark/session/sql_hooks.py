"""The one way from `enable` to SQL, which stands above this package and is imported when a session needs it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pyspark.sql import SparkSession

_MODULE = "pyspark_delta.spark.sql.session"
_CONNECT = "pyspark_delta.spark.sql.connect"


def install_sql(spark: SparkSession) -> None:
    """Let the statements of a classic session use Delta tables. On Spark Connect, nothing is installed."""
    if hasattr(spark, "_jsparkSession"):
        _module().install(spark)


def uninstall_sql(spark: SparkSession) -> None:
    """Undo `install_sql`."""
    if hasattr(spark, "_jsparkSession"):
        _module().uninstall(spark)
    else:
        import_module(f"{_CONNECT}.names").forget(spark)


def run_on_connect(spark: SparkSession, before: Any, text: str, args: Any, frames: Mapping[str, Any]) -> Any:
    """Run a statement of an enabled Spark Connect session; `before` is PySpark's own `sql`."""
    return import_module(f"{_CONNECT}.session").sql(spark, before, text, args, frames)


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
