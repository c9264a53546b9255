"""`spark.readStream` of enabled sessions: Delta streams are refused when they are created."""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.session.identifiers import is_named
from pyspark_delta.spark.session.mixins import FormatMixin

_READ_INSTEAD = (
    "Read the table with spark.read; the rows that changed since a version are in its change data feed, with "
    "option('readChangeFeed', True) and option('startingVersion', version)."
)


class DeltaAwareStreamReader(FormatMixin):
    """PySpark's DataStreamReader, which refuses Delta."""

    def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
        if self._delta_chosen(format):
            refuse_to_read()
        return super().load(path, format, schema, **options)

    def table(self, tableName: str) -> Any:
        if is_named(self._delta_session, tableName):
            refuse_to_read()
        return super().table(tableName)


def refuse_to_read() -> NoReturn:
    """Raise InvalidOperationError with an alternative way to read."""
    raise InvalidOperationError(
        f"pyspark-delta does not read Delta tables as a stream. {_READ_INSTEAD}",
        error_class="DELTA_STREAMING_READ_UNSUPPORTED",
        sqlstate="0A000",
    )
