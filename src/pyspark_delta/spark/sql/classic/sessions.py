"""The session of a proxy, without keeping the session alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of

_CATALOG, _MANAGER = "_pyspark_delta_catalog", "_pyspark_delta_catalog_manager"


def session_catalog(spark: SparkSession) -> Any:
    """Return Spark's session catalog of version 1, which has the cache of relations."""
    return _kept(spark, _CATALOG, lambda state: state.catalog())


def catalog_manager(spark: SparkSession) -> Any:
    """Return what knows the catalogs of a session, and which of them is the current one."""
    return _kept(spark, _MANAGER, lambda state: state.catalogManager())


def _kept(spark: SparkSession, name: str, find: Callable[[Any], Any]) -> Any:
    """Return an object that stays the same for the life of a session in Python."""
    session: Any = spark
    known = getattr(session, name, None)
    if known is None:
        known = find(session._jsparkSession.sessionState())
        setattr(session, name, known)
    return known


class SessionReference:
    """A weak reference to a classic session.

    The session in the JVM keeps its catalogs and its parser, and py4j keeps a proxy for as long as the JVM does. A
    proxy that kept its session would keep both forever.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.jvm: Jvm = jvm_of(spark)
        self._context = spark.sparkContext
        self._reference = weakref.ref(spark)

    @property
    def is_stopped(self) -> bool:
        """True if the session's context was stopped."""
        return self._context._jsc is None

    @property
    def spark(self) -> SparkSession:
        """The session. If Python code has dropped it, it is the session in which the JVM runs the current query."""
        found = self._reference()
        return found if found is not None else SparkSession(self._context, self._java_session())

    @property
    def java(self) -> Any:
        """The session in the JVM."""
        found: Any = self._reference()
        return found._jsparkSession if found is not None else self._java_session()

    @property
    def state(self) -> Any:
        """The state of the session in the JVM."""
        return self.java.sessionState()

    @property
    def catalog(self) -> Any:
        """The session's catalog of version 1, which has the cache of relations."""
        return session_catalog(self.spark)

    def _java_session(self) -> Any:
        return self.jvm.classic("SparkSession").active()
