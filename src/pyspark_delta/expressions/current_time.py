"""The current time of a statement: one moment for all its functions, as in a query of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

_moment: ContextVar[datetime | None] = ContextVar("moment", default=None)


@contextmanager
def one_moment() -> Iterator[None]:
    """Let the current time stand still inside; an outer block keeps its time."""
    if _moment.get() is not None:
        yield
        return
    token = _moment.set(datetime.now(UTC))
    try:
        yield
    finally:
        _moment.reset(token)


def current_time() -> datetime:
    """Return the current time, in UTC."""
    return _moment.get() or datetime.now(UTC)
