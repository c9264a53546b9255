"""The store of a managed table: the table's own files, and the commits that only the catalog holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyspark_delta.catalog.log_tail import TailFiles, published_path
from pyspark_delta.errors import FileNotFoundInStoreError
from pyspark_delta.log.names import LOG_DIRECTORY, STAGED_DIRECTORY, CommitName, parse_name
from pyspark_delta.storage import FileStatus, ObjectStore
from pyspark_delta.storage.paths import file_name


def with_tail(store: ObjectStore, tail: TailFiles | None) -> ObjectStore:
    """Return the store that also has the inline commits of a log tail."""
    if tail is None:
        return store
    return store.with_contents(tail.contents) if isinstance(store, TailStore) else TailStore(store, tail.contents)


class TailStore:
    """Reads inline commits from memory, and a missing staged commit from its published copy (C473).

    A catalog may forget a published commit and delete its staged file while another client reads.
    """

    def __init__(self, inner: ObjectStore, contents: Mapping[str, bytes] | None = None) -> None:
        self.inner = inner
        self._contents = dict(contents or {})

    def with_contents(self, contents: Mapping[str, bytes]) -> TailStore:
        """Return the same store with other inline commits. Earlier ones are published, or among the new ones."""
        return self if contents == self._contents else TailStore(self.inner, contents)

    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        content = self._contents.get(path)
        if content is not None:
            return content if byte_range is None else content[byte_range[0] : byte_range[1]]
        try:
            return self.inner.read(path, byte_range)
        except FileNotFoundInStoreError:
            published = _published(path)
            if published is None:
                raise
            return self.inner.read(published, byte_range)

    def status(self, path: str) -> FileStatus:
        content = self._contents.get(path)
        if content is not None:
            return FileStatus(path, len(content), 0)
        try:
            return self.inner.status(path)
        except FileNotFoundInStoreError:
            published = _published(path)
            if published is None:
                raise
            return self.inner.status(published)

    def list_from(self, start: str) -> Iterator[FileStatus]:
        return self.inner.list_from(start)

    def list_tree(
        self, directory: str, skips: Callable[[str], bool], boundaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        return self.inner.list_tree(directory, skips, boundaries)

    def open_input(self, path: str) -> Any:
        return self.inner.open_input(path)

    def open_output(self, path: str) -> Any:
        return self.inner.open_output(path)

    def write(self, path: str, data: bytes) -> None:
        self.inner.write(path, data)

    def write_if_absent(self, path: str, data: bytes) -> None:
        self.inner.write_if_absent(path, data)

    def copy(self, source: str, target: str) -> None:
        self.inner.copy(source, target)

    def delete(self, paths: Iterable[str]) -> None:
        self.inner.delete(paths)

    def delete_directory(self, path: str) -> None:
        self.inner.delete_directory(path)


def _published(path: str) -> str | None:
    """Return the path of the published commit of a staged path; None for any other path."""
    name = parse_name(file_name(path))
    location, found, _ = path.rpartition(f"/{LOG_DIRECTORY}/{STAGED_DIRECTORY}/")
    if not found or not isinstance(name, CommitName) or name.uuid is None:
        return None
    return published_path(location, name.version)
