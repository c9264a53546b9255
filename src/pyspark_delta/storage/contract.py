"""The storage contract: the operations on a file system or an object store that the log needs.

A *location* is a decoded, absolute path without a trailing slash: `/dir/file` on the local file system,
`scheme://authority/key` elsewhere. Percent-encoding exists only in the log and is decoded when the log is read
(`paths.resolve_file`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

TREE = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("modification_time", pa.int64()),
    ]
)
"""The columns of `ObjectStore.list_tree`: the path below the directory, size in bytes, time in ms since the epoch."""


class FileStatus(NamedTuple):
    """One listed file: its location, size in bytes, and modification time in milliseconds since the epoch.

    It is a tuple because a log may have tens of thousands of files, and a frozen dataclass takes twice the time.
    """

    path: str
    size: int
    modification_time: int


class TableFiles(Protocol):
    """The operations of a catalog on the files of a table. Every failure is a `StorageError` that names the path."""

    def read(self, path: str) -> bytes:
        """Return the content. Raises FileNotFoundInStoreError."""
        ...

    def status(self, path: str) -> FileStatus:
        """Return size and time of one file. Raises FileNotFoundInStoreError."""
        ...

    def list_from(self, start: str) -> Iterator[FileStatus]:
        """See `ObjectStore.list_from`."""
        ...

    def write_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically and durably. If it exists, raises FileAlreadyExistsError and changes nothing."""
        ...


class ObjectStore(Protocol):
    """The operations on one file system or bucket. Every failure is a `StorageError` that names the path.

    Implementations are thread-safe, and picklable (they travel to Spark's Python workers).
    """

    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        """Return the content, or its bytes `[start, end)`. Raises FileNotFoundInStoreError."""
        ...

    def status(self, path: str) -> FileStatus:
        """Return size and time of one file. Raises FileNotFoundInStoreError."""
        ...

    def list_from(self, start: str) -> Iterator[FileStatus]:
        """Yield the files of `start`'s directory whose names are >= `start`'s, in UTF-8 order, without sub-directories.

        A directory that does not exist yields nothing.
        """
        ...

    def list_tree(
        self, directory: str, skips: Callable[[str], bool], boundaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield all files below a directory, in batches of the schema `TREE`, in no order.

        Sub-directories whose name `skips` accepts are left out with everything below them. Sizes and times are null if
        each file would cost a request for them. Links are not followed. `boundaries` are paths below the directory, in
        UTF-8 order, at which a store may cut the listing into parts that it requests at the same time. A directory
        that does not exist yields nothing.
        """
        ...

    def open_input(self, path: str) -> Any:
        """Open a random-access binary file for `pyarrow.parquet.ParquetFile`. Raises FileNotFoundInStoreError."""
        ...

    def open_output(self, path: str) -> Any:
        """Open a binary sink for a new data file. The file exists, complete, once the sink closes without error."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file durably. Readers never see a part of the new content."""
        ...

    def write_if_absent(self, path: str, data: bytes) -> None:
        """Create a file atomically and durably. If it exists, raises FileAlreadyExistsError and changes nothing."""
        ...

    def copy(self, source: str, target: str) -> None:
        """Create or replace the file `target` with the content of `source`, in the store if it can copy.

        Both are in this store. Readers never see a part of the content. Raises FileNotFoundInStoreError.
        """
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Remove the files; missing ones are not an error."""
        ...

    def delete_directory(self, path: str) -> None:
        """Remove a directory with everything below it; a missing one is not an error. Links are not followed."""
        ...
