"""Checks that the existing rows of a table meet a new constraint."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType

from pyspark_delta.errors import ConstraintViolationError, InvalidPredicateError
from pyspark_delta.protocol.rows import CheckKind, RowCheck
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.frames.reading import read_snapshot

_EXAMPLES = 3
_ERROR_CLASSES = {
    CheckKind.CONSTRAINT: "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
    CheckKind.NOT_NULL: "DELTA_NEW_NOT_NULL_VIOLATION",
}


def check_existing_rows(spark: SparkSession, snapshot: Snapshot, check: RowCheck) -> None:
    """Check that all rows of a snapshot meet a condition. Runs a Spark job.

    Raises ConstraintViolationError with examples of rows that do not, and InvalidPredicateError for a condition that
    Spark cannot evaluate or that is not boolean.
    """
    frame = read_snapshot(spark, snapshot)
    _check_boolean(frame, check)
    rows = frame.where(f"NOT coalesce(({check.condition}), false)").limit(_EXAMPLES).collect()
    if rows:
        examples = "; ".join(str(row) for row in rows)
        raise ConstraintViolationError(
            f"Rows of the table violate the {check.kind.value} '{check.name}' ({check.condition}), for example: "
            f"{examples}. Nothing was changed. Correct or delete these rows first.",
            error_class=_ERROR_CLASSES[check.kind],
            constraint=check.name,
        )


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
