"""The storage contract: what the log needs of a file system or an object store.

A *location* is a decoded, absolute path without a trailing slash: `/dir/file` on the local file system,
`scheme://authority/key` elsewhere. Percent-encoding exists only in the log and is undone where the log is read
(`paths.resolve_file`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol


class FileStatus(NamedTuple):
    """One listed file: its location, size in bytes, and modification time in milliseconds since the epoch.

    A tuple because a log may have tens of thousands: a frozen dataclass takes twice the time to make.
    """

    path: str
    size: int
    modification_time: int


class TableFiles(Protocol):
    """What a catalog does with the files of a table. Every failure is a `StorageError` that names the path."""

    def read(self, path: str) -> bytes:
        """The content. Raises FileNotFoundInStoreError."""
        ...

    def status(self, path: str) -> FileStatus:
        """Size and time of one file. Raises FileNotFoundInStoreError."""
        ...

    def list_from(self, start: str) -> Iterator[FileStatus]:
        """As `ObjectStore.list_from`."""
        ...

    def write_if_absent(self, path: str, data: bytes) -> None:
        """Create atomically; durable when it returns. Raises FileAlreadyExistsError and changes nothing."""
        ...


class ObjectStore(Protocol):
    """The operations on one file system or bucket. Every failure is a `StorageError` that names the path.

    Implementations are thread-safe, and picklable (they travel to Spark's Python workers).
    """

    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        """The content, or its bytes `[start, end)`. Raises FileNotFoundInStoreError."""
        ...

    def status(self, path: str) -> FileStatus:
        """Size and time of one file. Raises FileNotFoundInStoreError."""
        ...

    def list_from(self, start: str) -> Iterator[FileStatus]:
        """The files of `start`'s directory whose names are >= `start`'s, in UTF-8 order, without sub-directories.

        A directory that does not exist yields nothing.
        """
        ...

    def open_input(self, path: str) -> Any:
        """A random-access binary file for `pyarrow.parquet.ParquetFile`. Raises FileNotFoundInStoreError."""
        ...

    def open_output(self, path: str) -> Any:
        """A binary sink for a new data file; the file is visible and complete once it is closed without an error."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create or replace; durable, and never seen half-written."""
        ...

    def write_if_absent(self, path: str, data: bytes) -> None:
        """Create atomically; durable when it returns. Raises FileAlreadyExistsError and changes nothing."""
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Remove; files that are not there are no error."""
        ...

    def delete_directory(self, path: str) -> None:
        """Remove a directory with everything below it; one that is not there is no error. Links are not followed."""
        ...
