"""Which user-defined types a session can make objects of; columns of all others are read as what their values are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from pyspark import SparkContext
from pyspark.sql.types import UserDefinedType

from pyspark_delta.schema.types import DataType

_PYTHON_CLASS, _JVM_CLASS = "pyClass", "class"
_OF_SPARK = "org.apache.spark."


def is_loadable(annotation: Mapping[str, str | None]) -> bool:
    """Whether PySpark finds the Python class of a user-defined type, and the session its JVM class, if it has one.

    PySpark calls what goes by that name, so it must be such a class and nothing else. Of a JVM in another process only
    Spark's own classes are known to be there. Types without a Python class are not loadable: PySpark has no schema with
    them.
    """
    python, jvm = annotation.get(_PYTHON_CLASS), annotation.get(_JVM_CLASS)
    if python is None or not _is_in_python(python):
        return False
    return jvm is None or jvm.startswith(_OF_SPARK) or _is_in_jvm(jvm)


def is_opaque(data_type: DataType) -> bool:
    """Whether Spark is to read values of the type as objects of a user-defined one."""
    return data_type.annotation is not None and is_loadable(data_type.annotation)


@cache
def _is_in_python(name: str) -> bool:
    module, _, member = name.rpartition(".")
    if not module:
        return False
    try:
        found = getattr(import_module(module), member, None)
    except Exception:  # whatever the code of the user's module does
        return False
    return isinstance(found, type) and issubclass(found, UserDefinedType)


def _is_in_jvm(name: str) -> bool:
    context: Any = SparkContext._active_spark_context
    return context is not None and bool(context._jvm.org.apache.spark.util.Utils.classIsLoadable(name))
