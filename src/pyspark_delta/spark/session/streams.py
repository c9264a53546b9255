"""`spark.readStream` and `df.writeStream` of enabled sessions: Delta streams are refused when they are created."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn

from pyspark.sql import SparkSession

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.conf.sessions import is_delta
from pyspark_delta.spark.session.identifiers import is_named

_READ_INSTEAD = (
    "Read the table with spark.read; the rows that changed since a version are in its change data feed, with "
    "option('readChangeFeed', True) and option('startingVersion', version)."
)
_WRITE_INSTEAD = (
    "Write each batch in foreachBatch, with batch.write.format('delta').mode('append').save(path); with the options "
    "txnAppId and txnVersion, a repeated batch is not written twice."
)


@lru_cache(maxsize=4)
def stream_reader_class(base: type) -> type:
    """Return PySpark's DataStreamReader, which refuses Delta."""

    class DeltaAwareStreamReader(base):  # type: ignore[misc]
        __doc__ = base.__doc__

        def _delta_begin(self, spark: SparkSession) -> None:
            self._delta_session = spark
            self._delta_source: str | None = None

        def format(self, source: str) -> Any:
            self._delta_source = source
            return super().format(source)

        def load(self, path: Any = None, format: Any = None, *args: Any, **options: Any) -> Any:  # noqa: A002
            if is_delta(self._delta_session, format or self._delta_source):
                refuse_to_read()
            return super().load(path, format, *args, **options)

        def table(self, tableName: str) -> Any:
            if is_named(self._delta_session, tableName):
                refuse_to_read()
            return super().table(tableName)

    return DeltaAwareStreamReader


@lru_cache(maxsize=4)
def stream_writer_class(base: type) -> type:
    """Return PySpark's DataStreamWriter, which refuses Delta."""

    class DeltaAwareStreamWriter(base):  # type: ignore[misc]
        __doc__ = base.__doc__

        def _delta_begin(self, spark: SparkSession) -> None:
            self._delta_session = spark
            self._delta_source: str | None = None
            self._delta_has_function = False

        def format(self, source: str) -> Any:
            self._delta_source = source
            return super().format(source)

        def foreach(self, f: Any) -> Any:
            self._delta_has_function = True
            return super().foreach(f)

        def foreachBatch(self, func: Any) -> Any:
            self._delta_has_function = True
            return super().foreachBatch(func)

        def start(self, path: Any = None, format: Any = None, *args: Any, **options: Any) -> Any:  # noqa: A002
            source = format or self._delta_source
            # Spark's default format counts only where no function takes the rows.
            if not (source is None and self._delta_has_function) and is_delta(self._delta_session, source):
                refuse_to_write()
            return super().start(path, format, *args, **options)

        def toTable(self, tableName: str, format: Any = None, *args: Any, **options: Any) -> Any:  # noqa: A002
            if is_named(self._delta_session, tableName) or is_delta(self._delta_session, format or self._delta_source):
                refuse_to_write()
            return super().toTable(tableName, format, *args, **options)

    return DeltaAwareStreamWriter


def refuse_to_read() -> NoReturn:
    """Raise InvalidOperationError with an alternative way to read."""
    raise InvalidOperationError(
        f"pyspark-delta does not read Delta tables as a stream. {_READ_INSTEAD}",
        error_class="DELTA_STREAMING_READ_UNSUPPORTED",
        sqlstate="0A000",
    )


def refuse_to_write() -> NoReturn:
    """Raise InvalidOperationError with an alternative way to write."""
    raise InvalidOperationError(
        f"pyspark-delta does not write streams to Delta tables. Nothing was written. {_WRITE_INSTEAD}",
        error_class="DELTA_STREAMING_WRITE_UNSUPPORTED",
        sqlstate="0A000",
    )
