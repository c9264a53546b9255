"""The contract of engines: a result, or the reason why an engine cannot run a statement.

A statement asks its engines in order and takes the first result. Only the answer CannotRun makes it ask the next
engine. A fault is an exception and ends the statement.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from pyspark_delta.errors import ComputationError, DeltaError, InvalidOperationError, UnsupportedDataFileError

T = TypeVar("T")
EngineT = TypeVar("EngineT")

ARROW, SPARK = "Arrow", "Spark"
DRIVER, TASKS, NONE = "Arrow in the driver", "Arrow in tasks", "none"
"""The names of engines, as plans, metrics and the log of the package show them; NONE if no row is read."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CannotRun:
    """The engine does not run the statement and leaves nothing behind. `reason` is a clause without a full stop.

    `error` is the error for the caller if no other engine runs the statement, such as a violated constraint.
    """

    reason: str
    error: DeltaError | None = None


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """A result, the name of the engine that made it, and the reasons of the engines that could not."""

    value: T
    engine: str
    declined: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def reason(self) -> str:
        """Why other engines did not run; empty if none was asked before."""
        return "; ".join(f"{engine}: {reason}" for engine, reason in self.declined.items())


class RowEngine(Protocol[T]):
    """An engine for the rows of one attempt of a statement, on one version of a table."""

    def find(self) -> Done[T] | CannotRun:
        """Find the rows that the statement changes, without writing anything."""

    def change(self) -> Done[T] | CannotRun:
        """Find the rows, and write their new values and changes if the statement has some."""


class EngineDeclined(DeltaError):
    """Raised within an engine, also in its tasks, for what it leaves to the next engine. It never leaves the engine.

    `error` is that of `CannotRun`.
    """

    def __init__(self, reason: str, error: DeltaError | None = None) -> None:
        super().__init__(reason)
        self.error = error


def answer(run: Callable[[], Done[T] | CannotRun]) -> Done[T] | CannotRun:
    """Return the answer of an engine that computes with Arrow.

    It cannot run what it declines, a value that Arrow cannot compute exactly, and a file that only Spark can read.
    """
    try:
        return run()
    except EngineDeclined as declined:
        return CannotRun(declined.message.removesuffix("."), declined.error)
    except (ComputationError, UnsupportedDataFileError) as error:
        return CannotRun(error.message.removesuffix("."))


def first_done(
    statement: str, engines: Iterable[tuple[str, EngineT]], ask: Callable[[EngineT], Done[T] | CannotRun]
) -> Done[T]:
    """Ask engines in order and return the first result; log which engine ran, and why others could not.

    If no engine can run the statement, raises the error of the last one that has an error for the caller, else
    InvalidOperationError with the reasons of all.
    """
    declined: dict[str, str] = {}
    failure: DeltaError | None = None
    for name, engine in engines:
        found = ask(engine)
        if isinstance(found, Done):
            done = replace(found, declined=MappingProxyType(declined))
            _log.info("%s: %s%s", statement, done.engine, f" ({done.reason})" if done.reason else "")
            return done
        declined[name], failure = found.reason, found.error or failure
    if failure is not None:
        raise failure
    reasons = "; ".join(f"{engine}: {reason}" for engine, reason in declined.items())
    raise InvalidOperationError(
        f"No engine that was given can run this {statement}. {reasons}. Nothing was committed. Spark runs every "
        "statement: use DeltaTable in a session with pyspark-delta.",
        error_class="DELTA_NO_ENGINE_FOR_STATEMENT",
        sqlstate="0A000",
        reasons=declined,
    )
