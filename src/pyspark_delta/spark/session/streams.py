"""`df.writeStream` of enabled sessions: Delta streams are refused when they are created."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.spark.conf.sessions import enabled, session_key
from pyspark_delta.spark.session.format_check import FormatCheckedStreamWriter
from pyspark_delta.spark.session.identifiers import is_named
from pyspark_delta.spark.session.sql_hooks import install_sql, uninstall_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRITE_INSTEAD = (
    "Write each batch in foreachBatch, with batch.write.format('delta').mode('append').save(path); with the options "
    "txnAppId and txnVersion, a repeated batch is not written twice."
)


class DeltaAwareStreamWriter(FormatCheckedStreamWriter):
    """PySpark's DataStreamWriter, which refuses Delta."""

    def foreach(self, f: Any) -> Any:
        self._delta_has_function = True
        return super().foreach(f)

    def foreachBatch(self, func: Any) -> Any:
        self._delta_has_function = True
        is_classic = hasattr(self._delta_session, "_jsparkSession")
        return super().foreachBatch(_enabling(func) if is_classic else func)

    def start(
        self,
        path: Any = None,
        format: Any = None,  # noqa: A002
        outputMode: Any = None,
        partitionBy: Any = None,
        queryName: Any = None,
        **options: Any,
    ) -> Any:
        # Spark's default format applies only if no function, such as that of foreachBatch, takes the rows.
        source = format or self._delta_source
        if (source is not None or not self._delta_has_function) and self._delta_chosen(source):
            refuse_to_write()
        return super().start(path, format, outputMode, partitionBy, queryName, **options)

    def toTable(
        self,
        tableName: str,
        format: Any = None,  # noqa: A002
        outputMode: Any = None,
        partitionBy: Any = None,
        queryName: Any = None,
        **options: Any,
    ) -> Any:
        if is_named(self._delta_session, tableName) or self._delta_chosen(format):
            refuse_to_write()
        return super().toTable(tableName, format, outputMode, partitionBy, queryName, **options)


def _enabling(func: Callable[[DataFrame, int], object]) -> Callable[[DataFrame, int], None]:
    """Return the function for batches; while it runs, the session of the batch, a clone, is enabled like its origin.

    On Spark Connect, a process of the server calls the function, which knows nothing of `enable`.
    """

    @wraps(func)
    def call(batch: DataFrame, number: int) -> None:
        key = session_key(batch.sparkSession)
        if key in enabled:
            func(batch, number)
            return
        enabled.add(key)
        install_sql(batch.sparkSession)
        try:
            func(batch, number)
        finally:
            uninstall_sql(batch.sparkSession)
            enabled.discard(key)

    return call


def refuse_to_write() -> NoReturn:
    """Raise InvalidOperationError with an alternative way to write."""
    raise InvalidOperationError(
        f"pyspark-delta does not write streams to Delta tables. Nothing was written. {_WRITE_INSTEAD}",
        error_class="DELTA_STREAMING_WRITE_UNSUPPORTED",
        sqlstate="0A000",
    )
