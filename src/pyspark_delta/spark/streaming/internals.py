"""Where releases of Spark differ in the internals of streams: the package of classes, and names of sources and sinks.

Spark 4.2 added names of sources and sinks, Spark 4.1 moved classes to a package, and Spark 4.0 added limits in bytes.
"""

from __future__ import annotations

from typing import Any

from pyspark_delta.spark.conf.classes import java_streaming_name
from pyspark_delta.spark.frames.catalyst.jvm import Jvm

MANAGER = java_streaming_name("StreamingQueryManager")
WRITER = java_streaming_name("DataStreamWriter")
SOURCE_NAME = "org.apache.spark.sql.catalyst.streaming.UserProvided"
_PACKAGES = ("org.apache.spark.sql.execution.streaming.runtime", "org.apache.spark.sql.execution.streaming")
_READ_LIMIT = "org.apache.spark.sql.connector.read.streaming.ReadLimit"
_SINK_NAME = "sinkName"
_WITHOUT_SINK_NAME = 12  # parameters of StreamingQueryManager.startQuery


def runtime(jvm: Jvm, name: str) -> str:
    """Return the full name of a class of Spark's runtime for streams, such as `StreamExecution`."""
    package = next((one for one in _PACKAGES if jvm.has_class(f"{one}.StreamExecution")), _PACKAGES[0])
    return f"{package}.{name}"


def relation_members(jvm: Jvm, name: str | None) -> tuple[Any, ...]:
    """Return the name of a source as a member of its relation; no member if this Spark has no names."""
    if not jvm.has_class(SOURCE_NAME):
        return ()
    if name is None:
        return (getattr(jvm.module(runtime(jvm, "StreamingExecutionRelation")), "apply$default$4")(),)
    return (jvm.type(SOURCE_NAME)(name),)


def has_sink_names(jvm: Jvm) -> bool:
    """Return True if queries have names of sinks."""
    fields = {str(field.getName()) for field in jvm.load_class(WRITER).getDeclaredFields()}
    return _SINK_NAME in fields


def start_query_arguments(jvm: Jvm) -> int:
    """Return the number of arguments that `startQuery` is called with."""
    return _WITHOUT_SINK_NAME + has_sink_names(jvm)


def limit_of_bytes(jvm: Jvm, most: int) -> Any:
    """Return the limit of a batch in bytes; on Spark 3.5, which has none and only passes it on, one of rows."""
    made = jvm.type(_READ_LIMIT)
    return made.maxBytes(most) if jvm.has_method(_READ_LIMIT, "maxBytes") else made.maxRows(most)
