"""Errors that cross from Python to a streaming query of the JVM, and from the query to the code that waits for it.

Spark ends a query with what a method of its source or sink raises. If Spark itself interrupted the thread, because the
query is stopped, the query ends without an error, provided that it recognizes the exception: a sink must never swallow
it, because to return is to say that the batch is written. An exception that Java declares as checked does not reach
Spark, since the methods of the traits declare none. Py4J's text of a Python exception is a traceback, which hides the
message; and its length can overflow the stack of the query's thread, where Spark searches the text for interruptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from pyspark.errors import StreamingQueryException
from pyspark.errors.exceptions import captured

from pyspark_delta.errors import DeltaError
from pyspark_delta.logs import logger
from pyspark_delta.spark.frames.catalyst.error_relay import ExpectedError, keep, kept, pass_expected
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.proxies import java_exception

if TYPE_CHECKING:

    class _BeforePySpark(Any):  # type: ignore[misc]
        """For type checkers: `super()` is PySpark's class."""
else:
    _BeforePySpark = object


class _HasJvm(Protocol):
    """An object that the JVM calls."""

    _jvm: Jvm


Proxy = TypeVar("Proxy", bound=_HasJvm)
P = ParamSpec("P")
T = TypeVar("T")

_log = logger(__name__)

_INTERRUPTIONS = frozenset(("InterruptedException", "InterruptedIOException", "ClosedByInterruptException"))
_CANCELLED = ("cancelled", "canceled")
_WAITING = "Exception thrown in awaitResult"  # the message of Spark 3.5 around the one of a job
_LONGEST_CHAIN = 20


# ------------------------------------------------------------------------------------------ from Python to the query
def stream_callback(call: Callable[Concatenate[Proxy, P], T]) -> Callable[Concatenate[Proxy, P], T]:
    """Return a method of a proxy, for calls by a streaming query, with its exceptions as Spark expects them.

    An interruption crosses in the form that Spark recognizes. An unchecked exception of Java crosses as it is. Any
    other exception becomes an unchecked one with its text, and is the `__cause__` of what `awaitTermination` raises.
    """

    @wraps(call)
    def checked(self: Proxy, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(self, *args, **kwargs)
        except ExpectedError:
            raise
        except BaseException as error:  # py4j would close the connection of the query's thread for a SystemExit
            raise ExpectedError(_java_error(self._jvm, error)) from None

    return cast("Callable[Concatenate[Proxy, P], T]", checked)


@contextmanager
def function_errors(jvm: Jvm) -> Iterator[None]:
    """Let interruptions, and errors of this package, leave a function of `foreachBatch` as they leave a callback.

    Other exceptions of the function stay as they are, with the traceback of the user's code in their text.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, DeltaError) or _interrupted(jvm, error) is not None:
            raise ExpectedError(_java_error(jvm, error)) from None
        raise


def _java_error(jvm: Jvm, error: BaseException) -> Any:
    """Return the exception of Java to throw in the query's thread. It is unchecked."""
    pass_expected(jvm.gateway)
    text = _interrupted(jvm, error)
    if text is not None:
        return jvm.root.java.io.UncheckedIOException(jvm.root.java.io.InterruptedIOException(text))
    java = _java_of(error)
    if java is not None:
        known = captured.convert_exception(java)
        if not isinstance(known, DeltaError) and _is_unchecked(jvm, java):
            return java
        error = error if isinstance(known, captured.UnknownException) else known
    if not isinstance(error, DeltaError):
        _log.error("A callback of a streaming query failed", exc_info=error)
    return _with_number(jvm, jvm.root.java.lang.RuntimeException(_text(error, java), java), error)


def _text(error: BaseException, java: Any) -> str:
    """Return the message of an error, with the name of its class unless it has a condition such as `[DELTA_...]`."""
    if java is not None and not isinstance(error, DeltaError):
        texts = [str(one.getMessage() or one.toString()) for one in _java_chain(java)]
        return next((text for text in texts if not text.startswith(_WAITING)), texts[0])
    return str(error) if isinstance(error, DeltaError) else f"{type(error).__name__}: {error}"


def _with_number(jvm: Jvm, java: Any, error: BaseException) -> Any:
    """Keep an error for `cause_of`, and return the exception of Java that leads to it."""
    java.addSuppressed(jvm.root.java.lang.RuntimeException(keep(cast(Exception, error))))
    return java


def _interrupted(jvm: Jvm, error: BaseException) -> str | None:
    """Return the text of the exception of Java by which Spark stopped the query; None if it did not."""
    for java in filter(None, map(_java_of, _chain(error))):
        text = _interruption(jvm, java)
        if text is not None:
            return text
    return None


def _interruption(jvm: Jvm, java: Any) -> str | None:
    for one in _java_chain(java):
        kind = str(one.getClass().getSimpleName())
        text = str(one.getMessage())
        if kind in _INTERRUPTIONS:
            return text
        if kind == "SparkException" and any(word in text.lower() for word in _CANCELLED):
            group = jvm.root.org.apache.spark.SparkContext.getOrCreate().getLocalProperty("spark.jobGroup.id")
            if group is not None and str(group) in text:
                return text
    return None


def _is_unchecked(jvm: Jvm, java: Any) -> bool:
    return any(jvm.load_class(f"java.lang.{name}").isInstance(java) for name in ("RuntimeException", "Error"))


def _java_of(error: BaseException) -> Any:
    return java_exception(cast(Exception, error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, then its cause or context, and so on."""
    for _ in range(_LONGEST_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _java_chain(java: Any) -> Iterator[Any]:
    for _ in range(_LONGEST_CHAIN):
        if java is None:
            return
        yield java
        java = java.getCause()


# ------------------------------------------------------------------------------------- from the query to who waits
def cause_of(java: Any) -> Exception | None:
    """Return the exception of Python that ended a query; None if the cause is none of this process.

    `java` is the query's exception in the JVM.
    """
    for one in _java_chain(java):
        for suppressed in one.getSuppressed():
            found = kept(str(suppressed.getMessage()))
            if found is not None:
                return found
        found = kept(str(one.getMessage()))
        if found is not None:
            return found
    return None


@contextmanager
def with_causes() -> Iterator[None]:
    """Set the `__cause__` of a StreamingQueryException that the block raises, if this process knows it."""
    try:
        yield
    except StreamingQueryException as error:
        raise error from cause_of(java_exception(error))


class CausedQuery(_BeforePySpark):
    """PySpark's StreamingQuery; the `__cause__` of its exception is the error of the source or sink, if one failed."""

    def awaitTermination(self, timeout: int | None = None) -> Any:
        with with_causes():
            return super().awaitTermination(timeout)

    def processAllAvailable(self) -> None:
        with with_causes():
            super().processAllAvailable()

    def exception(self) -> StreamingQueryException | None:
        error = cast("StreamingQueryException | None", super().exception())
        if error is not None:
            error.__cause__ = cause_of(self._jsq.exception().get())
        return error
