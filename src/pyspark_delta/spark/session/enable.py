"""`enable(spark)`: the session reads and writes Delta tables natively, by the methods that every Spark user knows.

PySpark has no hook for planning in Python, so four members of its classes are wrapped, for enabled sessions only:
`SparkSession.read`, `SparkSession.table`, `DataFrame.write` and `DataFrame.writeTo`. They answer as before for every
other session and for every other format. `disable` undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import RLock
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from pyspark_delta.spark.conf.sessions import enabled, is_enabled, session_key
from pyspark_delta.spark.session.frame_writer import writer_class
from pyspark_delta.spark.session.identifiers import is_named
from pyspark_delta.spark.session.reader import reader_class
from pyspark_delta.spark.session.table_writer import table_writer_class

_lock = RLock()


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

    >>> spark = enable(SparkSession.builder.getOrCreate())              # doctest: +SKIP
    >>> spark.read.format("delta").option("versionAsOf", 3).load(path)  # doctest: +SKIP
    """
    with _lock:
        enabled.add(session_key(spark))
        _wrap(type(spark), "read", _read_of)
        _wrap(type(spark), "table", _table_of)
        _wrap(_frame_class(spark), "write", _write_of)
        _wrap(_frame_class(spark), "writeTo", _write_to_of)
    return spark


def disable(spark: SparkSession) -> SparkSession:
    """Undo `enable` for a session; PySpark's classes are as they were once no session is enabled."""
    with _lock:
        enabled.discard(session_key(spark))
        if not enabled:
            for member in reversed(_wrapped):
                setattr(member.owner, member.name, member.before)
            _wrapped.clear()
    return spark


def configure_spark_with_delta_pip(spark_session_builder: Any, extra_packages: list[str] | None = None) -> Any:
    """The builder, with `extra_packages` added to its JARs: delta-spark's JAR is not needed here.

    It is there so that code written for delta-spark runs unchanged.
    """
    if extra_packages:
        spark_session_builder = spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
    return spark_session_builder


# ------------------------------------------------------------------------------------------------------- wrapping
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
            reader.__class__ = reader_class(cast(Hashable, type(reader)))
            reader._delta_begin(self)
        return reader

    return property(read, doc=before.__doc__)


def _table_of(before: Any) -> Any:
    def table(self: SparkSession, tableName: str) -> DataFrame:
        if is_enabled(self) and is_named(self, tableName):
            return self.read.table(tableName)
        return cast(DataFrame, before(self, tableName))

    table.__doc__ = before.__doc__
    return table


def _write_of(before: Any) -> Any:
    def write(self: DataFrame) -> Any:
        """A writer of this frame; format "delta" is written by pyspark-delta."""
        writer = before.fget(self)
        if is_enabled(self.sparkSession):
            writer.__class__ = writer_class(cast(Hashable, type(writer)))
            writer._delta_begin(self)
        return writer

    return property(write, doc=before.__doc__)


def _write_to_of(before: Any) -> Any:
    def writeTo(self: DataFrame, table: str) -> Any:
        writer = before(self, table)
        if is_enabled(self.sparkSession):
            writer.__class__ = table_writer_class(cast(Hashable, type(writer)))
            writer._delta_begin(self, table)
        return writer

    writeTo.__doc__ = before.__doc__
    return writeTo
