"""Local files below one directory, without following links, for a server that runs as another user than its clients.

A user who may write to a table's directory could lead the server to other files by links, or block its threads with
named pipes. Every directory on the path is opened without following links, and only regular files are read. Names are
looked up in open directories, so the opened file is the checked one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator

from pyspark_delta.errors import (
    FileAlreadyExistsError,
    FileNotFoundInStoreError,
    PermissionDeniedError,
    StorageError,
)
from pyspark_delta.storage.contract import FileStatus

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # opening a named pipe would wait for its writer
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20  # bytes


class ConfinedStore:
    """The `TableFiles` operations on regular files below `root`. Paths are absolute.

    Links in the path of `root` itself are followed, because the operator of the server chooses it. Every method raises
    PermissionDeniedError if a link, a pipe or a device is in the path. The file system must support hard links.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def __repr__(self) -> str:
        return f"ConfinedStore({self._root!r})"

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundInStoreError, PermissionDeniedError."""
        with _translated("read", path), self._directory(path) as (directory, name):
            descriptor = os.open(name, _FILE, dir_fd=directory)
            try:
                _require_regular(path, os.fstat(descriptor))
                return b"".join(iter(lambda: os.read(descriptor, _CHUNK), b""))
            finally:
                os.close(descriptor)

    def status(self, path: str) -> FileStatus:
        """Return size and time of a file. Raises FileNotFoundInStoreError, PermissionDeniedError."""
        with _translated("read", path), self._directory(path) as (directory, name):
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
            _require_regular(path, found)
            return _status(path, found)

    def list_from(self, start: str) -> Iterator[FileStatus]:
        """Yield the regular files of `start`'s directory whose names are >= `start`'s, in UTF-8 order."""
        prefix = start[: start.rindex("/") + 1]
        with _translated("list", start):
            try:
                with self._directory(start) as (directory, first):
                    names = sorted(
                        name for name in map(os.fsencode, os.listdir(directory)) if name >= os.fsencode(first)
                    )
                    found = [os.stat(name, dir_fd=directory, follow_symlinks=False) for name in names]
            except FileNotFoundError:
                return
        for name, status in zip(names, found, strict=True):
            if stat.S_ISREG(status.st_mode):
                yield _status(prefix + os.fsdecode(name), status)

    def write_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically and durably. If it exists, raises FileAlreadyExistsError and changes nothing."""
        with _translated("write", path), self._directory(path) as (directory, name):
            temporary = f".pyspark-delta-{uuid.uuid4().hex}.tmp"
            descriptor = os.open(temporary, _NEW_FILE, 0o666, dir_fd=directory)
            try:
                with open(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
            finally:
                os.unlink(temporary, dir_fd=directory)
            os.fsync(directory)

    @contextlib.contextmanager
    def _directory(self, path: str) -> Iterator[tuple[int, str]]:
        """Open the directory of a file; yield its descriptor, and the name of the file in it."""
        prefix = self._root.rstrip("/") + "/"
        *parents, name = path.removeprefix(prefix).split("/")
        if not path.startswith(prefix) or any(part in ("", ".", "..") for part in (*parents, name)):
            raise PermissionDeniedError(f"'{path}' is not below '{self._root}'.", path=path)
        directory = os.open(self._root, _DIRECTORY & ~os.O_NOFOLLOW)
        try:
            for part in parents:
                below = os.open(part, _DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = below
            yield directory, name
        finally:
            os.close(directory)


def _require_regular(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _in_the_way(path)


def _status(path: str, found: os.stat_result) -> FileStatus:
    return FileStatus(path, found.st_size, found.st_mtime_ns // 1_000_000)


@contextlib.contextmanager
def _translated(action: str, path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundInStoreError(f"The file '{path}' does not exist.", path=path) from error
    except FileExistsError as error:
        raise FileAlreadyExistsError(f"The file '{path}' already exists.", path=path) from error
    except PermissionError as error:
        raise PermissionDeniedError(f"No permission to {action} '{path}'.", path=path) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):  # ENXIO: a socket
            raise _in_the_way(path) from error
        raise StorageError(f"Cannot {action} '{path}': {error.strerror or error}.", path=path) from error


def _in_the_way(path: str) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"'{path}' is not a regular file, or its path contains a link, which is not followed. Use regular files "
        "and directories below the table's location.",
        path=path,
    )
