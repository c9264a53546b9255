"""Rows that must meet a condition to be written, or the write fails before anything is committed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson
import pyspark.sql.functions as sf

from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.spark.scan.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MARK = "pyspark-delta-row-outside-replace-where:"
_FOUND = re.compile(re.escape(_MARK) + r"(\{.*?\}):end", re.DOTALL)


def guard_rows(frame: DataFrame, condition: str, shown: Sequence[str]) -> DataFrame:
    """The rows; the first that does not meet the condition ends the query, with its `shown` columns in the error."""
    row = sf.to_json(sf.struct(*(sf.col(quoted(name)) for name in shown)), {"ignoreNullFields": "false"})
    refused = sf.raise_error(sf.concat(sf.lit(_MARK), row, sf.lit(":end")))
    return frame.where(
        sf.when(sf.coalesce(sf.expr(condition), sf.lit(False)), sf.lit(True)).otherwise(refused.cast("boolean"))
    )


def refused_row(error: Exception, condition: str) -> ConstraintViolationError | None:
    """The error for the row that a guard refused; None when `error` is about something else."""
    found = _FOUND.search(str(error))
    if found is None:
        return None
    try:
        row = orjson.loads(found[1])
    except orjson.JSONDecodeError:
        row = found[1]
    mismatch = ConstraintViolationError(
        f"replaceWhere replaces the rows that meet '{condition}', but a row to write does not: {row}. Nothing was "
        "committed. Filter the data with the same condition, or widen the condition.",
        error_class="DELTA_REPLACE_WHERE_MISMATCH",
        condition=condition,
        row=row,
    )
    mismatch.sqlstate = "44000"
    return mismatch
