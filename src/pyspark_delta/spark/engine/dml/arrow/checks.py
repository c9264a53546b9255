"""The conditions of a table, for rows that Arrow makes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.exact import exact_condition, names_of_table
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.rows import ComputedKind
from pyspark_delta.spark.engine.dml.target import Target
from pyspark_delta.transaction.row_rules import row_rules


def bound_checks(target: Target) -> tuple[Expression, ...] | None:
    """What new rows must meet; None where Spark has to compute that, or values of columns, for each row.

    NOT NULL is not among them: whoever writes the rows checks that.
    """
    rules, schema = row_rules(target.configuration), target.configuration.schema
    if any(column.kind is not ComputedKind.DEFAULT for column in rules.computed):
        return None
    names = names_of_table(schema, None)
    found = [exact_condition(check.condition, schema, names, target.time_zone) for check in rules.checks]
    bound = tuple(condition for condition in found if condition is not None)
    return bound if len(bound) == len(found) else None


def check_rows(checks: Sequence[Expression], rows: pa.RecordBatch) -> None:
    """Raise InvalidPredicateError for rows, of which one breaks a condition: Spark tells which, and how."""
    for check in checks:
        if not pc.all(pc.fill_null(evaluate(check, rows), False)).as_py():
            raise InvalidPredicateError("A row breaks a condition of the table.")
