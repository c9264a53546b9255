"""The local file system as a store: a file appears complete and durable, or not at all.

`write_if_absent` writes a hidden temporary file beside the target, forces it to disk, and *links* it to its name:
`link` fails if the name is taken, and publishes content and name in one step. (Opening the name with `O_EXCL` would
reserve the name before the content is there, so a crash would leave half a commit.) If the file system has no hard
links, a rename that never replaces does the same; if it has neither, the store refuses to commit. The directory is
forced to disk before success is reported. A crash leaves at most a temporary file, which no listing shows.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pyspark_delta.errors import (
    FileAlreadyExistsError,
    FileNotFoundInStoreError,
    PermissionDeniedError,
    StorageError,
)
from pyspark_delta.storage.contract import FileStatus
from pyspark_delta.storage.exclusive_rename import rename_exclusive
from pyspark_delta.storage.local_tree import walk, with_status
from pyspark_delta.storage.sink import Sink
from pyspark_delta.storage.temporary import TEMPORARY_PREFIX, is_temporary, temporary_name

_SMALL = 1 << 14  # bytes that hold most commits
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_NO_DIRECTORY_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF})


class LocalStore:
    """An `ObjectStore` on absolute local paths. It has no state: one instance serves every thread."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "LocalStore()"

    def __reduce__(self) -> tuple[Any, ...]:
        return (LocalStore, ())

    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if byte_range is None:
                    return _read_all(descriptor)
                start, end = byte_range
                end = min(end, os.fstat(descriptor).st_size)  # os.pread allocates as much memory as requested
                return b"".join(_pread(descriptor, start, end - start))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _translate("read", path, error) from error

    def status(self, path: str) -> FileStatus:
        try:
            found = os.stat(path)
            if stat.S_ISDIR(found.st_mode):
                raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        except OSError as error:
            raise _translate("read", path, error) from error
        return _status(path, found)

    def list_from(self, start: str) -> Iterator[FileStatus]:
        directory, _, first = start.rpartition("/")
        directory = directory or "/"
        prefix = directory.rstrip("/") + "/"
        for name in _names_from(directory, os.fsencode(first)):
            path = prefix + os.fsdecode(name)
            try:
                found = os.stat(path)
            except FileNotFoundError:
                continue  # removed since the directory was read
            except OSError as error:
                raise _translate("list", path, error) from error
            if stat.S_ISREG(found.st_mode):
                yield _status(path, found)

    def list_tree(
        self, directory: str, skips: Callable[[str], bool], boundaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        with _translated("list", directory):
            yield from walk(directory, skips)

    def with_status(self, directory: str, files: pa.RecordBatch) -> pa.RecordBatch:
        """Return the files of a `list_tree` with sizes and times.

        Left out are files that are gone meanwhile, and links to directories. Raises StorageError.
        """
        with _translated("read", directory):
            return with_status(directory, files)

    def open_input(self, path: str) -> Any:
        try:
            return pa.OSFile(path, "rb")
        except OSError as error:
            self.status(path)  # its error tells directories and missing files apart
            raise _translate("read", path, error) from error

    def open_output(self, path: str) -> LocalOutput:
        return LocalOutput(path)

    def write(self, path: str, data: bytes) -> None:
        with _translated("write", path), _temporary(path, data) as temporary:
            _publish(temporary, path)

    def write_if_absent(self, path: str, data: bytes) -> None:
        with _translated("write", path):
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, "exists", path)
            with _temporary(path, data) as temporary:
                _drop_hadoop_checksum(path)
                _link(temporary, path)
                _sync_directory(os.path.dirname(path))

    def copy(self, source: str, target: str) -> None:
        with self.open_input(source) as file, self.open_output(target) as sink:
            shutil.copyfileobj(file, sink, 1 << 20)

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                os.unlink(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise _translate("delete", path, error) from error
            _drop_hadoop_checksum(path)

    def remove_leftovers(self, directory: str, before_ms: int, *, recursive: bool = False) -> int:
        """Remove the temporary files that killed writers left in a directory; return their number.

        These files were last written before `before_ms`, in milliseconds since the epoch. With `recursive`,
        sub-directories are searched too; links are not followed. Files that cannot be removed stay.
        """
        removed = 0
        for found, directories, names in os.walk(directory):
            if not recursive:
                directories.clear()
            for name in filter(is_temporary, names):
                removed += _remove_old(os.path.join(found, name), before_ms)
        return removed

    def delete_directory(self, path: str) -> None:
        with _translated("delete", path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            shutil.rmtree(path)


class LocalOutput(Sink):
    """A sink that writes to a temporary file beside the target."""

    def __init__(self, path: str) -> None:
        self._path = path
        with _translated("write", path):
            if os.path.isdir(path):
                raise IsADirectoryError(errno.EISDIR, "is a directory", path)
            self._temporary, descriptor = _create_temporary(path)
            self._file = open(descriptor, "wb", buffering=1 << 18)  # noqa: SIM115 - lives as long as the sink

    @property
    def closed(self) -> bool:
        return self._file.closed

    def tell(self) -> int:
        return self._file.tell()

    def write(self, data: Any) -> int:
        with _translated("write", self._path):
            return self._file.write(data)

    def flush(self) -> None:
        with _translated("write", self._path):
            self._file.flush()

    def close(self) -> None:
        """Make the file durable and visible.

        Raises StorageError; the file then does not exist, unless only the last step failed: forcing its directory to
        disk.
        """
        if self.closed:
            return
        try:
            with _translated("write", self._path):
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                _publish(self._temporary, self._path)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Discard the content."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)

    def __del__(self) -> None:
        if hasattr(self, "_file") and not self.closed:
            self.discard()


# ----------------------------------------------------------------------------------------------------- reading
def _read_all(descriptor: int) -> bytes:
    """Return the content of a file. The size is only queried for large files; logs have many small ones."""
    data = os.read(descriptor, _SMALL)
    if not os.read(descriptor, 1):
        return data
    os.lseek(descriptor, 0, os.SEEK_SET)
    size = os.fstat(descriptor).st_size
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data  # fewer than requested: the end
    chunks = [data]
    while chunks[-1]:
        chunks.append(os.read(descriptor, 1 << 20))
    return b"".join(chunks)


def _pread(descriptor: int, offset: int, remaining: int) -> Iterator[bytes]:
    while remaining > 0:
        chunk = os.pread(descriptor, remaining, offset)
        if not chunk:
            return
        yield chunk
        offset += len(chunk)
        remaining -= len(chunk)


def _status(path: str, found: os.stat_result) -> FileStatus:
    return FileStatus(path, found.st_size, found.st_mtime_ns // 1_000_000)


def _names_from(directory: str, first: bytes) -> list[bytes]:
    """Return the names in a directory from `first` on, in UTF-8 order, without temporary files."""
    with _translated("list", directory):
        try:
            names = os.listdir(os.fsencode(directory))
        except (FileNotFoundError, NotADirectoryError):
            return []
    hidden = TEMPORARY_PREFIX.encode()
    return sorted([name for name in names if name >= first and not name.startswith(hidden)])


# ----------------------------------------------------------------------------------------------------- writing
@contextlib.contextmanager
def _temporary(path: str, data: bytes) -> Iterator[str]:
    """Create a durable hidden file with `data` beside `path`; remove it afterwards if it still exists."""
    temporary, descriptor = _create_temporary(path)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield temporary
    finally:
        with contextlib.suppress(OSError):  # a leftover file is harmless, and must not turn success into failure
            os.unlink(temporary)


def _create_temporary(path: str) -> tuple[str, int]:
    """Open a hidden file beside `path` for writing."""
    directory = os.path.dirname(path)
    temporary = f"{directory.rstrip('/')}/{temporary_name()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    try:
        return temporary, os.open(temporary, flags, 0o666)
    except FileNotFoundError:
        _make_directories(directory)
        return temporary, os.open(temporary, flags, 0o666)


def _remove_old(path: str, before_ms: int) -> bool:
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode) and found.st_mtime_ns // 1_000_000 < before_ms:
            os.unlink(path)
            return True
    return False


def _make_directories(directory: str) -> None:
    """Create missing parts of `directory`, each name durable in its parent directory."""
    missing = []
    while not os.path.isdir(directory) and directory != "/":
        missing.append(directory)
        directory = os.path.dirname(directory)
    for name in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(name)
        _sync_directory(os.path.dirname(name))  # at once: another writer may publish below it before this one does


def _publish(temporary: str, path: str) -> None:
    _drop_hadoop_checksum(path)
    os.replace(temporary, path)
    _sync_directory(os.path.dirname(path))


def _link(temporary: str, path: str) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        # Over NFS the reply to a successful link may be lost, and the retry fails.
        if not os.path.samestat(os.lstat(temporary), os.lstat(path)):
            raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        rename_exclusive(temporary, path)


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory or "/", os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(descriptor)


def _drop_hadoop_checksum(path: str) -> None:
    """Remove the checksum that Hadoop's local file system stores beside a file, because it would not match."""
    directory, _, name = path.rpartition("/")
    checksum = f"{directory}/.{name}.crc"
    if os.access(checksum, os.F_OK):  # a failed `unlink` would cost five times as much
        with contextlib.suppress(OSError):
            os.unlink(checksum)


# ------------------------------------------------------------------------------------------------------ errors
@contextlib.contextmanager
def _translated(action: str, path: str) -> Iterator[None]:
    """Convert an OSError to the StorageError for `path`."""
    try:
        yield
    except OSError as error:
        raise _translate(action, path, error) from error


def _translate(action: str, path: str, error: OSError) -> StorageError:
    match error.errno:
        case errno.ENOENT:
            return FileNotFoundInStoreError(f"The file '{path}' does not exist.", path=path)
        case errno.ENOTDIR:
            return FileNotFoundInStoreError(
                f"The file '{path}' does not exist: a part of its path is a file, not a directory.", path=path
            )
        case errno.EISDIR if action == "read":
            return FileNotFoundInStoreError(f"'{path}' is a directory, not a file.", path=path)
        case errno.EEXIST:
            return FileAlreadyExistsError(f"The file '{path}' already exists.", path=path)
        case errno.EACCES | errno.EPERM:
            return PermissionDeniedError(
                f"No permission to {action} '{path}'. Check the owner and the mode of the file and its directory.",
                path=path,
            )
        case errno.ENOSPC | errno.EDQUOT:
            return StorageError(f"Cannot {action} '{path}': the disk or quota is full. Free some space.", path=path)
        case errno.EROFS:
            return PermissionDeniedError(f"Cannot {action} '{path}': the file system is read-only.", path=path)
        case errno.EISDIR:
            return StorageError(f"Cannot {action} '{path}': it is a directory, not a file.", path=path)
    return StorageError(f"Cannot {action} '{path}': {error.strerror or error}.", path=path)
