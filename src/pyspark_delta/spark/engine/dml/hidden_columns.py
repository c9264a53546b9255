"""Errors for statements that name `_metadata`, the hidden column of reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.conf.conditions import condition_of

_HIDDEN = "`_metadata`"
_REMEDY = (
    "Only reads have the hidden column _metadata. Read the keys of the rows with it, and use these in the statement, "
    "for example as the source of a MERGE."
)


def hidden_column_remedy(name: str) -> str:
    """Return what to do instead of naming a column in backticks that is not resolved; "" if it is not hidden."""
    return _REMEDY if _HIDDEN in name.split(".")[:2] else ""


@contextmanager
def hidden_columns_explained() -> Iterator[None]:
    """Raise InvalidOperationError in place of Spark's error if the unknown column is part of `_metadata`."""
    try:
        yield
    except AnalysisException as error:
        name = (error.getMessageParameters() or {}).get("objectName") or ""  # None if it is absent on PySpark 3.5
        remedy = hidden_column_remedy(name)
        if not remedy or not condition_of(error).startswith("UNRESOLVED_COLUMN"):
            raise
        raise InvalidOperationError(
            f"The statement cannot use {name}. Nothing was written. {remedy}",
            error_class="DELTA_CANNOT_RESOLVE_COLUMN",
            sqlstate="42703",
            column=name,
        ) from None
