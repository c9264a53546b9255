"""The conditions of a table, for rows that Arrow computes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.engines.contract import CannotRun, EngineDeclined
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.exact import exact_condition, names_of_table
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.rows import ComputedKind
from pyspark_delta.statements.target import Target
from pyspark_delta.transaction.row_rules import row_rules


def bound_checks(target: Target) -> tuple[Expression, ...] | CannotRun:
    """Return the conditions that new rows must meet, as Arrow computes them.

    NOT NULL is not among them: the writer of the rows checks it.
    """
    rules, schema = row_rules(target.configuration), target.configuration.schema
    for column in rules.computed:
        if column.kind is not ComputedKind.DEFAULT:
            return CannotRun(f"the column '{column.name}' is computed for each row")
    names = names_of_table(schema, None)
    bound: list[Expression] = []
    for check in rules.checks:
        condition = exact_condition(check.condition, schema, names, target.time_zone)
        if condition is None:
            return CannotRun(f"Arrow does not compute the {check.kind.value} '{check.name}' exactly")
        bound.append(condition)
    return tuple(bound)


def check_rows(checks: Sequence[Expression], rows: pa.RecordBatch) -> None:
    """Raise EngineDeclined if a row violates a condition: Spark reports the row."""
    for check in checks:
        if not pc.all(pc.fill_null(evaluate(check, rows), False)).as_py():
            raise EngineDeclined("a row breaks a condition of the table")
