"""The base classes of errors and warnings."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any, ClassVar


class _WithoutPySpark(Exception):
    """The base of DeltaError until PySpark is imported.

    Python can replace the bases of a class only by bases of the same layout, which Exception itself does not have.
    """


class DeltaError(_WithoutPySpark):
    """The root of the tree; a `pyspark.errors.PySparkException` in every process that has imported PySpark.

    `message` is the sentence without the error class; `facts` holds the values in it. The methods are those of
    PySpark's exceptions. `pyspark_class` names the exception of PySpark that `except` clauses of programs written for
    delta-spark name for this error.
    """

    error_class: str = "DELTA_ERROR"
    sqlstate: str = "XXKDS"
    pyspark_class: ClassVar[str] = "PySparkException"

    def __init_subclass__(cls) -> None:
        derive_from_pyspark(cls)

    def __new__(cls, *args: Any, **facts: Any) -> DeltaError:
        for one in reversed(cls.__mro__):  # PySpark may have been imported after this module
            if issubclass(one, DeltaError):
                derive_from_pyspark(one)
        return super().__new__(cls, *args)

    def __init__(
        self, message: str, *, error_class: str | None = None, sqlstate: str | None = None, **facts: Any
    ) -> None:
        Exception.__init__(self, message)  # PySparkException would look the error class up in Spark's list
        self.message = message
        self.facts = facts
        if error_class is not None:
            self.error_class = error_class
        if sqlstate is not None:
            self.sqlstate = sqlstate

    def __str__(self) -> str:
        return f"[{self.error_class}] {self.message} SQLSTATE: {self.sqlstate}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (rebuild, (type(self), self.args, self.__dict__))

    def getErrorClass(self) -> str:  # noqa: N802 - PySpark's name
        return self.error_class

    def getCondition(self) -> str:  # noqa: N802 - PySpark's name
        return self.error_class

    def getSqlState(self) -> str:  # noqa: N802 - PySpark's name
        return self.sqlstate

    def getMessage(self) -> str:  # noqa: N802 - PySpark's name
        return str(self)

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        return {name: str(value) for name, value in self.facts.items()}

    def getQueryContext(self) -> list[Any]:  # noqa: N802 - PySpark's name
        return []

    def getBreakingChangeInfo(self) -> None:  # noqa: N802 - PySpark's name
        return None


def derive_from_pyspark(cls: type[DeltaError] = DeltaError) -> None:
    """Make a class a subclass of its `pyspark_class` if this process has imported PySpark; never import it.

    An `except` clause compares real base classes: an ABC registration would not be enough.
    """
    base = getattr(sys.modules.get("pyspark.errors"), cls.pyspark_class, None)
    if base is None or issubclass(cls, base):
        return
    own = tuple(one for one in cls.__bases__ if one is not _WithoutPySpark)
    with suppress(TypeError):  # an exception of another layout: errors work without it
        setattr(cls, "__bases__", (*own, base))  # noqa: B010 - read-only for type checkers


derive_from_pyspark()


def rebuild(cls: type[DeltaError], args: tuple[Any, ...], state: dict[str, Any]) -> DeltaError:
    """Restore a pickled error without its constructor."""
    error = cls.__new__(cls)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


class DeltaWarning(UserWarning):
    """A problem did not affect the result; the message says what to repair."""

    error_class: ClassVar[str] = "DELTA_WARNING"
