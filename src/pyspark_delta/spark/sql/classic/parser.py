"""A parser around Spark's own: statements that change Delta tables become calls of Python, everything else stays.

Spark parses every text of SQL with the parser of the session: `spark.sql`, callers in the JVM, EXECUTE IMMEDIATE,
scripts, and the texts of views.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException

from pyspark_delta.spark.conf.sessions import session_key
from pyspark_delta.spark.frames.catalyst.error_relay import RelayedError, install
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.sql.classic.call import Procedures
from pyspark_delta.spark.sql.classic.proxies import JavaProxy, crossing
from pyspark_delta.spark.sql.classic.translation import Translator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
T = TypeVar("T")

_lock = RLock()
_installed: dict[str, list[tuple[Any, Any, Any]]] = {}  # by session: field, owner, and the value before

# Statements that begin with one of these words change nothing.
_QUERIES = frozenset(("SELECT", "VALUES", "SET", "USE"))


class _JavaError(RelayedError, Py4JJavaError):  # type: ignore[misc]
    """An error of Spark's parser, on its way back to the JVM as itself."""


def _parsing(call: Callable[P, T]) -> Callable[P, T]:
    """Return the method with errors of Spark's parser that reach the JVM unchanged; other errors cross as ever.

    The methods of a parser declare their exceptions, so that a script, or a caller in the JVM, can handle them.
    """
    crossed = crossing(call)

    @wraps(call)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return crossed(*args, **kwargs)
        except RelayedError as error:
            cause = error.__context__
            origin = getattr(cause, "_origin", None) if isinstance(cause, PySparkException) else None
            origin = cause.java_exception if isinstance(cause, Py4JJavaError) else origin
            if origin is None or "org.apache.spark.sql.catalyst.parser." not in str(origin.getClass().getName()):
                raise
            raise _JavaError("", origin) from None

    return checked


class DeltaParser(JavaProxy):
    """Spark's parser with the statements of Delta."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = ("org.apache.spark.sql.catalyst.parser.ParserInterface",)

    def __init__(self, spark: SparkSession, jvm: Jvm, before: Any) -> None:
        super().__init__(jvm)
        self._before = before
        self._translator = Translator(spark, Procedures(jvm))

    @_parsing
    def parsePlan(self, text: str) -> Any:
        return self._translated(text, self._before.parsePlan(text))

    @_parsing
    def parsePlanWithParameters(self, text: str, parameters: Any) -> Any:
        return self._translated(text, self._before.parsePlanWithParameters(text, parameters))

    def _translated(self, text: str, plan: Any) -> Any:
        if text[:7].strip().upper() in _QUERIES:
            return plan
        return self._translator.translated(plan)

    # -------------------------------------------------------------------------------- what Spark's parser does alone
    @_parsing
    def parseQuery(self, text: str) -> Any:
        return self._before.parseQuery(text)

    @_parsing
    def parseExpression(self, text: str) -> Any:
        return self._before.parseExpression(text)

    @_parsing
    def parseTableIdentifier(self, text: str) -> Any:
        return self._before.parseTableIdentifier(text)

    @_parsing
    def parseFunctionIdentifier(self, text: str) -> Any:
        return self._before.parseFunctionIdentifier(text)

    @_parsing
    def parseMultipartIdentifier(self, text: str) -> Any:
        return self._before.parseMultipartIdentifier(text)

    @_parsing
    def parseTemporalTableIdentifier(self, text: str) -> Any:
        return self._before.parseTemporalTableIdentifier(text)

    @_parsing
    def parseRoutineParam(self, text: str) -> Any:
        return self._before.parseRoutineParam(text)

    @_parsing
    def parseTableSchema(self, text: str) -> Any:
        return self._before.parseTableSchema(text)

    @_parsing
    def parseDataType(self, text: str) -> Any:
        return self._before.parseDataType(text)

    @_parsing
    def splitStatements(self, text: str) -> Any:
        return self._before.splitStatements(text)


def install_parser(spark: SparkSession) -> None:
    """Put the parser into a classic session, in place of Spark's. Doing so again changes nothing.

    Raises AttributeError if this Spark has other internals.
    """
    with _lock:
        if session_key(spark) in _installed:
            return
        jvm, java = jvm_of(spark), spark._jsparkSession
        state = java.sessionState()
        owners = [(state, "sqlParser"), (state.catalog(), "parser")]
        fields = [(jvm.field(owner, name), owner) for owner, name in owners]
        before = [(field, owner, field.get(owner)) for field, owner in fields]
        install()
        jvm.gateway.python_parameters.propagate_java_exceptions = True  # those of the parser, see `_parsing`
        parser = DeltaParser(spark, jvm, state.sqlParser())
        for field, owner in fields:
            field.set(owner, parser)
        _installed[session_key(spark)] = before


def remove_parser(spark: SparkSession) -> None:
    """Put Spark's own parser back into a session."""
    with _lock:
        for field, owner, before in _installed.pop(session_key(spark), ()):
            field.set(owner, before)
