"""The time zone of a write through the data source, if the rows to replace depend on it.

Spark does not pass the session's time zone to a data source. Only the tasks of a write know it, and only if the session
has set it.
"""

from __future__ import annotations

from pyspark import TaskContext

from pyspark_delta.errors import InvalidOptionError, InvalidPredicateError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import columns_of, to_sql
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.sessions import TIME_ZONE
from pyspark_delta.write.replacement import has_local_partition_times
from pyspark_delta.write.selection import Partitions, Selection, Where

_ELSEWHERE = "+01:00"


def resolved_zone(selection: Selection, given: str | None, snapshot: Snapshot) -> str | None:
    """Return the time zone in which the rows to replace are selected.

    This is `given` unless it is None. Then it is UTC if all zones select the same rows, and None for the session's zone
    if not.
    """
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
    """Return the time zone that the session of the current task has set; None if it has set none."""
    task = TaskContext.get()
    return (task.getLocalProperty(TIME_ZONE) if task else None) or None


def zone_needed(selection: Selection) -> InvalidOptionError:
    """Return the error for a selection in an unknown time zone."""
    what = f"the condition of replaceWhere '{selection.text}'" if isinstance(selection, Where) else "partition values"
    return InvalidOptionError(
        f"The rows selected by {what} depend on the time zone. A data source does not know the session's time zone: "
        f"only tasks know it, and only if {TIME_ZONE} is set. Nothing was committed. Give the option timeZone, such as "
        "'UTC', or times with a zone, or call pyspark_delta.enable(spark) first.",
        option="timeZone",
    )


def _depends_on_zone(text: str, where: Where, schema: StructType) -> bool:
    try:
        return to_sql(parse_predicate(text, schema, time_zone=_ELSEWHERE)) != to_sql(where.predicate)
    except InvalidPredicateError:  # some functions on times are evaluated in UTC only
        return True
