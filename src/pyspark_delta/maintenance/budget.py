"""Limits of what one run of a command may read, how long it may take, and how many commits it may make."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.protocol.property_values import parse_size


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run may do at most; None is no limit.

    `bytes` are read from files that are rewritten, as a number or as text such as `50GB`. After `seconds`, no more
    files are begun, and what is done is committed. `commits` limits the number of commits, not the work. The next run
    does what is left.
    """

    bytes: int | str | None = None
    seconds: float | None = None
    commits: int | None = None

    def __post_init__(self) -> None:
        if self.bytes is not None:
            size_of(self.bytes, "bytes")
        if self.seconds is not None and (not _is_number(self.seconds) or not self.seconds > 0):
            raise InvalidOptionError(f"seconds is a number above 0, found {self.seconds!r}.", option="seconds")
        if self.commits is not None and (not isinstance(self.commits, int) or isinstance(self.commits, bool)):
            raise InvalidOptionError(f"commits is a whole number, found {self.commits!r}.", option="commits")
        if self.commits is not None and self.commits < 1:
            raise InvalidOptionError(f"commits is at least 1, found {self.commits}.", option="commits")

    @property
    def size(self) -> int | None:
        """The limit in bytes."""
        return None if self.bytes is None else size_of(self.bytes, "bytes")


UNLIMITED = Budget()
"""No limits."""


def deadline(seconds: float | None) -> Callable[[], bool]:
    """Return a function that is true once so many seconds have passed from now; never, if None."""
    if seconds is None:
        return lambda: False
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def size_of(value: object, name: str) -> int:
    """Return a size in bytes, given as a number or as text such as `256MB`. Raises InvalidOptionError."""
    size = None
    if isinstance(value, str):
        try:
            size = parse_size(value)
        except ValueError:
            size = None
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value
    if size is None or size < 1:
        raise InvalidOptionError(
            f"{name} is a number of bytes above 0, or text such as '256MB', found {value!r}.", option=name
        )
    return size


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
