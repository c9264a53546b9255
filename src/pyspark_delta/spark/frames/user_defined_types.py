"""The user-defined types that a session can instantiate; columns of others are read as their storage types.

The schema of a table names the classes, so the writer of the table chose the names. A name must not make this process
run code. So a Python class is used only if its module is already imported or the user allows the module by a setting,
and a class of the JVM is inspected without being initialized.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import UserDefinedType

from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructType

ALLOWED_MODULES = "spark.pyspark_delta.userDefinedTypes.modules"
"""The session setting with names of Python modules, separated by commas.

These modules are imported if the schema of a table names them.
"""

_PYTHON_CLASS, _JVM_CLASS, _PICKLED_CLASS = "pyClass", "class", "serializedClass"
_MODULES_OF_SPARK = frozenset(["pyspark.ml.linalg", "pyspark.mllib.linalg"])
_CLASSES_OF_SPARK = frozenset(
    f"org.apache.spark.{package}.linalg.{name}" for package in ("ml", "mllib") for name in ("VectorUDT", "MatrixUDT")
)


def is_loadable(annotation: Mapping[str, str | None]) -> bool:
    """Return True if PySpark finds the Python class of a user-defined type, and the JVM its JVM class, if it has one.

    Of a JVM in another process, only Spark's own classes are known. Types without a Python class are not loadable:
    PySpark cannot represent them in a schema.
    """
    python, jvm = annotation.get(_PYTHON_CLASS), annotation.get(_JVM_CLASS)
    if python is None or _python_class(python) is None:
        return False
    return jvm is None or jvm in _CLASSES_OF_SPARK or _is_in_jvm(jvm)


def with_loadable_types(data_type: DataType) -> DataType:
    """Return the type with the annotations of loadable types only, at every level.

    Values of other user-defined types are read as their storage types.
    """
    annotation = data_type.annotation
    if annotation is not None and is_loadable(annotation):
        return replace(data_type, annotation=without_code(annotation))
    data_type = replace(data_type, annotation=None)
    match data_type:
        case StructType(fields):
            return replace(data_type, fields=tuple(replace(f, type=with_loadable_types(f.type)) for f in fields))
        case ArrayType(element):
            return replace(data_type, element_type=with_loadable_types(element))
        case MapType(key, value):
            return replace(data_type, key_type=with_loadable_types(key), value_type=with_loadable_types(value))
        case _:
            return data_type


def without_code(annotation: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the annotation of a loadable type with the pickled class of this process instead of the table's."""
    found = dict(annotation)
    if _PICKLED_CLASS in found:
        own = _python_class(str(found[_PYTHON_CLASS]))
        found[_PICKLED_CLASS] = None if own is None else own().jsonValue().get(_PICKLED_CLASS)
    return found


def _python_class(name: str) -> type[UserDefinedType] | None:
    module, _, member = name.rpartition(".")
    loaded = sys.modules.get(module)
    if loaded is None and _may_import(module):
        try:
            loaded = import_module(module)
        except Exception:  # the code of the user's module may raise anything
            return None
    found = None if loaded is None else vars(loaded).get(member)
    if isinstance(found, type) and issubclass(found, UserDefinedType) and found is not UserDefinedType:
        return found
    return None


def _may_import(module: str) -> bool:
    if module in _MODULES_OF_SPARK:
        return True
    session: Any = SparkSession.getActiveSession()
    allowed = "" if session is None else str(session.conf.get(ALLOWED_MODULES, ""))
    return module in (name.strip() for name in allowed.split(","))


def _is_in_jvm(name: str) -> bool:
    """Return True if a class in this process's JVM is a user-defined type. Spark calls the constructor of the class."""
    from py4j.protocol import Py4JError

    context: Any = SparkContext._active_spark_context
    if context is None:
        return False
    java = context._jvm
    try:
        loader = java.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
        of_spark = java.java.lang.Class.forName("org.apache.spark.sql.types.UserDefinedType", False, loader)
        return bool(of_spark.isAssignableFrom(java.java.lang.Class.forName(name, False, loader)))
    except Py4JError:
        return False
