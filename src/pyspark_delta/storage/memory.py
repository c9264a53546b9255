"""A store in the memory of one process, for tests: `memory://name/...`."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from pyspark_delta.errors import FileAlreadyExistsError, FileNotFoundInStoreError
from pyspark_delta.storage.contract import TREE, FileStatus
from pyspark_delta.storage.sink import Sink


class MemoryStore:
    """An `ObjectStore` of byte strings. Unpickling it in the same process returns the same store, by its name."""

    _stores: ClassVar[dict[str, MemoryStore]] = {}
    _stores_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._lock = threading.Lock()
        self._files: dict[str, tuple[bytes, int]] = {}

    @classmethod
    def named(cls, name: str) -> MemoryStore:
        """Return the store with a name, which is created at first use."""
        with cls._stores_lock:
            return cls._stores.setdefault(name, cls(name))

    def __repr__(self) -> str:
        return f"MemoryStore({self._name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (MemoryStore.named, (self._name,))

    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        data, _ = self._get(path)
        return data if byte_range is None else data[slice(*byte_range)]

    def status(self, path: str) -> FileStatus:
        data, modified = self._get(path)
        return FileStatus(path, len(data), modified)

    def list_from(self, start: str) -> Iterator[FileStatus]:
        prefix = start[: start.rfind("/") + 1]
        with self._lock:
            found = [
                FileStatus(path, len(data), modified)
                for path, (data, modified) in self._files.items()
                if path.startswith(prefix) and path >= start and "/" not in path[len(prefix) :]
            ]
        yield from sorted(found, key=lambda status: status.path)

    def list_tree(
        self, directory: str, skips: Callable[[str], bool], boundaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        prefix = f"{directory}/"
        with self._lock:
            found = [
                {"path": path[len(prefix) :], "size": len(data), "modification_time": modified}
                for path, (data, modified) in self._files.items()
                if path.startswith(prefix) and not any(map(skips, path[len(prefix) :].split("/")[:-1]))
            ]
        if found:
            yield pa.RecordBatch.from_pylist(found, TREE)

    def open_input(self, path: str) -> Any:
        return io.BytesIO(self._get(path)[0])

    def open_output(self, path: str) -> MemoryOutput:
        return MemoryOutput(self, path)

    def write(self, path: str, data: bytes) -> None:
        with self._lock:
            self._files[path] = (bytes(data), _now())

    def write_if_absent(self, path: str, data: bytes) -> None:
        with self._lock:
            if path in self._files:
                raise FileAlreadyExistsError(f"The file '{path}' already exists.", path=path)
            self._files[path] = (bytes(data), _now())

    def copy(self, source: str, target: str) -> None:
        self.write(target, self._get(source)[0])

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            with self._lock:
                self._files.pop(path, None)

    def delete_directory(self, path: str) -> None:
        with self._lock:
            for found in [name for name in self._files if name.startswith(f"{path}/")]:
                del self._files[found]

    def _get(self, path: str) -> tuple[bytes, int]:
        with self._lock:
            found = self._files.get(path)
        if found is None:
            raise FileNotFoundInStoreError(f"The file '{path}' does not exist.", path=path)
        return found


class MemoryOutput(Sink):
    """A binary sink that stores its content when it is closed, and discards it if a `with` block fails."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._buffer = io.BytesIO()

    @property
    def closed(self) -> bool:
        return self._buffer.closed

    def tell(self) -> int:
        return self._buffer.tell()

    def write(self, data: Any) -> int:
        return self._buffer.write(data)

    def close(self) -> None:
        if not self.closed:
            self._store.write(self._path, self._buffer.getvalue())
            self._buffer.close()

    def discard(self) -> None:
        self._buffer.close()


def _now() -> int:
    return time.time_ns() // 1_000_000
