"""`df.writeStream` of enabled sessions: PySpark's DataStreamWriter, with Delta tables on classic sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.spark.conf import write_defaults
from pyspark_delta.spark.conf.data_sources import register_data_source
from pyspark_delta.spark.conf.sessions import DATA_SOURCE, is_clone, is_enabled
from pyspark_delta.spark.engine.write.alignment import frame_schema
from pyspark_delta.spark.frames.catalyst.jvm import jvm_of
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.session.format_check import FormatCheckedStreamWriter
from pyspark_delta.spark.session.frame_writer import refuse_name
from pyspark_delta.spark.session.identifiers import (
    Identified,
    check_path_option,
    identify,
    identify_or_create,
    is_named,
)
from pyspark_delta.spark.session.mixins import column_names, mixed_class, path_option
from pyspark_delta.spark.session.sql_hooks import has_sql, install_sql, uninstall_sql
from pyspark_delta.spark.streaming.errors import CausedQuery, function_errors
from pyspark_delta.spark.streaming.query import (
    QueryChoices,
    check_output_mode,
    start_query,
    unavailable,
    warn_of_fallback,
)
from pyspark_delta.spark.streaming.sink import StreamWrite
from pyspark_delta.spark.streaming.upsert import StreamUpsert
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.paths import to_hadoop
from pyspark_delta.write.options import WriteOptions, check_layout
from pyspark_delta.write.stream_options import SPARK_OPTIONS, check_no_void, parse_keys, parse_stream_options
from pyspark_delta.write.stream_target import create_for_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WRITE_INSTEAD = (
    "Write each batch in foreachBatch, with batch.write.format('delta').mode('append').save(path); with the options "
    "txnAppId and txnVersion, a repeated batch is not written twice."
)


class DeltaAwareStreamWriter(FormatCheckedStreamWriter):
    """PySpark's DataStreamWriter with Delta."""

    _delta_partitioning: tuple[str, ...] = ()
    _delta_mode: str = "append"

    def outputMode(self, outputMode: str) -> Any:
        self._delta_mode = str(outputMode)
        return super().outputMode(outputMode)

    def format(self, source: str) -> Any:
        self._delta_has_function = False  # as for Spark, the last call counts
        return super().format(source)

    def foreach(self, f: Any) -> Any:
        self._delta_has_function, self._delta_source = True, None
        return super().foreach(f)

    def foreachBatch(self, func: Any) -> Any:
        self._delta_has_function, self._delta_source = True, None
        return super().foreachBatch(_enabled(func) if self._delta_is_classic else func)

    def partitionBy(self, *cols: Any) -> Any:
        self._delta_partitioning = column_names(cols)
        return super().partitionBy(*cols)

    def queryName(self, queryName: str) -> Any:
        self._delta_options.add("queryName", queryName)
        return super().queryName(queryName)

    def start(
        self,
        path: Any = None,
        format: Any = None,  # noqa: A002
        outputMode: Any = None,
        partitionBy: Any = None,
        queryName: Any = None,
        **options: Any,
    ) -> Any:
        source = format or self._delta_source
        # Spark's default format applies only if no function, such as that of foreachBatch, takes the rows.
        if (source is None and self._delta_has_function) or not self._delta_chosen(source):
            return super().start(path, format, outputMode, partitionBy, queryName, **options)
        self._delta_choose(outputMode, partitionBy, queryName)
        given = self._delta_options.items(options)
        return self._delta_start(
            Identified(on_default_system(self._delta_session, _location(path, given))), given, must_exist=False
        )

    def toTable(
        self,
        tableName: str,
        format: Any = None,  # noqa: A002
        outputMode: Any = None,
        partitionBy: Any = None,
        queryName: Any = None,
        **options: Any,
    ) -> Any:
        is_chosen = self._delta_chosen(format) or is_named(self._delta_session, tableName)
        if not self._delta_is_classic and not is_chosen:
            return super().toTable(tableName, format, outputMode, partitionBy, queryName, **options)
        given = self._delta_options.items(options)
        check_path_option(self._delta_session, tableName, given)
        found = (identify_or_create if is_chosen else identify)(self._delta_session, tableName)
        if found is None:
            if is_chosen:
                refuse_name(self._delta_session, tableName)
            return super().toTable(tableName, format, outputMode, partitionBy, queryName, **options)
        if found.register is not None and _is_hidden(self._delta_session, tableName):
            refuse_name(self._delta_session, tableName)
        self._delta_choose(outputMode, partitionBy, queryName)
        return self._delta_start(found, given, must_exist=True, name=tableName)

    # --------------------------------------------------------------------------------------------------- details
    @property
    def _delta_is_classic(self) -> bool:
        return hasattr(self._delta_session, "_jsparkSession")

    def _sq(self, jsq: Any) -> Any:
        """Return PySpark's query for one of the JVM."""
        return _caused(super()._sq(jsq))

    def _delta_choose(self, outputMode: Any, partitionBy: Any, queryName: Any) -> None:
        if outputMode is not None:
            self.outputMode(outputMode)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if queryName is not None:
            self.queryName(queryName)

    def _delta_start(
        self, table: Identified, given: Mapping[str, str], *, must_exist: bool, name: str | None = None
    ) -> Any:
        """Start a query that writes to a table; with its `name`, a table that does not exist is created first."""
        spark, frame = self._delta_session, self._delta_frame
        if not self._delta_is_classic:
            return self._delta_start_on_server(table)
        choices = QueryChoices.of(spark, self._jwrite)
        choices.check()
        mode = str(choices.output_mode.toString())
        keys = parse_keys(given, mode)
        options = self._delta_write_options(table, given, complete=mode == "Complete")
        if name is not None:
            table, options = _create(frame, table, given, options, name)
        location = normalize_location(table.path)
        write = (
            StreamWrite(location, mode, options, must_exist) if keys is None else StreamUpsert(location, keys, options)
        ).checked(frame)
        reason = unavailable(spark)
        if reason is not None:
            warn_of_fallback(reason)
            self.foreachBatch(write.write)
            return super().start()
        spark_options = {key: value for key, value in given.items() if key.lower() in _OF_SPARK}
        return _caused(start_query(frame, write, choices, spark_options))

    def _delta_start_on_server(self, table: Identified) -> Any:
        """Start a query of a Spark Connect server, which writes through the Python Data Source.

        Raises InvalidOperationError for what that cannot do, and the errors of the options.
        """
        check_output_mode(self._delta_mode)
        if table.catalog_table is not None or table.register is not None:
            refuse_to_write()
        given, complete = self._delta_options.items({}), self._delta_mode.lower() == "complete"
        parse_keys(given, self._delta_mode)
        options = self._delta_write_options(table, given, complete=complete)
        for name, columns in (("partitionBy", options.partition_by), ("clusterBy", options.cluster_by)):
            if columns:
                super().option(name, ", ".join(columns))
        for name, value in table.storage_options.items():
            super().option(name, value)
        register_data_source(self._delta_session)
        super().format(DATA_SOURCE)
        return super().start(to_hadoop(normalize_location(table.path)))

    def _delta_write_options(self, table: Identified, given: Mapping[str, str], *, complete: bool) -> WriteOptions:
        options = parse_stream_options({**given, **table.storage_options}, complete=complete)
        options = replace(
            options,
            partition_by=self._delta_partitioning or options.partition_by,
            cluster_by=self._delta_clustering or options.cluster_by,
            dynamic_partitions=False,
            catalog_table=table.catalog_table,
        )
        check_layout(options)
        return options


_OF_SPARK = frozenset(name.lower() for name in SPARK_OPTIONS)


def _is_hidden(spark: SparkSession, name: str) -> bool:
    """Return True if a new table of Spark's catalog would have the name of a temporary view, which comes first."""
    return not is_named(spark, name) and spark.catalog.tableExists(name)


def _create(
    frame: DataFrame, table: Identified, given: Mapping[str, str], options: WriteOptions, name: str
) -> tuple[Identified, WriteOptions]:
    """Create the table of a name unless it exists; return it, and the options of its writes."""
    spark, data = frame.sparkSession, frame_schema(frame)
    check_no_void(data)
    path = path_option(given) if table.register is not None else None
    location = normalize_location(path or table.path)
    defaults = write_defaults.default_properties(spark)
    create_for_stream(location, data, options, f"PySpark/{spark.version}", defaults)
    if table.register is not None:
        table.register(location, path is not None)
    found = identify(spark, name)
    assert found is not None
    return found, replace(options, catalog_table=found.catalog_table)


def _caused(query: Any) -> Any:
    """Return the query with the errors of sources and sinks as the causes of its own, on classic sessions."""
    if hasattr(query, "_jsq"):
        query.__class__ = mixed_class(CausedQuery, type(query))  # type: ignore[arg-type]
    return query


def _enabled(func: Callable[[DataFrame, int], object]) -> Callable[[DataFrame, int], None]:
    """Return the function for batches; while it runs, SQL of the batch's session, a clone, knows Delta tables.

    Errors of this package are the causes of the query's exception. Spark clones the settings of a session, and not its
    catalogs. On Spark Connect, a process of the server calls the function, which knows nothing of `enable`.
    """

    @wraps(func)
    def call(batch: DataFrame, number: int) -> None:
        with function_errors(jvm_of(batch.sparkSession)), _sql_in_clone(batch.sparkSession):
            func(batch, number)

    return call


@contextmanager
def _sql_in_clone(spark: SparkSession) -> Iterator[None]:
    if not is_enabled(spark) or not is_clone(spark) or has_sql(spark):
        yield
        return
    install_sql(spark)
    try:
        yield
    finally:
        uninstall_sql(spark)


def _location(path: Any, options: Mapping[str, str]) -> str:
    target = path or path_option(options)
    if not target:
        raise InvalidOptionError(
            'Writing a stream of format \'delta\' needs a path, as in df.writeStream.format("delta").start("/path"), '
            "or the name of a table, as in toTable(name).",
            error_class="DELTA_MISSING_PATH",
        )
    return str(target)


def refuse_to_write() -> NoReturn:
    """Raise InvalidOperationError with an alternative way to write a table in a catalog on Spark Connect."""
    raise InvalidOperationError(
        "On Spark Connect, streams are written by paths: the server cannot ask the catalog of a table. Nothing was "
        f"written. Use a classic session with pyspark_delta.enable(spark). {_WRITE_INSTEAD}",
        error_class="DELTA_STREAMING_WRITE_UNSUPPORTED",
        sqlstate="0A000",
    )
