"""A store that fails on purpose at the n-th call of a kind, before or after the effect.

A failure *before* is a crash or a refusal without any effect. A failure *after* is a lost response: the file exists,
but the caller does not know that. Run an operation with a fault at every call it makes, and check the result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import pyarrow as pa

from pyspark_delta.errors import StorageError
from pyspark_delta.storage.contract import FileStatus, ObjectStore
from pyspark_delta.storage.counting import KINDS

_Result = TypeVar("_Result")


class SimulatedCrash(BaseException):
    """A simulated end of the process. It derives from BaseException so that no error handler cleans up."""


def connection_lost(path: str) -> BaseException:
    """Return the failure of a store that cannot be reached; the default of `Fault.raises`."""
    return StorageError(f"Cannot reach '{path}': the connection was lost.", path=path)


def crash(path: str) -> BaseException:
    """Return the end of the process at a path; for `Fault(raises=crash)`."""
    return SimulatedCrash(f"crashed at '{path}'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Fail the `nth` call (from 1) of `kind`, or of any kind for "any", whose path contains `path_part`.

    `raises` makes the exception from the path. For "open_input" and "open_output", before means that opening fails,
    after that closing fails: an output file is then complete for "after" and absent for "before".
    """

    kind: str = "any"
    nth: int = 1
    when: Literal["before", "after"] = "before"
    path_part: str = ""
    raises: Callable[[str], BaseException] = connection_lost

    def __post_init__(self) -> None:
        if self.kind != "any" and self.kind not in KINDS:
            raise ValueError(f"unknown kind of call {self.kind!r}; one of {', '.join(KINDS)}, any")


class FaultyStore:
    """Passes calls on to `inner` until `fault` is due; it fails once. `calls` counts the calls that matched."""

    def __init__(self, inner: ObjectStore, fault: Fault) -> None:
        self.inner = inner
        self.fault = fault
        self.calls = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return (FaultyStore, (self.inner, self.fault))

    @property
    def struck(self) -> bool:
        """True if the fault occurred; False if the operation made fewer calls."""
        return self.calls >= self.fault.nth

    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        return self._around("read", path, lambda: self.inner.read(path, byte_range))

    def status(self, path: str) -> FileStatus:
        return self._around("status", path, lambda: self.inner.status(path))

    def list_from(self, start: str) -> Iterator[FileStatus]:
        due = self._due("list", start)
        self._strike(due, "before", start)
        yield from self.inner.list_from(start)
        self._strike(due, "after", start)

    def list_tree(
        self, directory: str, skips: Callable[[str], bool], boundaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        due = self._due("list", directory)
        self._strike(due, "before", directory)
        yield from self.inner.list_tree(directory, skips, boundaries)
        self._strike(due, "after", directory)

    def open_input(self, path: str) -> Any:
        return self._around("open_input", path, lambda: self.inner.open_input(path))

    def open_output(self, path: str) -> Any:
        due = self._due("open_output", path)
        self._strike(due, "before", path)
        output = self.inner.open_output(path)
        return _FailsWhenClosed(output, lambda: self._strike(due, "after", path)) if due else output

    def write(self, path: str, data: bytes) -> None:
        self._around("write", path, lambda: self.inner.write(path, data))

    def write_if_absent(self, path: str, data: bytes) -> None:
        self._around("write_if_absent", path, lambda: self.inner.write_if_absent(path, data))

    def copy(self, source: str, target: str) -> None:
        self._around("copy", target, lambda: self.inner.copy(source, target))

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._around("delete", path, lambda path=path: self.inner.delete([path]))  # type: ignore[misc]

    def delete_directory(self, path: str) -> None:
        self._around("delete", path, lambda: self.inner.delete_directory(path))

    def _around(self, kind: str, path: str, call: Callable[[], _Result]) -> _Result:
        due = self._due(kind, path)
        self._strike(due, "before", path)
        result = call()
        self._strike(due, "after", path)
        return result

    def _due(self, kind: str, path: str) -> bool:
        if self.fault.kind not in ("any", kind) or self.fault.path_part not in path:
            return False
        with self._lock:
            self.calls += 1
            return self.calls == self.fault.nth

    def _strike(self, due: bool, when: str, path: str) -> None:
        if due and self.fault.when == when:
            raise self.fault.raises(path)


class _FailsWhenClosed:
    def __init__(self, inner: Any, strike: Callable[[], None]) -> None:
        self._inner = inner
        self._strike = strike

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def close(self) -> None:
        closed = self._inner.closed
        self._inner.close()
        if not closed:
            self._strike()

    def __enter__(self) -> _FailsWhenClosed:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._inner.discard()
