"""`enable(spark)`: the session reads and writes Delta tables natively, by the methods that every Spark user knows.

PySpark has no hook for planning in Python, so members of its classes are wrapped, for enabled sessions only:
`SparkSession.read`, `SparkSession.table`, `DataFrame.write` and `DataFrame.writeTo`; and `SparkSession.sql`,
`SparkSession.readStream` and `DataFrame.writeStream`, to explain what is refused. They answer as before for every other
session and for every other format. `disable` undoes it.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, cast

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct
from pyspark.sql.types import _parse_datatype_string
from pyspark.sql.utils import to_str

from pyspark_delta.errors import (
    DeltaWarning,
    InvalidOptionError,
    MissingDependencyError,
    StorageError,
    TableNotFoundError,
)
from pyspark_delta.spark.worker_python import choose_for_local_master, use_running_python

if TYPE_CHECKING:
    from pyspark_delta.catalog.log_tail import TailFiles

FORMATS = ("delta", "deltapy")
_IDENTIFIER = re.compile(r"\s*(?:delta|deltapy)\s*\.\s*`((?:[^`]|``)+)`\s*", re.IGNORECASE)
_DEFAULT_FORMAT = "spark.sql.sources.default"
_OLDEST_PYSPARK = (4, 2)
# Settings that name classes of delta-spark: session extensions, catalogs, log stores.
_CLASS_SETTINGS = re.compile(
    r"spark\.sql\.extensions|spark\.sql\.catalog\.\w+|spark\.(?:databricks\.)?delta\.logStore\..+"
)
_DELTA_SPARK_CLASS = re.compile(r"(?:io\.delta|org\.apache\.spark\.sql\.delta)\.[\w.$]+")

_lock = RLock()
_enabled: set[str] = set()


@dataclass(frozen=True)
class _Wrapped:
    """A member of a PySpark class, and what it was before."""

    owner: type
    name: str
    before: Any


_wrapped: list[_Wrapped] = []


def enable(spark: SparkSession) -> SparkSession:
    """Make a session speak Delta natively, and return it. Works on classic sessions and on Spark Connect.

    Afterwards `spark.read.format("delta")`, ``spark.table("delta.`/path`")`` and `df.write.format("delta")` plan in
    this process: scans prune columns, partitions and files, in SQL over temporary views and in joins too; writes know
    every save mode and `partitionBy`; errors are `DeltaError`s. Calling it again changes nothing.

    In local mode, Spark's workers run the Python of this process, unless PYSPARK_PYTHON or `spark.pyspark.python` names
    another one.

    Raises MissingDependencyError, before anything changes, for a PySpark that is too old.

    >>> spark = enable(SparkSession.builder.getOrCreate())              # doctest: +SKIP
    >>> spark.read.format("delta").option("versionAsOf", 3).load(path)  # doctest: +SKIP
    """
    members = _members(spark)
    with _lock:
        for owner, name, make in members:
            _wrap(owner, name, make)
        is_new = session_key(spark) not in _enabled
        _enabled.add(session_key(spark))
    if is_new:
        _warn_of_delta_spark(spark)
        if use_running_python(spark):
            _register_sources(spark)  # Spark has looked for data sources with another Python
    return spark


def disable(spark: SparkSession) -> SparkSession:
    """Undo `enable` for a session; PySpark's classes are as they were once no session is enabled."""
    with _lock:
        _enabled.discard(session_key(spark))
        if not _enabled:
            for member in reversed(_wrapped):
                setattr(member.owner, member.name, member.before)
            _wrapped.clear()
    return spark


def is_enabled(spark: SparkSession) -> bool:
    """Whether `enable` holds for the session."""
    return bool(_enabled) and session_key(spark) in _enabled


def plain_reader(spark: SparkSession) -> Any:
    """A reader of the session that leaves format "delta" to the Python Data Source, enabled or not."""
    reader = spark.read
    if is_enabled(spark):
        reader.__class__ = type(reader).__bases__[0]
    return reader


def configure_spark_with_delta_pip(spark_session_builder: Any, extra_packages: list[str] | None = None) -> Any:
    """The builder, with `extra_packages` added to its JARs: delta-spark's JAR is not needed here.

    It is there so that code written for delta-spark runs unchanged. If the builder has a local master, Spark also
    starts the Python of this process, unless PYSPARK_PYTHON or `spark.pyspark.python` names another one.
    """
    choose_for_local_master(getattr(spark_session_builder, "_options", {}))
    if extra_packages:
        spark_session_builder = spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
    return spark_session_builder


def path_of_identifier(identifier: str) -> str | None:
    """The path of a table identifier such as ``delta.`/path` ``; None for any other identifier."""
    match = _IDENTIFIER.fullmatch(identifier)
    return None if match is None else match[1].replace("``", "`")


# ------------------------------------------------------------------------------------------------------- wrapping
def session_key(spark: SparkSession) -> str:
    """Identifies the session, of which PySpark may make several objects."""
    java = getattr(spark, "_jsparkSession", None)
    return str(java.sessionUUID() if java is not None else spark.session_id)  # type: ignore[attr-defined]


def _members(spark: SparkSession) -> list[tuple[type, str, Callable[[Any], Any]]]:
    """What `enable` wraps. Raises MissingDependencyError if this PySpark is too old, or lacks one of them."""
    version = re.match(r"(\d+)\.(\d+)", pyspark.__version__)
    if version is None or (int(version[1]), int(version[2])) < _OLDEST_PYSPARK:
        raise _unsupported_pyspark()
    try:
        frame = _frame_class(spark)
        members: list[tuple[type, str, Callable[[Any], Any]]] = [
            (type(spark), "read", _read_of),
            (type(spark), "table", _table_of),
            (type(spark), "sql", _sql_of),
            (type(spark), "readStream", _read_stream_of),
            (frame, "write", _write_of),
            (frame, "writeTo", _write_to_of),
            (frame, "writeStream", _write_stream_of),
        ]
    except ImportError:
        raise _unsupported_pyspark() from None
    if not all(name in owner.__dict__ for owner, name, _ in members):
        raise _unsupported_pyspark()
    return members


def _unsupported_pyspark() -> MissingDependencyError:
    oldest = ".".join(map(str, _OLDEST_PYSPARK))
    return MissingDependencyError(
        f"enable does not support PySpark {pyspark.__version__}. The session is unchanged. Install PySpark {oldest} or "
        f"newer: pip install 'pyspark>={oldest}'.",
        version=pyspark.__version__,
    )


def _register_sources(spark: SparkSession) -> None:
    from pyspark_delta.spark.source import DefaultSource, DeltapySource

    for source in (DefaultSource, DeltapySource):
        spark.dataSource.register(source)


def _warn_of_delta_spark(spark: SparkSession) -> None:
    """Warn of settings that name classes of delta-spark which are not there: its JAR is not needed, and they fail."""
    java = getattr(spark, "_jsparkSession", None)
    if java is None:  # only a Spark Connect server knows its classes
        return
    settings = {key: str(value) for key, value in spark.conf.getAll.items() if _CLASS_SETTINGS.fullmatch(key)}
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    left = [
        f"{key}={value}"
        for key, value in settings.items()
        if any(not _has_class(loader, name) for name in _DELTA_SPARK_CLASS.findall(value))
    ]
    if left:
        warnings.warn(
            f"The session has settings for delta-spark, whose JAR it lacks: {', '.join(left)}. pyspark-delta needs "
            "neither; remove the settings, because Spark fails where it needs these classes.",
            DeltaWarning,
            stacklevel=3,
        )


def _has_class(loader: Any, name: str) -> bool:
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None


def _frame_class(spark: SparkSession) -> type:
    if hasattr(spark, "_jsparkSession"):
        from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

        return ClassicFrame
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    return ConnectFrame


def _wrap(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    if any(member.owner is owner and member.name == name for member in _wrapped):
        return
    before = owner.__dict__[name]
    _wrapped.append(_Wrapped(owner, name, before))
    setattr(owner, name, make(before))


def _read_of(before: Any) -> Any:
    def read(self: SparkSession) -> Any:
        """A reader of data; format "delta" is planned by pyspark-delta."""
        reader = before.fget(self)
        if is_enabled(self):
            reader.__class__ = _reader_class(cast(Hashable, type(reader)))
            reader._delta_begin(self)
        return reader

    return property(read, doc=before.__doc__)


def _table_of(before: Any) -> Any:
    def table(self: SparkSession, tableName: str) -> DataFrame:
        if is_enabled(self) and _is_named(self, tableName):
            return self.read.table(tableName)
        return cast(DataFrame, before(self, tableName))

    table.__doc__ = before.__doc__
    return table


def _sql_of(before: Any) -> Any:
    @wraps(before)
    def sql(self: SparkSession, sqlQuery: str, *args: Any, **kwargs: Any) -> DataFrame:
        if not is_enabled(self):
            return cast(DataFrame, before(self, sqlQuery, *args, **kwargs))
        from pyspark_delta.spark.unsupported import explaining_sql

        with explaining_sql(self, sqlQuery):
            return cast(DataFrame, before(self, sqlQuery, *args, **kwargs))

    return sql


def _read_stream_of(before: Any) -> Any:
    def readStream(self: SparkSession) -> Any:
        reader = before.fget(self)
        if is_enabled(self):
            from pyspark_delta.spark.streams import stream_reader_class

            reader.__class__ = stream_reader_class(cast(Hashable, type(reader)))
            reader._delta_begin(self)
        return reader

    return property(readStream, doc=before.__doc__)


def _write_stream_of(before: Any) -> Any:
    def writeStream(self: DataFrame) -> Any:
        writer = before.fget(self)
        if is_enabled(self.sparkSession):
            from pyspark_delta.spark.streams import stream_writer_class

            writer.__class__ = stream_writer_class(cast(Hashable, type(writer)))
            writer._delta_begin(self.sparkSession)
        return writer

    return property(writeStream, doc=before.__doc__)


def _is_named(spark: SparkSession, identifier: str) -> bool:
    from pyspark_delta.spark.names import is_named

    return is_named(spark, identifier)


def _write_of(before: Any) -> Any:
    def write(self: DataFrame) -> Any:
        """A writer of this frame; format "delta" is written by pyspark-delta."""
        writer = before.fget(self)
        if is_enabled(self.sparkSession):
            from pyspark_delta.spark.frame_writer import writer_class

            writer.__class__ = writer_class(cast(Hashable, type(writer)))
            writer._delta_begin(self)
        return writer

    return property(write, doc=before.__doc__)


def _write_to_of(before: Any) -> Any:
    def writeTo(self: DataFrame, table: str) -> Any:
        writer = before(self, table)
        if is_enabled(self.sparkSession):
            from pyspark_delta.spark.table_writer import table_writer_class

            writer.__class__ = table_writer_class(cast(Hashable, type(writer)))
            writer._delta_begin(self, table)
        return writer

    writeTo.__doc__ = before.__doc__
    return writeTo


class GivenOptions:
    """Options as they were given last; their keys compare regardless of case."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[str, str]] = {}

    def add(self, key: str, value: Any) -> None:
        if value is not None:
            self._given[key.lower()] = (key, cast(str, to_str(value)))

    def items(self, more: Mapping[str, Any]) -> dict[str, str]:
        """All options, with `more` on top."""
        both = GivenOptions()
        both._given = dict(self._given)
        for key, value in more.items():
            both.add(key, value)
        return dict(both._given.values())


# -------------------------------------------------------------------------------------------------------- reading
@lru_cache(maxsize=4)
def _reader_class(base: type) -> type:
    """PySpark's reader class with Delta in it."""

    class DeltaAwareReader(base):  # type: ignore[misc]
        __doc__ = base.__doc__

        def _delta_begin(self, spark: SparkSession) -> None:
            self._delta_session = spark
            self._delta_source: str | None = None
            self._delta_options = GivenOptions()
            self._delta_schema: Any = None

        def format(self, source: str) -> Any:
            self._delta_source = source
            return super().format(source)

        def schema(self, schema: Any) -> Any:
            self._delta_schema = schema
            return super().schema(schema)

        def option(self, key: str, value: Any) -> Any:
            self._delta_options.add(key, value)
            return super().option(key, value)

        def options(self, **options: Any) -> Any:
            for key, value in options.items():
                self._delta_options.add(key, value)
            return super().options(**options)

        def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:  # noqa: A002
            if not is_delta(self._delta_session, format or self._delta_source):
                return cast(DataFrame, super().load(path, format, schema, **options))
            given = self._delta_options.items(options)
            if path is not None and not isinstance(path, str):
                given["paths"] = json.dumps(list(path))
            frame = _read(self._delta_session, path, given, schema or self._delta_schema)
            return frame if frame is not None else cast(DataFrame, super().load(path, format, schema, **options))

        def table(self, tableName: str) -> DataFrame:
            from pyspark_delta.spark.names import identify

            found = identify(self._delta_session, tableName)
            if found is None:
                return cast(DataFrame, super().table(tableName))
            given = self._delta_options.items(found.storage_options)
            frame = _read(self._delta_session, found.path, given, self._delta_schema, found.tail)
            return frame if frame is not None else cast(DataFrame, self.format("delta").load(found.path))

    return DeltaAwareReader


def is_delta(spark: SparkSession, source: str | None) -> bool:
    """Whether a format, the session's default one where it is None, is Delta."""
    chosen = source if source is not None else spark.conf.get(_DEFAULT_FORMAT)
    return chosen is not None and chosen.lower() in FORMATS


def _read(
    spark: SparkSession, path: Any, options: Mapping[str, str], schema: Any, tail: TailFiles | None = None
) -> DataFrame | None:
    """The frame; None where the table cannot be seen from here, but perhaps from a Spark Connect server."""
    from pyspark_delta.spark.read import read_options, read_table

    parsed = read_options(spark, path if isinstance(path, str) else None, options)
    given = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if given is not None and not isinstance(given, SparkStruct):
        raise InvalidOptionError(f"A schema is a StructType or text such as 'id BIGINT, name STRING', found {given!r}.")
    try:
        return read_table(spark, parsed, given, tail=tail)
    except (TableNotFoundError, StorageError):
        if hasattr(spark, "_jsparkSession"):
            raise
        return None
