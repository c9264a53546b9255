"""Quotes names so that Spark takes them literally, in SQL text and in `pyspark.sql.functions.col`."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return the name of a column, in backticks."""
    return "`" + name.replace("`", "``") + "`"
