"""The current date and time: constants of a statement.

Text from Catalyst holds them as literals already, so they are not bound there: its moment is Spark's.
"""

from __future__ import annotations

from pyspark_delta.expressions.current_time import current_time
from pyspark_delta.expressions.functions.signature import Function, Site, takes
from pyspark_delta.expressions.tree import Expression, Literal
from pyspark_delta.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ


def _timestamp(site: Site) -> Expression:
    return Literal(current_time(), TIMESTAMP)


def _local_timestamp(site: Site) -> Expression:
    return Literal(current_time().astimezone(site.zone).replace(tzinfo=None), TIMESTAMP_NTZ)


def _date(site: Site) -> Expression:
    return Literal(current_time().astimezone(site.zone).date(), DATE)


FUNCTIONS = {
    "current_date": Function(_date, takes(0), is_total=False),
    "current_timestamp": Function(_timestamp, takes(0), is_total=False),
    "localtimestamp": Function(_local_timestamp, takes(0), is_total=False),
}
