"""`enable(spark)`: the session reads and writes Delta tables natively, with PySpark's own methods.

PySpark has no hook for planning in Python, so `enable` wraps members of its classes. In enabled sessions,
`SparkSession.read`, `SparkSession.readStream`, `SparkSession.table`, `DataFrame.write` and `DataFrame.writeTo` support
Delta; `SparkSession.sql` and `DataFrame.writeStream` explain what is not supported. Other sessions
do not change, nor do other formats, except that they cannot be written into the directory of a Delta table.
`disable` undoes `enable`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from threading import RLock
from typing import Any, cast

import pyspark
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta.errors import DeltaWarning, MissingDependencyError
from pyspark_delta.log.scanner import register_scanner
from pyspark_delta.spark.conf.classes import classic_frame, has_classic_package, has_data_sources
from pyspark_delta.spark.conf.data_sources import register_data_source
from pyspark_delta.spark.conf.sessions import (
    DATA_SOURCE_MODULE,
    enabled,
    is_enabled,
    set_disabled,
    set_enabled,
    settings_like,
)
from pyspark_delta.spark.conf.worker_python import choose_for_local_master, use_running_python
from pyspark_delta.spark.engine.checkpoint_scan import SparkCheckpointScanner
from pyspark_delta.spark.session.format_check import check_statement
from pyspark_delta.spark.session.frame_writer import DeltaAwareWriter
from pyspark_delta.spark.session.identifiers import is_named
from pyspark_delta.spark.session.mixins import DeltaMixin, mix_in
from pyspark_delta.spark.session.parameters import explaining_parameters
from pyspark_delta.spark.session.reader import DeltaAwareReader
from pyspark_delta.spark.session.sql_hooks import install_sql, run_on_connect, uninstall_sql
from pyspark_delta.spark.session.stream_reader import DeltaAwareStreamReader
from pyspark_delta.spark.session.stream_writer import DeltaAwareStreamWriter
from pyspark_delta.spark.session.table_writer import DeltaAwareTableWriter
from pyspark_delta.spark.session.unsupported import explaining_sql, refuse_truncate

_OLDEST_PYSPARK = (3, 5)
# Settings that name classes of delta-spark: catalogs, log stores. `install_sql` names extensions and the main catalog.
_CLASS_SETTINGS = r"spark\.sql\.catalog\.(?!spark_catalog$)\w+|spark\.(?:databricks\.)?delta\.logStore\..+"
_DELTA_SPARK_CLASS = re.compile(r"(?:io\.delta|org\.apache\.spark\.sql\.delta)\.[\w.$]+")

_lock = RLock()


@dataclass(frozen=True)
class _Wrapped:
    """A member of a PySpark class, and the original member."""

    owner: type
    name: str
    before: Any


_wrapped: list[_Wrapped] = []


def enable(spark: SparkSession) -> SparkSession:
    """Let a session read and write Delta tables natively, and return the session, which is classic or Spark Connect.

    Afterwards `spark.read.format("delta")`, ``spark.table("delta.`/path`")`` and `df.write.format("delta")` are planned
    in this process. Scans prune columns, partitions and files, also in joins and in SQL over temporary views. Writes
    support every save mode and `partitionBy`. Errors are `DeltaError`s. Calling `enable` again changes nothing.

    In local mode, Spark's workers run the Python of this process, unless PYSPARK_PYTHON or `spark.pyspark.python` names
    another one.

    Raises MissingDependencyError, before anything changes, if PySpark is too old.

    >>> spark = enable(SparkSession.builder.getOrCreate())              # doctest: +SKIP
    >>> spark.read.format("delta").option("versionAsOf", 3).load(path)  # doctest: +SKIP
    """
    members = _members(spark)
    with _lock:
        for owner, name, make in members:
            _wrap(owner, name, make)
        is_new = not is_enabled(spark)
        if is_new:
            set_enabled(spark)
    if is_new:
        _warn_of_delta_spark(spark)
        if use_running_python(spark):
            _register_sources(spark)  # Spark had looked up data sources with another Python
        install_sql(spark)
        register_scanner(SparkCheckpointScanner())
    return spark


def disable(spark: SparkSession) -> SparkSession:
    """Undo `enable` for a session, and return it. When no session is enabled, PySpark's classes are restored."""
    uninstall_sql(spark)
    with _lock:
        set_disabled(spark)
        if not enabled:
            for member in reversed(_wrapped):
                setattr(member.owner, member.name, member.before)
            _wrapped.clear()
    return spark


def configure_spark_with_delta_pip(spark_session_builder: Any, extra_packages: list[str] | None = None) -> Any:
    """Return the builder with `extra_packages` as `spark.jars.packages`; delta-spark's JAR is not needed.

    With this function, code written for delta-spark runs unchanged. If the builder's master is local, Spark also runs
    the Python of this process, unless PYSPARK_PYTHON, PYSPARK_DRIVER_PYTHON or `spark.pyspark.python` names another
    one.
    """
    choose_for_local_master(getattr(spark_session_builder, "_options", {}))
    if extra_packages:
        spark_session_builder = spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
    return spark_session_builder


# ------------------------------------------------------------------------------------------------------- wrapping
def _members(spark: SparkSession) -> list[tuple[type, str, Callable[[Any], Any]]]:
    """Return the members that `enable` wraps.

    Raises MissingDependencyError if this PySpark is too old, or lacks one of them.
    """
    version = re.match(r"(\d+)\.(\d+)", pyspark.__version__)
    if version is None or (int(version[1]), int(version[2])) < _OLDEST_PYSPARK:
        raise _unsupported_pyspark()
    if not hasattr(spark, "_jsparkSession") and not has_classic_package():
        raise _unsupported_connect()
    try:
        frame = _frame_class(spark)
        members: list[tuple[type, str, Callable[[Any], Any]]] = [
            (type(spark), "read", _property_with(DeltaAwareReader)),
            (type(spark), "table", _table_of),
            (type(spark), "sql", _sql_of),
            (type(spark), "readStream", _property_with(DeltaAwareStreamReader)),
            (frame, "write", _property_with(DeltaAwareWriter)),
            (frame, "writeTo", _write_to_of),
            (frame, "writeStream", _property_with(DeltaAwareStreamWriter)),
        ]
        if hasattr(spark, "_jsparkSession"):
            members.append((type(spark), "newSession", _new_session_of))
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


def _unsupported_connect() -> MissingDependencyError:
    return MissingDependencyError(
        f"enable supports Spark Connect from PySpark 4.0 on, found {pyspark.__version__}. The session is unchanged. "
        "Use a classic session, SparkSession.builder.master(...), or install PySpark 4.0 or newer.",
        version=pyspark.__version__,
    )


def _register_sources(spark: SparkSession) -> None:
    """Register the data sources under both names."""
    if not has_data_sources():
        return
    for module in ("pyspark_delta", DATA_SOURCE_MODULE):
        register_data_source(spark, module)


def _warn_of_delta_spark(spark: SparkSession) -> None:
    """Warn about settings that name classes of delta-spark if the session does not have its JAR.

    The JAR is not needed, and the settings make queries fail.
    """
    java = getattr(spark, "_jsparkSession", None)
    if java is None:  # only the Spark Connect server knows its classes
        return
    settings = settings_like(spark, _CLASS_SETTINGS)
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    left = [
        f"{key}={value}"
        for key, value in settings.items()
        if any(not _has_class(loader, name) for name in _DELTA_SPARK_CLASS.findall(value))
    ]
    if left:
        warnings.warn(
            f"The session has settings for delta-spark, but not its JAR: {', '.join(left)}. pyspark-delta needs "
            "neither. Remove the settings, because Spark fails when it needs these classes.",
            DeltaWarning,
            stacklevel=3,
        )


def _has_class(loader: Any, name: str) -> bool:
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None


def _frame_class(spark: SparkSession) -> type:
    if hasattr(spark, "_jsparkSession"):
        return classic_frame()
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    return ConnectFrame


def _wrap(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    if any(member.owner is owner and member.name == name for member in _wrapped):
        return
    before = owner.__dict__[name]
    _wrapped.append(_Wrapped(owner, name, before))
    setattr(owner, name, make(before))


def _property_with(mixin: type[DeltaMixin]) -> Callable[[Any], Any]:
    """Return a function that wraps a property of PySpark and adds the mixin to the reader or writer in it."""

    def wrap(before: Any) -> Any:
        return property(lambda self: mix_in(mixin, before.fget(self), self), doc=before.__doc__)

    return wrap


def _table_of(before: Any) -> Any:
    @wraps(before)
    def table(self: SparkSession, tableName: str) -> DataFrame:
        if is_enabled(self) and is_named(self, tableName):
            return self.read.table(tableName)
        return cast(DataFrame, before(self, tableName))

    return table


def _sql_of(before: Any) -> Any:
    @wraps(before)
    def sql(self: SparkSession, sqlQuery: str, *args: Any, **kwargs: Any) -> DataFrame:
        if not is_enabled(self):
            return cast(DataFrame, before(self, sqlQuery, *args, **kwargs))
        check_statement(self, sqlQuery)
        refuse_truncate(self, sqlQuery)
        with explaining_sql(self, sqlQuery):
            if not hasattr(self, "_jsparkSession") and isinstance(sqlQuery, str):
                given = kwargs.pop("args", None) if not args else args[0]
                return cast(DataFrame, run_on_connect(self, before, sqlQuery, given, kwargs))
            with explaining_parameters(self, sqlQuery, args or kwargs):
                return cast(DataFrame, before(self, sqlQuery, *args, **kwargs))

    return sql


def _new_session_of(before: Any) -> Any:
    @wraps(before)
    def newSession(self: SparkSession) -> SparkSession:
        session = cast(SparkSession, before(self))
        return enable(session) if is_enabled(self) else session

    return newSession


def _write_to_of(before: Any) -> Any:
    @wraps(before)
    def writeTo(self: DataFrame, table: str) -> Any:
        writer = mix_in(DeltaAwareTableWriter, before(self, table), self)
        if isinstance(writer, DeltaAwareTableWriter):
            writer._delta_begin_table(table)
        return writer

    return writeTo
