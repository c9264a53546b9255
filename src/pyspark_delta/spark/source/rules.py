"""The constraints, defaults and generated columns of a table, as the tasks of the Python Data Source apply them.

Arrow computes what it computes exactly as Spark does. The rest needs a session, and so do identity columns, whose
numbers tasks cannot share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from pyspark_delta.engines.arrow.new_rows import BoundRows, bind_new_rows
from pyspark_delta.engines.arrow.write import stored_rows
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.current_time import one_moment
from pyspark_delta.transaction.row_rules import row_rules
from pyspark_delta.write.engine import WritePlan

_ELSEWHERE = "+01:00"


def bind_rules(plan: WritePlan) -> BoundRows | None:
    """Return how tasks compute the rows of a table with rules; None for a table without.

    Raises InvalidOperationError for rules that need a session.
    """
    if not row_rules(plan.configuration):
        return None
    try:
        with one_moment():
            bound = bind_new_rows(replace(plan, time_zone="UTC"))
            elsewhere = bind_new_rows(replace(plan, time_zone=_ELSEWHERE))
    except InvalidOperationError as error:
        raise needs_enable(f"Arrow cannot apply the rules of the table: {error.message}") from None
    if bound.planned.numbered:
        names = ", ".join(f"'{column.name}'" for column in bound.planned.numbered)
        raise needs_enable(f"tasks cannot share the numbers of the identity column {names}")
    if (bound.defaults, bound.generated, bound.checks) != (elsewhere.defaults, elsewhere.generated, elsewhere.checks):
        raise needs_enable("the rules of the table depend on the time zone, which a data source does not know")
    return bound


def new_rows(plan: WritePlan, rules: BoundRows | None, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task with all columns of the table.

    Raises ConstraintViolationError for a value that does not fit, and for a row that does not meet a condition.
    """
    return (stored_rows(plan, batch) for batch in batches) if rules is None else rules.rows(batches)


def needs_enable(why: str) -> InvalidOperationError:
    """Return the error for a write that only a session can do."""
    return InvalidOperationError(
        f"This write needs a Spark session, because {why}. Nothing was committed. Call pyspark_delta.enable(spark) "
        "first; the session then writes Delta tables itself.",
        error_class="DELTA_WRITE_NEEDS_ENABLE",
    )
