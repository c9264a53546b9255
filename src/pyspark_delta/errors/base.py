"""The root of the errors, and of the warnings."""

from __future__ import annotations

from typing import Any, ClassVar


class DeltaError(Exception):
    """The root of the tree.

    `message` is the sentence without the error class; `facts` holds the values it was made from.
    `getErrorClass`, `getCondition`, `getSqlState` and `getMessageParameters` follow PySpark's exceptions.
    """

    error_class: str = "DELTA_ERROR"
    sqlstate: str = "XXKDS"

    def __init__(
        self, message: str, *, error_class: str | None = None, sqlstate: str | None = None, **facts: Any
    ) -> None:
        super().__init__(message)
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

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        return {name: str(value) for name, value in self.facts.items()}


def rebuild(cls: type[DeltaError], args: tuple[Any, ...], state: dict[str, Any]) -> DeltaError:
    """An error as it was pickled, without its constructor."""
    error = cls.__new__(cls)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


class DeltaWarning(UserWarning):
    """Something was worked around; the result is right, and the message says what to mend."""

    error_class: ClassVar[str] = "DELTA_WARNING"
