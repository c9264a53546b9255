"""Python objects that implement Java interfaces, and errors that cross from Python to the JVM and back.

Py4J sends every call of an interface's method to the Python object, calls of default methods included. So an object
implements the default methods that Spark calls. `JavaProxy` runs the others in the JVM.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, NoReturn, ParamSpec, TypeVar

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions import captured

from pyspark_delta.spark.frames.catalyst.error_relay import ExpectedError, RelayedError, relay
from pyspark_delta.spark.frames.catalyst.jvm import Jvm

P = ParamSpec("P")
T = TypeVar("T")

_PREFIX = "pyspark_delta."
_EXPECTED = frozenset(
    (
        "NoSuchTableException",
        "NoSuchNamespaceException",
        "NoSuchDatabaseException",
        "NoSuchFunctionException",
        "NoSuchViewException",
        "NamespaceAlreadyExistsException",
        "NonEmptyNamespaceException",
        "TableAlreadyExistsException",
    )
)
_NO_NAMESPACE = "NoSuchNamespaceException"
_numbers = itertools.count(1)


class JavaProxy:
    """An object that implements Java interfaces.

    A subclass names them in its inner class `Java`. Two proxies are equal only if they are the same object. Spark calls
    `equals` and `hashCode` while it looks up tables.

    A default method that the subclass does not have runs in the JVM, which takes a few milliseconds. It needs the JVM's
    side of this object, `set_java_side`. With it, py4j keeps both sides until `release`, so only objects that live as
    long as their session may have it.
    """

    class Java:
        implements: ClassVar[tuple[str, ...]] = ()

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._java_side: Any = None
        self._number = next(_numbers)

    def set_java_side(self, java_side: Any) -> None:
        """Set the object of the JVM that forwards its calls to this object."""
        self._java_side = java_side

    def release(self) -> None:
        """Forget the object of the JVM, so that both sides can be collected."""
        self._java_side = None

    # ------------------------------------------------------------------------------------------- called by the JVM
    def equals(self, other: Any) -> bool:
        # `other` is the JVM's side of a proxy, or any object of the JVM.
        return other is self or (other is not None and str(other.toString()) == self.toString())

    def hashCode(self) -> int:
        return self._number

    def toString(self) -> str:
        return f"{_PREFIX}{type(self).__name__}@{self._number}"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a default method of an interface. Raises AttributeError if no interface has it."""
        if name.startswith("_") or self._java_side is None:
            raise AttributeError(f"{type(self).__name__} has no method '{name}'")
        return crossing(lambda *arguments: self._call_default(name, arguments))

    def _call_default(self, name: str, arguments: tuple[Any, ...]) -> Any:
        for interface in self.Java.implements:
            for method in self._jvm.load_class(interface).getMethods():
                if method.isDefault() and method.getName() == name and method.getParameterCount() == len(arguments):
                    handler = self._jvm.root.java.lang.reflect.InvocationHandler
                    return handler.invokeDefault(self._java_side, method, self._jvm.array(arguments))
        raise AttributeError(f"{type(self).__name__} has no method '{name}'")


def crossing(call: Callable[P, T]) -> Callable[P, T]:
    """Return the function with errors that reach the caller of Spark, for a method that the JVM calls.

    Py4J passes only the text of an exception to the JVM. So the exception is kept, and `error_relay` returns it to the
    Python code that called Spark. An exception of Java becomes PySpark's exception first.
    """
    return passing(call, lambda _: False)


def forwarding(call: Callable[P, T]) -> Callable[P, T]:
    """Return the function with exceptions of Java that Spark expects from a catalog passed on as they are.

    Spark catches them, as when a table does not exist. Other exceptions cross as with `crossing`.
    """
    return passing(call, lambda java: str(java.getClass().getSimpleName()) in _EXPECTED)


def passing(call: Callable[P, T], passes: Callable[[Any], bool]) -> Callable[P, T]:
    """Return the function with exceptions of Java passed on as they are if `passes` is true for them.

    Other exceptions cross as with `crossing`.
    """

    @wraps(call)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except RelayedError:
            raise
        except Exception as error:
            java = java_exception(error)
            if java is not None and passes(java):
                raise ExpectedError(_declared(java)) from None
            _cross(error)

    return checked


def java_exception(error: Exception) -> Any:
    """Return the exception of Java in an exception of py4j or PySpark; None for any other."""
    return error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)


def _declared(java: Any) -> Any:
    """Return an exception of Java, for a missing schema as the class that the methods of catalogs declare.

    Java replaces a checked exception that a method does not declare by an UndeclaredThrowableException. On Spark 3.5,
    `NoSuchDatabaseException` is no subclass of the declared `NoSuchNamespaceException`.
    """
    kind = java.getClass()
    if kind.getSimpleName() != "NoSuchDatabaseException" or kind.getSuperclass().getSimpleName() == _NO_NAMESPACE:
        return java
    name = f"{kind.getPackageName()}.{_NO_NAMESPACE}"
    return JavaClass(name, java._gateway_client)(java.getErrorClass(), java.messageParameters())


def converted(error: Exception) -> Exception:
    """Return PySpark's exception for an exception of Java; other exceptions unchanged."""
    if not isinstance(error, Py4JJavaError):
        return error
    found = captured.convert_exception(error.java_exception)
    return error if isinstance(found, captured.UnknownException) else found


def _cross(error: Exception) -> NoReturn:
    raise relay(converted(error)) from None
