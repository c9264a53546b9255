"""Errors of statements as exceptions that a script can handle: Spark looks for a condition and an SQLSTATE in them."""

from __future__ import annotations

from typing import Any

from pyspark_delta.spark.frames.catalyst.error_relay import ExpectedError, relay
from pyspark_delta.spark.frames.catalyst.jvm import Jvm

_EXCEPTION = "org.apache.spark.SparkRuntimeException"
_CONTEXT = "org.apache.spark.QueryContext"
_HELPER = "org.apache.spark.SparkThrowableHelper"
_OTHER = "USER_RAISED_EXCEPTION"  # for the conditions of Delta, before an exception of Spark has an SQLSTATE of its own
_SQLSTATE = "42000"


def as_condition(jvm: Jvm, error: Exception) -> Exception:
    """Return the exception to raise in a callback of the JVM in place of an error of a statement.

    A caller in Python gets the error itself, as with `crossing`. An error without a condition is passed on as there.
    """
    relayed, condition = relay(error), _condition(error)
    if condition is None:
        return relayed
    try:
        return ExpectedError(_exception(jvm, str(relayed), *condition))
    except Exception:  # another Spark has other constructors: scripts cannot handle the error then
        return relayed


def _condition(error: Exception) -> tuple[str, str] | None:
    """Return the condition of an error, and its SQLSTATE; None if it has none."""
    found: Any = error
    if (own := getattr(found, "error_class", None)) is not None:
        return str(own), str(found.sqlstate or _SQLSTATE)
    get_condition = getattr(found, "getCondition", None) or getattr(found, "getErrorClass", None)
    condition = None if get_condition is None else get_condition()
    return None if condition is None else (str(condition), str(found.getSqlState() or _SQLSTATE))


def _exception(jvm: Jvm, text: str, condition: str, sqlstate: str) -> Any:
    constructor = jvm.once("constructor of conditions", lambda: _constructor(jvm))
    some, count = jvm.root.scala.Option.apply, constructor.getParameterCount()
    if count < 6 and not jvm.type(_HELPER).isValidErrorClass(condition):
        condition = _OTHER
    arguments = [text, jvm.none, some(condition), jvm.map({}), jvm.array([], _CONTEXT), some(sqlstate)]
    return constructor.newInstance(jvm.array(arguments[:count]))


def _constructor(jvm: Jvm) -> Any:
    """Return the constructor that takes a text as it is. Others make it from the condition, which may be of Delta."""
    found = jvm.load_class(_EXCEPTION).getDeclaredConstructors()
    [private] = (one for one in found if str(one.getParameterTypes()[1].getName()) == "scala.Option")
    private.setAccessible(True)
    return private
