"""Checks with Arrow that the existing rows of a table meet a condition that it is about to declare."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.reader import read_plan
from pyspark_delta.data.violations import existing_violation
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.exact import exact_condition, inexact_reason, names_of_table
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.protocol.rows import RowCheck
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot

_EXAMPLES = 3


def check_existing_rows(snapshot: Snapshot, check: RowCheck, time_zone: str = "UTC") -> None:
    """Check all rows of a version that may break a condition; only its columns are read.

    Raises ConstraintViolationError with a few of them, and InvalidOperationError for a condition that Arrow does not
    compute exactly.
    """
    schema = snapshot.schema
    scope = (schema, names_of_table(schema, None), time_zone)
    condition = exact_condition(check.condition, *scope)
    if condition is None:
        raise InvalidOperationError(
            f"Arrow does not compute ({check.condition}) exactly as Spark does, so existing rows cannot be checked: "
            f"{inexact_reason(check.condition, *scope)}. "
            "Nothing was changed. Declare it with DeltaTable.alter() in a Spark session with pyspark-delta.",
            error_class="DELTA_NO_ENGINE_FOR_STATEMENT",
        )
    columns = list(dict.fromkeys(column.path[0] for column in columns_of(condition)))
    found: list[pa.RecordBatch] = []
    for batch in read_plan(plan_scan(snapshot, columns or None, time_zone=time_zone)):
        broken = batch.filter(pc.invert(pc.fill_null(evaluate(condition, batch), False)))
        if broken.num_rows:
            found.append(broken)
        if sum(part.num_rows for part in found) >= _EXAMPLES:
            break
    if found:
        rows = pa.Table.from_batches(found).slice(0, _EXAMPLES).to_pylist()
        raise existing_violation(check, [str(row) for row in rows])
