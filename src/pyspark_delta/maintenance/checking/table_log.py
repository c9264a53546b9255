"""The log of a table as it is listed: every file by kind, also those that no reader uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.catalog.tail_store import with_tail
from pyspark_delta.log.commits import CommitText, read_entry
from pyspark_delta.log.listing import Checkpoint, LogListing, extend, log_location
from pyspark_delta.log.names import CommitName, parse_name
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.snapshot.access import catalog_tail
from pyspark_delta.storage import FileStatus, ObjectStore, store_for
from pyspark_delta.storage.paths import file_name, join

_MOST_UNKNOWN = 1000


@dataclass
class TableLog:
    """The files in the log of a table. `tail` is the state of the log in its catalog, None without one."""

    store: ObjectStore
    location: str
    listing: LogListing
    unknown: list[FileStatus] = field(default_factory=list)
    hidden: list[FileStatus] = field(default_factory=list)
    published: int | None = None
    tail: TailFiles | None = None

    @classmethod
    def open(
        cls, location: str, storage_options: Mapping[str, str], catalog_table: CatalogTable | None = None
    ) -> TableLog:
        """List the log of a table, with what its catalog says. Raises StorageError, CatalogError."""
        tail = catalog_tail(location, catalog_table)
        return cls.read(with_tail(store_for(location, storage_options), tail), location, tail)

    @classmethod
    def read(cls, store: ObjectStore, location: str, tail: TailFiles | None = None) -> TableLog:
        """List the log. A log that does not exist has no files."""
        log = cls(store, location, LogListing(), tail=tail)
        for file in store.list_from(join(log_location(location), "")):
            name = file_name(file.path)
            if parse_name(name) is not None:
                log.listing.add(file)
            else:
                kept = log.hidden if name.startswith((".", "_")) else log.unknown
                if len(kept) < _MOST_UNKNOWN:
                    kept.append(file)
        log.published = max(log.listing.commits, default=None)
        if tail is not None:
            extend(log.listing, tail.files, tail.latest_version)
        return log

    @property
    def versions(self) -> frozenset[int]:
        """The versions that have a commit."""
        return frozenset(self.listing.commits)

    @cached_property
    def checkpoints(self) -> list[Checkpoint]:
        """The complete checkpoints, newest first."""
        return self.listing.checkpoints()

    def checkpoints_at(self, version: int) -> list[Checkpoint]:
        """Return the complete checkpoints of a version."""
        return self._by_version.get(version, [])

    @cached_property
    def _by_version(self) -> dict[int, list[Checkpoint]]:
        found: dict[int, list[Checkpoint]] = {}
        for checkpoint in self.checkpoints:
            found.setdefault(checkpoint.version, []).append(checkpoint)
        return found

    def read_commit(self, version: int) -> CommitText:
        """Read a commit. Raises CorruptLogError."""
        return read_entry(self.store, CommitFile(version, self.listing.commits[version]))

    def staged(self) -> Iterator[FileStatus]:
        """Yield the files of staged commits."""
        directory = join(log_location(self.location), "_staged_commits")
        for file in self.store.list_from(join(directory, "")):
            if isinstance(parse_name(file_name(file.path)), CommitName):
                yield file
