"""A file system of Hadoop as a store: a file appears complete and durable, or not at all.

Every file is written to a hidden temporary file beside its target and forced to disk (`hsync`), then renamed.
`write_if_absent` renames without overwriting, which the NameNode of HDFS does in one step. Other file systems check and
rename in two steps, or replace the target, so two writers could both win. The store therefore commits only on the file
systems of `_ATOMIC`, and on those that the user lists in the setting `fs.pyspark_delta.atomic.rename`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyspark_delta.errors import FileAlreadyExistsError, FileNotFoundInStoreError, UnsupportedTableError
from pyspark_delta.parallel import map_requests
from pyspark_delta.spark.hadoop.client import HadoopFileSystem, sync
from pyspark_delta.spark.hadoop.connections import current_client
from pyspark_delta.spark.hadoop.failures import translated
from pyspark_delta.spark.hadoop.statuses import ListedPath
from pyspark_delta.storage.contract import TREE, FileStatus
from pyspark_delta.storage.object_file import ObjectInput
from pyspark_delta.storage.paths import file_name, join, parent
from pyspark_delta.storage.sink import Sink
from pyspark_delta.storage.temporary import TEMPORARY_PREFIX, is_temporary, temporary_name

ATOMIC_RENAME = "fs.pyspark_delta.atomic.rename"
"""The setting of Hadoop that lists further schemes, separated by commas, whose rename is atomic and never replaces."""

_ATOMIC = frozenset({"hdfs", "webhdfs", "swebhdfs"})
_SETTINGS = ("fs.", "dfs.", "hadoop.", "ipc.")
_FIRST = 1 << 18  # bytes that hold most files of a log
_BLOCK = 8 << 20  # bytes
_AT_ONCE = 8


class HadoopStore:
    """An `ObjectStore` on one file system of Hadoop; `options` are settings of Hadoop for it."""

    def __init__(self, scheme: str, authority: str, options: Mapping[str, str]) -> None:
        self._scheme = scheme
        self._authority = authority
        given = {key.removeprefix("spark.hadoop."): value for key, value in options.items()}
        self._options = {key: value for key, value in given.items() if key.startswith(_SETTINGS)}
        self._root = f"{scheme}://{authority}/"

    def __repr__(self) -> str:
        return f"HadoopStore({self._root!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (HadoopStore, (self._scheme, self._authority, self._options))

    @contextlib.contextmanager
    def _system(self, action: str, path: str) -> Iterator[HadoopFileSystem]:
        """Give the file system; its failures in the block are raised as the StorageError for `path`."""
        client = current_client()
        with translated(action, path):
            yield client.file_system(self._root, self._options)

    # ------------------------------------------------------------------------------------------------- reading
    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        with self._system("read", path) as system:
            size = system.status(path).size if byte_range is not None else None
            stream = system.open(path)
            try:
                if byte_range is None or size is None:
                    return _read_all(system, stream)
                start, end = byte_range
                if start >= min(end, size):
                    return b""
                stream.seek(start)
                return system.client.receive(stream, min(end, size) - start)
            finally:
                stream.close()

    def status(self, path: str) -> FileStatus:
        with self._system("read", path) as system:
            found = system.status(path)
        if not found.is_file:
            raise FileNotFoundInStoreError(f"'{path}' is a directory, not a file.", path=path)
        return FileStatus(path, found.size, found.modification_time)

    def list_from(self, start: str) -> Iterator[FileStatus]:
        directory, _, first = start.rpartition("/")
        least = first.encode()
        names = ((found.name.encode(), found) for found in self._list(directory) if found.is_file)
        for name, found in sorted(pair for pair in names if pair[0] >= least):
            if not name.startswith(TEMPORARY_PREFIX.encode()):
                yield FileStatus(f"{directory}/{found.name}", found.size, found.modification_time)

    def list_tree(
        self, directory: str, skips: Callable[[str], bool], boundaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        level = [""]
        while level:
            below: list[str] = []
            found = map_requests(lambda one: (one, self._list(directory + "/" + one)), level, _AT_ONCE)
            for prefix, listed in found:
                below += [f"{prefix}{one.name}/" for one in listed if one.is_directory and not skips(one.name)]
                files = [one for one in listed if one.is_file]
                if files:
                    yield _batch(prefix, files)
            level = below

    def _list(self, directory: str) -> list[ListedPath]:
        """Return what a directory holds; nothing if it does not exist."""
        directory = directory.rstrip("/") if directory.rstrip("/").count("/") > 2 else self._root
        try:
            with self._system("list", directory) as system:
                found = system.list_directory(directory)
                if len(found) == 1 and found[0].is_file and found[0].name == file_name(directory):
                    return [] if system.status(directory).is_file else found
                return found
        except FileNotFoundInStoreError:
            return []

    def open_input(self, path: str) -> ObjectInput:
        size = self.status(path).size
        with self._system("read", path) as system:
            return _HadoopInput(self, path, system.open(path), size)

    # ------------------------------------------------------------------------------------------------- writing
    def open_output(self, path: str) -> HadoopOutput:
        return HadoopOutput(self, path)

    def write(self, path: str, data: bytes) -> None:
        with self._temporary(path, data) as (system, temporary):
            system.rename(temporary, path, replace=True)

    def write_if_absent(self, path: str, data: bytes) -> None:
        with self._system("write", path) as system:
            self._require_atomic_rename(system, path)
            if system.exists(path):
                raise FileAlreadyExistsError(f"The file '{path}' already exists.", path=path)
        with self._temporary(path, data) as (system, temporary):
            system.rename(temporary, path, replace=False)

    def copy(self, source: str, target: str) -> None:
        self.status(source)
        temporary = join(parent(target), temporary_name())
        with self._system("write", target) as system, _removed_after(system, temporary):
            with translated("read", source):
                system.copy(source, temporary)
            system.rename(temporary, target, replace=True)

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            with contextlib.suppress(FileNotFoundInStoreError), self._system("delete", path) as system:
                system.delete(path)

    def delete_directory(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundInStoreError), self._system("delete", path) as system:
            system.delete(path, recursive=True)

    def remove_leftovers(self, directory: str, before_ms: int, *, recursive: bool = False) -> int:
        """Remove old temporary files; see `LeavesTemporaryFiles`."""
        removed = 0
        for found in self._list(directory):
            path = join(directory, found.name)
            if found.is_directory and recursive:
                removed += self.remove_leftovers(path, before_ms, recursive=True)
            elif found.is_file and is_temporary(found.name) and found.modification_time < before_ms:
                self.delete([path])
                removed += 1
        return removed

    @contextlib.contextmanager
    def _temporary(self, path: str, data: bytes) -> Iterator[tuple[HadoopFileSystem, str]]:
        """Create a durable hidden file with `data` beside `path`; remove it afterwards if it still exists."""
        temporary = join(parent(path), temporary_name())
        with self._system("write", path) as system, _removed_after(system, temporary):
            stream = system.create(temporary)
            try:
                system.client.send(stream, data)
                sync(stream)
            finally:
                stream.close()
            yield system, temporary

    def _require_atomic_rename(self, system: HadoopFileSystem, path: str) -> None:
        further = [scheme.strip().lower() for scheme in system.setting(ATOMIC_RENAME).split(",")]
        scheme = self._scheme
        if scheme == "viewfs":  # each of its mounts is another file system
            scheme = system.scheme_behind(parent(path))
        if scheme in _ATOMIC or scheme in further:
            return
        raise UnsupportedTableError(
            f"Cannot commit '{path}': it is not known that a rename on '{scheme}:' is atomic and never replaces a "
            "file, so two writers could overwrite each other's commit. Nothing was committed. If the documentation of "
            f"the file system promises both, set spark.hadoop.{ATOMIC_RENAME} to {scheme}.",
            location=path,
            scheme=scheme,
        )


class _HadoopInput(ObjectInput):
    """A file of Hadoop, with read-ahead; reads share one stream of the JVM."""

    def __init__(self, store: HadoopStore, path: str, stream: Any, size: int) -> None:
        self._store, self._path, self._stream = store, path, stream
        self._lock = threading.Lock()
        super().__init__(self._read_range, size)

    def _read_range(self, start: int, end: int) -> memoryview:
        with self._lock, self._store._system("read", self._path) as system:
            self._stream.seek(start)
            return memoryview(system.client.receive(self._stream, end - start))

    def close(self) -> None:
        if not self.closed:
            super().close()
            with self._store._system("read", self._path):
                self._stream.close()


class HadoopOutput(Sink):
    """A sink that writes to a temporary file beside the target."""

    def __init__(self, store: HadoopStore, path: str) -> None:
        self._store, self._path = store, path
        self._temporary = join(parent(path), temporary_name())
        self._waiting = bytearray()
        self._position = 0
        self.closed = False
        with store._system("write", path) as system:
            self._stream = system.create(self._temporary)

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError("the file is closed")
        view = memoryview(data).cast("B")
        self._waiting += view
        self._position += len(view)
        if len(self._waiting) >= _BLOCK:
            self._send()
        return len(view)

    def close(self) -> None:
        """Make the file durable and visible. Raises StorageError; the file then does not exist."""
        if self.closed:
            return
        try:
            self._send()
            with self._store._system("write", self._path) as system:
                sync(self._stream)
                self._stream.close()
                system.rename(self._temporary, self._path, replace=True)
        except BaseException:
            self.discard()
            raise
        self.closed = True

    def discard(self) -> None:
        """Discard the content."""
        self.closed = True
        with contextlib.suppress(Exception), self._store._system("write", self._path) as system:
            with contextlib.suppress(Exception):
                self._stream.close()
            system.delete(self._temporary)

    def _send(self) -> None:
        if self._waiting:
            with self._store._system("write", self._path) as system:
                system.client.send(self._stream, bytes(self._waiting))
            self._waiting.clear()


def _read_all(system: HadoopFileSystem, stream: Any) -> bytes:
    chunks = [system.client.receive(stream, _FIRST)]
    while len(chunks[-1]) in (_FIRST, _BLOCK):
        chunks.append(system.client.receive(stream, _BLOCK))
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _batch(prefix: str, files: list[ListedPath]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([prefix + file.name for file in files], pa.string()),
            pa.array([file.size for file in files], pa.int64()),
            pa.array([file.modification_time for file in files], pa.int64()),
        ],
        schema=TREE,
    )


@contextlib.contextmanager
def _removed_after(system: HadoopFileSystem, temporary: str) -> Iterator[None]:
    """Remove a temporary file if the block fails; a rename has removed it otherwise."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # a leftover file is harmless, and must not hide the failure
            system.delete(temporary)
        raise
