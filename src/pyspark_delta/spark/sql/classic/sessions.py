"""The session of a proxy, without keeping the session alive."""

from __future__ import annotations

import weakref
from typing import Any

from pyspark.sql import SparkSession

from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of

_CATALOG = "_pyspark_delta_catalog"


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
        found: Any = self._reference()
        if found is None:
            return self.state.catalog()
        known = getattr(found, _CATALOG, None)
        if known is None:
            known = self.state.catalog()
            setattr(found, _CATALOG, known)  # it lives as long as the session in Python
        return known

    def _java_session(self) -> Any:
        return self.jvm.type("org.apache.spark.sql.classic.SparkSession").active()
