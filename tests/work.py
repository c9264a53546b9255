"""How much work a call makes, counted: lines of the package that run. Times would depend on the machine."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pyspark_delta

_PACKAGE = os.path.dirname(pyspark_delta.__file__) + os.sep


class TooMuchWorkError(AssertionError):
    """More lines ran than are allowed. Work that would never end is stopped by it."""


@contextmanager
def at_most(lines: int) -> Iterator[None]:
    """Let the block run so many lines of the package, in this thread and those that it starts."""
    left = lines

    def in_package(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        return count if frame.f_code.co_filename.startswith(_PACKAGE) else None

    def count(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        nonlocal left
        left -= 1
        if left < 0:
            raise TooMuchWorkError(f"more than {lines} lines ran, the last in {frame.f_code.co_qualname}")
        return count

    before, before_in_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(in_package)
    sys.settrace(in_package)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(before_in_threads)  # type: ignore[arg-type]
