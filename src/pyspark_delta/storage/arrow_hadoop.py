"""A file system of Hadoop as a store without Spark, through PyArrow and libhdfs, which runs a JVM in this process.

PyArrow's `move` deletes a target that exists and tries again, so it cannot publish a commit: two writers would both
win. `LibHdfs` calls the rename of libhdfs itself, which never replaces a file on HDFS.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.fs

from pyspark_delta.errors import (
    FileAlreadyExistsError,
    FileNotFoundInStoreError,
    MissingDependencyError,
    PermissionDeniedError,
    StorageError,
    UnsupportedTableError,
)
from pyspark_delta.storage.contract import TREE, FileStatus
from pyspark_delta.storage.libhdfs import LibHdfs
from pyspark_delta.storage.paths import join, parent
from pyspark_delta.storage.sink import Sink
from pyspark_delta.storage.temporary import TEMPORARY_PREFIX, is_temporary, temporary_name

_LAST = "\uffff"  # libhdfs passes names to Java in its modified UTF-8
_HINT = (
    "Open the table in a Spark session; or, where PySpark is installed, `import pyspark_delta.spark` first, which has "
    "Hadoop's client; or install Hadoop and set HADOOP_HOME, JAVA_HOME and CLASSPATH (`hadoop classpath --glob`), so "
    "that PyArrow finds libhdfs."
)


class ArrowHadoopStore:
    """An `ObjectStore` on one file system of Hadoop; `options` that begin with `fs.` or `dfs.` are its settings."""

    def __init__(self, scheme: str, authority: str, options: Mapping[str, str]) -> None:
        self._scheme, self._authority, self._options = scheme, authority, dict(options)
        self._root = f"{scheme}://{authority}"

    def __repr__(self) -> str:
        return f"ArrowHadoopStore({self._root!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (ArrowHadoopStore, (self._scheme, self._authority, self._options))

    @cached_property
    def _system(self) -> Any:
        _require_classpath(self._root)
        host, port = _endpoint(self._scheme, self._authority)
        settings = {key: value for key, value in self._options.items() if key.startswith(("fs.", "dfs.", "hadoop."))}
        try:
            return pyarrow.fs.HadoopFileSystem(host, port, extra_conf=settings)
        except OSError as error:
            raise MissingDependencyError(f"Cannot open '{self._root}': {_first_line(error)} {_HINT}") from error

    # ------------------------------------------------------------------------------------------------- reading
    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        with self.open_input(path) as file, _translated("read", path):
            if byte_range is None:
                return bytes(file.read())
            start, end = byte_range
            size = file.size()
            return bytes(file.read_at(min(end, size) - start, start)) if start < min(end, size) else b""

    def status(self, path: str) -> FileStatus:
        with _translated("read", path):
            found = self._system.get_file_info(self._key(path))
        if found.type == pyarrow.fs.FileType.NotFound:
            raise FileNotFoundInStoreError(f"The file '{path}' does not exist.", path=path)
        if not found.is_file:
            raise FileNotFoundInStoreError(f"'{path}' is a directory, not a file.", path=path)
        return FileStatus(path, found.size, _milliseconds(found))

    def list_from(self, start: str) -> Iterator[FileStatus]:
        directory, _, first = start.rpartition("/")
        for found in sorted(self._list(directory), key=lambda one: one.base_name.encode()):
            name = found.base_name
            if found.is_file and name.encode() >= first.encode() and not name.startswith(TEMPORARY_PREFIX):
                yield FileStatus(f"{directory}/{name}", found.size, _milliseconds(found))

    def list_tree(
        self, directory: str, skips: Callable[[str], bool], boundaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        waiting = [""]
        while waiting:
            prefix = waiting.pop()
            listed = self._list(f"{directory}/{prefix}")
            waiting += [f"{prefix}{one.base_name}/" for one in listed if not one.is_file and not skips(one.base_name)]
            files = [
                {"path": prefix + one.base_name, "size": one.size, "modification_time": _milliseconds(one)}
                for one in listed
                if one.is_file
            ]
            if files:
                yield pa.RecordBatch.from_pylist(files, TREE)

    def _list(self, directory: str) -> list[Any]:
        selector = pyarrow.fs.FileSelector(self._key(directory).rstrip("/") or "/", allow_not_found=True)
        with _translated("list", directory):
            return list(self._system.get_file_info(selector))

    def open_input(self, path: str) -> Any:
        self.status(path)  # its error tells directories and missing files apart
        with _translated("read", path):
            return self._system.open_input_file(self._key(path))

    # ------------------------------------------------------------------------------------------------- writing
    def open_output(self, path: str) -> _Output:
        return _Output(self, path)

    def write(self, path: str, data: bytes) -> None:
        with self.open_output(path) as sink:
            sink.write(data)

    def write_if_absent(self, path: str, data: bytes) -> None:
        if self._scheme != "hdfs":
            raise UnsupportedTableError(
                f"Cannot commit '{path}': without Spark, tables are written on hdfs: only. "
                "Nothing was committed. Write in a Spark session.",
                location=path,
                scheme=self._scheme,
            )
        if self._exists(path):
            raise FileAlreadyExistsError(f"The file '{path}' already exists.", path=path)
        temporary = join(parent(path), temporary_name())
        try:
            with _translated("write", path), self._system.open_output_stream(self._key(temporary)) as sink:
                sink.write(data)
            self._rename(temporary, path)
        except BaseException:
            with contextlib.suppress(Exception):
                self.delete([temporary])
            raise

    def _rename(self, temporary: str, path: str) -> None:
        try:
            self._library.rename(self._key(temporary), self._key(path))
        except OSError as error:
            if self._exists(path):
                raise FileAlreadyExistsError(f"The file '{path}' already exists.", path=path) from error
            raise _translate("write", path, error) from error

    @cached_property
    def _library(self) -> LibHdfs:
        assert self._system is not None  # PyArrow has loaded libhdfs and its JVM
        return LibHdfs(*_endpoint(self._scheme, self._authority), self._options)

    def _exists(self, path: str) -> bool:
        with _translated("write", path):
            return bool(self._system.get_file_info(self._key(path)).type != pyarrow.fs.FileType.NotFound)

    def copy(self, source: str, target: str) -> None:
        with self.open_input(source) as file, self.open_output(target) as sink:
            shutil.copyfileobj(file, sink, 1 << 20)

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            if self._exists(path):
                with contextlib.suppress(FileNotFoundInStoreError), _translated("delete", path):
                    self._system.delete_file(self._key(path))

    def delete_directory(self, path: str) -> None:
        if self._exists(path):
            with contextlib.suppress(FileNotFoundInStoreError), _translated("delete", path):
                self._system.delete_dir(self._key(path))

    def remove_leftovers(self, directory: str, before_ms: int, *, recursive: bool = False) -> int:
        """Remove old temporary files; see `LeavesTemporaryFiles`."""
        removed = 0
        for found in self._list(directory):
            path = join(directory, found.base_name)
            if not found.is_file and recursive:
                removed += self.remove_leftovers(path, before_ms, recursive=True)
            elif found.is_file and is_temporary(found.base_name) and _milliseconds(found) < before_ms:
                self.delete([path])
                removed += 1
        return removed

    def _key(self, path: str) -> str:
        if path and max(path) > _LAST:
            raise StorageError(
                f"Cannot access '{path}': libhdfs supports no characters above U+FFFF in names. Use a Spark session.",
                path=path,
            )
        return path.removeprefix(self._root) or "/"


class _Output(Sink):
    """A sink that writes to a temporary file beside the target."""

    def __init__(self, store: ArrowHadoopStore, path: str) -> None:
        self._store, self._path = store, path
        self._temporary = store._key(join(parent(path), temporary_name()))
        with _translated("write", path):
            self._file = store._system.open_output_stream(self._temporary)

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def tell(self) -> int:
        return int(self._file.tell())

    def write(self, data: Any) -> int:
        with _translated("write", self._path):
            return int(self._file.write(data))

    def close(self) -> None:
        """Make the file visible. Raises StorageError."""
        if self.closed:
            return
        try:
            with _translated("write", self._path):
                self._file.close()
                self._store._system.move(self._temporary, self._store._key(self._path))
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Discard the content."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._store._system.delete_file(self._temporary)


def _endpoint(scheme: str, authority: str) -> tuple[str, int]:
    """Return name and port of a file system as libhdfs expects them."""
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdecimal():
        host, port = authority, "0"
    return (f"{scheme}://{host}" if host else "default"), int(port)


def _require_classpath(root: str) -> None:
    """Set CLASSPATH, which libhdfs reads once when it starts its JVM. Raises MissingDependencyError."""
    if os.environ.get("CLASSPATH"):
        return
    home = os.environ.get("HADOOP_HOME")
    hadoop = f"{home}/bin/hadoop" if home else shutil.which("hadoop")
    if hadoop is None or not os.access(hadoop, os.X_OK):
        raise MissingDependencyError(f"Cannot open '{root}': Hadoop's client was not found. {_HINT}")
    found = subprocess.run([hadoop, "classpath", "--glob"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise MissingDependencyError(f"Cannot open '{root}': `{hadoop} classpath --glob` failed. {_HINT}")
    os.environ["CLASSPATH"] = found.stdout.strip()


def _milliseconds(found: Any) -> int:
    return int(found.mtime_ns // 1_000_000)


@contextlib.contextmanager
def _translated(action: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _translate(action, path, error) from error


def _translate(action: str, path: str, error: OSError) -> StorageError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return FileNotFoundInStoreError(f"The file '{path}' does not exist.", path=path)
    if isinstance(error, PermissionError):
        return PermissionDeniedError(f"No permission to {action} '{path}'.", path=path)
    return StorageError(f"Cannot {action} '{path}': {_first_line(error)}", path=path)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:500]
