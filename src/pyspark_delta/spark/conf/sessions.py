"""The state of a session: its key, whether it is enabled, its time zone, and which formats are Delta."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

DATA_SOURCE = "deltapy"  # a name of our Python Data Source that no other implementation claims
DATA_SOURCE_MODULE = "pyspark_deltapy"  # where Spark finds it; named here so that these modules need not import it
FORMATS = ("delta", DATA_SOURCE)
STAND_IN = "org.apache.spark.sql.execution.datasources.noop.NoopDataSource"  # for `delta` in plans of Spark 3.5
_DEFAULT_FORMAT = "spark.sql.sources.default"
TIME_ZONE = "spark.sql.session.timeZone"

enabled: set[str] = set()
"""The keys of the sessions that `enable` was called for."""

ENABLED_SESSION = "spark.pyspark_delta.enabledSession"
"""The setting with the key of the session that `enable` was called for. Spark copies it when it clones a session."""

_ORIGIN = "_pyspark_delta_enabled_session"
_KEY = "_pyspark_delta_session_key"
_answers: dict[tuple[str, str], Any] = {}  # by owner and question


def ask_once(owner: str, question: str, ask: Callable[[], T]) -> T:
    """Return the answer of `ask` to a question about the `owner`, the id of a session or of an application.

    `ask` runs a Spark job, so this process keeps its answer. It keeps nothing if `ask` raises.
    """
    if (owner, question) not in _answers:
        _answers[owner, question] = ask()
    answer: T = _answers[owner, question]
    return answer


def session_key(spark: SparkSession) -> str:
    """Return the id of a session. PySpark may make several objects for one session; they have the same id.

    Each object keeps it: asking the JVM takes as long as parsing a short statement, and every statement needs the id.
    """
    known = spark.__dict__.get(_KEY)
    if known is None:
        java = getattr(spark, "_jsparkSession", None)
        known = str(java.sessionUUID() if java is not None else spark.session_id)  # type: ignore[attr-defined]
        spark.__dict__[_KEY] = known
    return str(known)


def settings_like(spark: SparkSession, pattern: str) -> dict[str, str]:
    """Return the settings of a session whose whole names match a regular expression.

    A classic session gives all names in one message; to read all of its settings takes a hundred.
    """
    matches = re.compile(pattern).fullmatch
    java: Any = getattr(spark, "_jsparkSession", None)
    if java is None:
        return {name: value for name, value in dict(spark.conf.getAll).items() if matches(name)}
    names = filter(matches, str(java.conf().getAll().keySet().mkString(", ")).split(", "))
    given = {name: spark.conf.get(name, None) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def set_enabled(spark: SparkSession) -> None:
    """Enable a session, and the sessions that Spark clones from it, as it does for every run of a streaming query."""
    key = session_key(spark)
    enabled.add(key)
    if hasattr(spark, "_jsparkSession"):
        spark.conf.set(ENABLED_SESSION, key)


def set_disabled(spark: SparkSession) -> None:
    """Undo `set_enabled`. For a clone, only the clone is disabled."""
    enabled.discard(session_key(spark))
    spark.__dict__.pop(_ORIGIN, None)
    if hasattr(spark, "_jsparkSession"):
        spark.conf.unset(ENABLED_SESSION)


def is_enabled(spark: SparkSession) -> bool:
    """Return True if the session is enabled, or a clone of an enabled one."""
    return bool(enabled) and (session_key(spark) in enabled or _origin(spark) in enabled)


def is_clone(spark: SparkSession) -> bool:
    """Return True if an enabled session is a clone of the one that `enable` was called for."""
    return session_key(spark) not in enabled


def _origin(spark: SparkSession) -> str | None:
    """Return the key of the session that a clone was enabled with; None if it is no clone of an enabled session."""
    known: str | None = spark.__dict__.get(_ORIGIN)
    if known is None and hasattr(spark, "_jsparkSession"):
        known = spark.conf.get(ENABLED_SESSION, None)
        if known is not None:
            spark.__dict__[_ORIGIN] = known
    return known


def is_delta(spark: SparkSession, source: str | None) -> bool:
    """Return True if a format is Delta; None stands for the session's default format."""
    chosen = source if source is not None else spark.conf.get(_DEFAULT_FORMAT)
    return chosen is not None and chosen.lower() in FORMATS


def session_time_zone(spark: SparkSession) -> str:
    """Return the session time zone, which applies to timestamps without a zone."""
    return spark.conf.get(TIME_ZONE) or "UTC"


def unwrapped_reader(spark: SparkSession) -> Any:
    """Return PySpark's own reader, even if the session is enabled. It reads Delta through the Python Data Source."""
    if hasattr(spark, "_jsparkSession"):
        from pyspark.sql.readwriter import DataFrameReader

        return DataFrameReader(spark)
    from pyspark.sql.connect.readwriter import DataFrameReader as ConnectReader

    return ConnectReader(spark)  # type: ignore[arg-type]
