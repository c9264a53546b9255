"""Where PySpark and Spark have their classes: the releases from 4.0 on keep those of classic sessions in packages."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@lru_cache(maxsize=1)
def has_classic_package() -> bool:
    """Return True if classes of classic sessions are in a package `classic`, in PySpark and in the JVM (Spark 4)."""
    return find_spec("pyspark.sql.classic") is not None


@lru_cache(maxsize=1)
def has_data_sources() -> bool:
    """Return True if PySpark has the Python Data Source (Spark 4)."""
    return find_spec("pyspark.sql.datasource") is not None


@lru_cache(maxsize=1)
def has_stream_sources() -> bool:
    """Return True if the Python Data Source can read the streams of tables (Spark 4.2)."""
    return find_spec("pyspark.sql.streaming.datasource") is not None


def has_widening_reader() -> bool:
    """Return True if Spark's Parquet reader converts columns to wider types (Spark 4)."""
    return has_classic_package()


def has_shredding_reader() -> bool:
    """Return True if Spark's Parquet reader reads shredded variants, unless a setting forbids it (Spark 4.1)."""
    came_with_it = "DataSourceStreamArrowWriter"
    return has_data_sources() and hasattr(import_module("pyspark.sql.datasource"), came_with_it)


def classic_frame() -> type[Any]:
    """Return the class of the DataFrames of classic sessions."""
    return _class("dataframe", "DataFrame")


def classic_column() -> type[Any]:
    """Return the class of the Columns of classic sessions."""
    return _class("column", "Column")


def java_name(name: str) -> str:
    """Return the full name of a class of classic sessions in the JVM, such as `Dataset`."""
    return f"org.apache.spark.sql.{'classic.' if has_classic_package() else ''}{name}"


def java_streaming_name(name: str) -> str:
    """Return the full name of a class for streams in the JVM, such as `DataStreamWriter`."""
    return f"org.apache.spark.sql.{'classic' if has_classic_package() else 'streaming'}.{name}"


def _class(module: str, name: str) -> type[Any]:
    package = "pyspark.sql.classic" if has_classic_package() else "pyspark.sql"
    found: type[Any] = getattr(import_module(f"{package}.{module}"), name)
    return found
