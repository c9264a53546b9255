"""The time zone of a write without a session: what times without one mean where they say which rows are replaced.

Spark does not tell a data source the session's. Only the tasks of a write know it, where the session has set it.
"""

from __future__ import annotations

from pyspark import TaskContext

from pyspark_delta.errors import InvalidOptionError, InvalidPredicateError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import columns_of, to_sql
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.engine.write.selection import Partitions, Selection, Where
from pyspark_delta.write.replacement import has_local_partition_times

_SETTING = "spark.sql.session.timeZone"
_ELSEWHERE = "+01:00"


def settled_zone(selection: Selection, given: str | None, snapshot: Snapshot) -> str | None:
    """The zone in which rows are selected: `given`, UTC where every zone selects the same, None for the session's."""
    if given is not None:
        return given
    match selection:
        case Where(text, predicate):
            named = {column.path[0] for column in columns_of(predicate)}
            depends = _depends_on_zone(text, selection, snapshot.schema) or has_local_partition_times(snapshot, named)
        case Partitions():
            depends = has_local_partition_times(snapshot, snapshot.configuration.partition_columns)
        case _:
            depends = False
    return None if depends else "UTC"


def zone_of_task() -> str | None:
    """The time zone that the session of the present task has set; None where it has not."""
    task = TaskContext.get()
    return (task.getLocalProperty(_SETTING) if task else None) or None


def zone_needed(selection: Selection) -> InvalidOptionError:
    """The error for a selection in a time zone that is not known."""
    what = f"the condition of replaceWhere, '{selection.text}'," if isinstance(selection, Where) else "partition values"
    return InvalidOptionError(
        f"In another time zone {what} would be about other rows, and a data source is not told the session's, which "
        f"only tasks know, and only where {_SETTING} is set. Nothing was committed. Give the option timeZone, such as "
        "'UTC', or times with a zone, or call pyspark_delta.enable(spark) first.",
        option="timeZone",
    )


def _depends_on_zone(text: str, where: Where, schema: StructType) -> bool:
    try:
        return to_sql(parse_predicate(text, schema, time_zone=_ELSEWHERE)) != to_sql(where.predicate)
    except InvalidPredicateError:  # some functions on times are evaluated in UTC only
        return True
