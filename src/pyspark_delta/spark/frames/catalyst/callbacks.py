"""The connections on which threads of the JVM call Python."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError

from pyspark_delta.spark.frames.catalyst.jvm import Jvm

P = ParamSpec("P")
T = TypeVar("T")

_PINNED = "py4j.PythonClient"
_served = threading.local()


def called_by_jvm(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method of an object with `_jvm` that releases the connections of threads that have ended."""

    @wraps(method)
    def served(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not hasattr(_served, "before"):
            _served.before = True
            _release_connections(self._jvm)
        return method(self, *args, **kwargs)

    return served


def _release_connections(jvm: Jvm) -> None:
    """Let the JVM's garbage collector close the connections that are idle.

    Py4J opens a connection for each thread of the JVM that calls Python, and a thread of this process serves it. Spark
    has such threads for the stages of queries, and ends them when they are idle. Py4J keeps their connections in a
    list until the JVM ends, so each process had one more thread and socket for each. A new list takes its place when a
    new thread calls. Threads themselves refer to their connections weakly, and open another one where it is closed; a
    call that is running holds its own.
    """
    client = JavaObject("GATEWAY_SERVER", jvm.gateway._gateway_client).getCallbackClient()
    kind = client.getClass()
    if kind.getName() != _PINNED:
        return  # Py4J closes idle connections itself if threads have none of their own
    with suppress(Py4JJavaError):  # a release of Py4J without this field
        connections = kind.getSuperclass().getDeclaredField("connections")
        connections.setAccessible(True)
        connections.set(client, jvm.root.java.util.ArrayDeque())
