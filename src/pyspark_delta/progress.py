"""Progress of long work: a reading or writing function reports steps, and an operation decides who sees them.

`operation` opens an operation in the calling thread. Code below it begins a step with `begin`, adds what is done, and
shows it. Steps are shown in the thread that called the operation; other threads only add to them. Outside of an
operation, and if nobody looks, a step does nothing and costs nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
R = TypeVar("R")

VARIABLE = "PYSPARK_DELTA_PROGRESS"
DELAY_SECONDS = 2.0  # an operation that ends sooner shows no bar


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an operation is: `done` of `total` units of a phase, `seconds` after the operation began.

    `phase` is a text such as `Read files`, and `unit` is `files` or `rows`. `total` is None if it is not known.
    """

    phase: str
    done: int
    total: int | None
    unit: str
    seconds: float


ShowProgress: TypeAlias = Callable[[Progress], object] | Literal[False] | None
"""The parameter `progress` of methods: None shows a bar in a terminal or a notebook, False shows nothing. A function is
called with each `Progress`, in the calling thread; if it raises an exception, the operation is cancelled."""


class _Operation:
    def __init__(self, show: Callable[[Progress], object]) -> None:
        self._show = show
        self._start = time.monotonic()

    def show(self, phase: str, done: int, total: int | None, unit: str) -> None:
        self._show(Progress(phase, done, total, unit, time.monotonic() - self._start))


_current: ContextVar[_Operation | None] = ContextVar("pyspark_delta_progress", default=None)


class Step(Protocol):
    """One phase of an operation."""

    def counting(self, produce: Callable[[T], Iterable[R]], size: Callable[[T], int]) -> Callable[[T], Iterable[R]]:
        """Return `produce` that adds the size of its argument once it has yielded everything; for any thread."""

    def shown(self, items: Iterator[T], size: Callable[[T], int] | None = None) -> Iterator[T]:
        """Yield the items; add their sizes, if given, and show the progress after each of them."""

    def add(self, amount: int) -> None:
        """Add what is done, and show it."""


class _Off:
    def counting(self, produce: Callable[[T], Iterable[R]], size: Callable[[T], int]) -> Callable[[T], Iterable[R]]:
        return produce

    def shown(self, items: Iterator[T], size: Callable[[T], int] | None = None) -> Iterator[T]:
        return items

    def add(self, amount: int) -> None:
        return None


class _On:
    def __init__(self, operation: _Operation, phase: str, total: int | None, unit: str) -> None:
        self._operation, self._phase, self._total, self._unit = operation, phase, total, unit
        self._lock = threading.Lock()
        self._done = 0

    def counting(self, produce: Callable[[T], Iterable[R]], size: Callable[[T], int]) -> Callable[[T], Iterable[R]]:
        def counted(unit: T) -> Iterator[R]:
            yield from produce(unit)
            self._count(size(unit))

        return counted

    def shown(self, items: Iterator[T], size: Callable[[T], int] | None = None) -> Iterator[T]:
        try:
            self._show()
            for item in items:
                yield item
                if size is not None:
                    self._count(size(item))
                self._show()
            self._show()
        finally:
            close = getattr(items, "close", None)  # the threads of a generator end before the error is raised
            if close is not None:
                close()

    def add(self, amount: int) -> None:
        self._count(amount)
        self._show()

    def _count(self, amount: int) -> None:
        with self._lock:
            self._done += amount

    def _show(self) -> None:
        self._operation.show(self._phase, self._done, self._total, self._unit)


_OFF = _Off()


def begin(phase: str, total: int | None, unit: str) -> Step:
    """Begin a step of the operation of this thread. `total` is the number of units, None if it is not known."""
    operation = _current.get()
    return _OFF if operation is None else _On(operation, phase, total, unit)


@contextmanager
def operation(show: ShowProgress = None) -> Iterator[None]:
    """Show the steps that begin in the block. An operation inside another one shows its steps with those of the outer.

    Do not yield to callers from the block: its operation would be theirs too. Raises TypeError if `show` is neither
    None, nor False, nor a function.
    """
    if _current.get() is not None and show is None:
        yield
        return
    if show is not None and show is not False and not callable(show):
        raise TypeError(f"progress is None, False or a function that gets a Progress, found {show!r}.")
    bar = _Bar() if show is None and _is_watched() else None
    watcher = bar if bar is not None else show
    token = _current.set(_Operation(watcher) if callable(watcher) else None)
    try:
        yield
    finally:
        _current.reset(token)
        if bar is not None:
            bar.close()


@contextmanager
def quietly() -> Iterator[None]:
    """Show no step that begins in the block: it follows the commit, or leaves files behind if it is cancelled."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def _is_watched() -> bool:
    """True if somebody may look at a bar: a terminal or a notebook, but no test and no CI job."""
    if os.environ.get(VARIABLE) == "0" or "CI" in os.environ or "PYTEST_CURRENT_TEST" in os.environ:
        return False
    return _is_terminal() or _is_notebook()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _is_notebook() -> bool:
    if "ipykernel" not in sys.modules:
        return False
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class _Bar:
    """A bar of rich, which appears after two seconds. Without rich, nothing appears."""

    def __init__(self) -> None:
        self._bars: Any = None
        self._task: Any = None
        self._phase = ""
        self._is_missing = False

    def __call__(self, progress: Progress) -> None:
        if progress.seconds < DELAY_SECONDS or self._is_missing:
            return
        if self._bars is None and not self._open():
            return
        if self._phase != progress.phase:
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._phase = progress.phase
            self._task = self._bars.add_task(progress.phase, total=progress.total, unit=progress.unit)
        self._bars.update(self._task, completed=progress.done, total=progress.total)

    def close(self) -> None:
        if self._bars is not None:
            self._bars.stop()

    def _open(self) -> bool:
        try:
            from rich import progress as rich
            from rich.console import Console
        except ImportError:
            self._is_missing = True
            return False
        columns = (
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TextColumn("{task.fields[unit]}"),
            rich.TimeElapsedColumn(),
        )
        self._bars = rich.Progress(*columns, console=Console(stderr=True), transient=True)
        self._bars.start()
        return True
