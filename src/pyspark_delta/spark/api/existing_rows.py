"""Checks that the existing rows of a table meet a new constraint."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType

from pyspark_delta.data.violations import existing_violation
from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.protocol.rows import RowCheck
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.conf.strings import as_stored
from pyspark_delta.spark.frames.reading import read_snapshot

_EXAMPLES = 3


def check_existing_rows(spark: SparkSession, snapshot: Snapshot, check: RowCheck) -> None:
    """Check that all rows of a snapshot meet a condition. Runs a Spark job.

    Raises ConstraintViolationError with examples of rows that do not, and InvalidPredicateError for a condition that
    Spark cannot evaluate or that is not boolean.
    """
    frame = read_snapshot(spark, snapshot)
    _check_boolean(frame, check)
    rows = frame.where(f"NOT coalesce(({as_stored(spark, check.condition)}), false)").limit(_EXAMPLES).collect()
    if rows:
        raise existing_violation(check, [str(row) for row in rows])


def _check_boolean(frame: DataFrame, check: RowCheck) -> None:
    try:
        with probing():
            found = frame.selectExpr(f"({check.condition})").schema.fields[0].dataType
    except AnalysisException as error:
        first = str(error).splitlines()[0]
        raise InvalidPredicateError(f"The condition '{check.condition}' cannot be evaluated: {first}") from None
    if not isinstance(found, BooleanType):
        raise InvalidPredicateError(
            f"The condition '{check.condition}' is of type {found.simpleString()}, not boolean.",
            error_class="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
        )
