"""A store that counts the calls to another one, for tests that check counts instead of times."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pyspark_delta.storage.contract import FileStatus, ObjectStore

KINDS = ("read", "status", "list", "open_input", "open_output", "write", "write_if_absent", "copy", "delete")


class Counts:
    """Calls and bytes by kind of operation, listed files, and the paths in order. Threads and stores may share it.

    `bytes` counts content that was read or written, also through open files; `files` counts files that were listed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        with self._lock:
            self.calls = dict.fromkeys(KINDS, 0)
            self.bytes = dict.fromkeys(KINDS, 0)
            self.files = 0
            self.log: list[tuple[str, str]] = []

    def add(self, kind: str, path: str, size: int = 0) -> None:
        with self._lock:
            self.calls[kind] += 1
            self.bytes[kind] += size
            self.log.append((kind, path))

    def add_bytes(self, kind: str, size: int) -> None:
        with self._lock:
            self.bytes[kind] += size

    def add_file(self) -> None:
        with self._lock:
            self.files += 1

    @property
    def total_calls(self) -> int:
        return sum(self.calls.values())

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes.values())

    def __repr__(self) -> str:
        used = ", ".join(f"{kind}={self.calls[kind]} ({self.bytes[kind]} B)" for kind in KINDS if self.calls[kind])
        return f"Counts({used}, files={self.files})"


class CountingStore:
    """Passes every call to `inner` and counts it in `counts`, even if it fails."""

    def __init__(self, inner: ObjectStore, counts: Counts | None = None) -> None:
        self.inner = inner
        self.counts = counts if counts is not None else Counts()

    def __reduce__(self) -> tuple[Any, ...]:
        return (CountingStore, (self.inner,))  # another process counts for itself

    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        self.counts.add("read", path)
        data = self.inner.read(path, byte_range)
        self.counts.add_bytes("read", len(data))
        return data

    def status(self, path: str) -> FileStatus:
        self.counts.add("status", path)
        return self.inner.status(path)

    def list_from(self, start: str) -> Iterator[FileStatus]:
        self.counts.add("list", start)
        for status in self.inner.list_from(start):
            self.counts.add_file()
            yield status

    def list_tree(
        self, directory: str, skips: Callable[[str], bool], boundaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        self.counts.add("list", directory)
        return self.inner.list_tree(directory, skips, boundaries)

    def open_input(self, path: str) -> Any:
        self.counts.add("open_input", path)
        return CountingFile(self.inner.open_input(path), lambda size: self.counts.add_bytes("open_input", size))

    def open_output(self, path: str) -> Any:
        self.counts.add("open_output", path)
        return CountingFile(self.inner.open_output(path), lambda size: self.counts.add_bytes("open_output", size))

    def write(self, path: str, data: bytes) -> None:
        self.counts.add("write", path, len(data))
        self.inner.write(path, data)

    def write_if_absent(self, path: str, data: bytes) -> None:
        self.counts.add("write_if_absent", path, len(data))
        self.inner.write_if_absent(path, data)

    def copy(self, source: str, target: str) -> None:
        self.counts.add("copy", target)
        self.inner.copy(source, target)

    def delete(self, paths: Iterable[str]) -> None:
        named = list(paths)
        for path in named:
            self.counts.add("delete", path)
        self.inner.delete(named)

    def delete_directory(self, path: str) -> None:
        self.counts.add("delete", path)
        self.inner.delete_directory(path)


_READS = frozenset({"read", "read1", "read_at", "read_buffer", "readall"})  # pyarrow uses the best method that exists


class CountingFile:
    """A file whose reads and writes report their sizes; everything else is delegated to the wrapped file."""

    def __init__(self, inner: Any, report: Callable[[int], None]) -> None:
        self._inner = inner
        self._report = report

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in _READS:
            return found

        def read(*arguments: Any, **named: Any) -> Any:
            data = found(*arguments, **named)
            self._report(len(data))
            return data

        return read

    def write(self, data: Any) -> Any:
        self._report(memoryview(data).nbytes)
        return self._inner.write(data)

    def __enter__(self) -> CountingFile:
        self._inner.__enter__()
        return self

    def __exit__(self, *details: Any) -> Any:
        return self._inner.__exit__(*details)
