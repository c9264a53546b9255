"""One table of a catalog, as clients of every catalog treat it: its log tail, staged commits, publishing.

Publishing copies ratified commits, in order, to where every reader finds them (C473). It is repeatable, and anyone who
may write to the table may do it for everyone.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from pyspark_delta.catalog.contract import (
    Catalog,
    CommitKind,
    LogTail,
    Maintenance,
    RatifiedCommit,
    StagedFile,
    TableInfo,
)
from pyspark_delta.catalog.log_tail import TailFiles, check_tail, commit_path, published_path, staged_path, tail_files
from pyspark_delta.catalog.tail_store import TailStore
from pyspark_delta.errors import (
    FileAlreadyExistsError,
    FileNotFoundInStoreError,
    MaintenanceNotAllowedError,
    PublishedMismatchError,
)
from pyspark_delta.log.names import CommitName
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.contract import TableFiles


@dataclass(frozen=True)
class ManagedTable:
    """A table that a catalog manages, resolved already."""

    catalog: Catalog
    info: TableInfo

    @property
    def location(self) -> str:
        """Where the table lies."""
        return self.info.location

    def log_tail(self, start: int | None = None) -> LogTail:
        """Return the log tail, from the catalog, and from a version that there is (C462, C472). Raises CatalogError."""
        tail = self.catalog.log_tail(self.info, start)
        check_tail(self.location, tail)
        return tail

    def tail_files(self) -> TailFiles:
        """Return the log tail as the log reads it. Raises CatalogError."""
        return tail_files(self.location, self.catalog.log_tail(self.info))

    def stage(self, store: ObjectStore, version: int, content: bytes) -> StagedFile:
        """Write a commit file that proves nothing yet, durably and under a name never used before (C446, C453)."""
        name = str(CommitName(version, str(uuid.uuid4())))
        path = staged_path(self.location, name)
        store.write_if_absent(path, content)
        status = store.status(path)
        return StagedFile(name, status.size, status.modification_time)

    def publish(self, store: TableFiles, tail: LogTail | None = None) -> int | None:
        """Publish every commit of the tail that is not published yet, in order, and tell the catalog.

        The newest published version; None if the catalog remembers no commit. Raises PublishedMismatchError if
        another commit is published in place of a ratified one, CatalogError, StorageError; what was published before
        that stays published.
        """
        tail = self.log_tail() if tail is None else tail
        known = -1 if tail.published_version is None else tail.published_version
        newest = None if tail.published_version is None else known
        for commit in tail.commits:
            if commit.version > known and commit.kind is not CommitKind.PUBLISHED:
                self._publish(store, commit)
            newest = commit.version
        if newest is not None and newest > known:
            self.catalog.report_published(self.info, newest)
        return newest

    def _publish(self, store: TableFiles, commit: RatifiedCommit) -> None:
        try:
            content = commit.content or store.read(commit_path(self.location, commit))
        except FileNotFoundInStoreError:
            store.status(published_path(self.location, commit.version))  # whoever published it has cleaned up behind
        else:
            self.publish_one(store, commit.version, content)

    def publish_one(self, store: TableFiles, version: int, content: bytes) -> None:
        """Publish a version whose predecessor is published. Raises PublishedMismatchError, StorageError."""
        path = published_path(self.location, version)
        try:
            store.write_if_absent(path, content)
        except FileAlreadyExistsError:
            if store.read(path) != content:
                raise PublishedMismatchError(
                    f"'{path}' is not the commit that the catalog has ratified as version {version}: somebody "
                    f"wrote to '{self.location}' without its catalog. Nothing more is published. Find out who, and "
                    "restore the file from the staged commit.",
                    version=version,
                    path=path,
                ) from None

    def read(self, store: ObjectStore, commit: RatifiedCommit) -> bytes:
        """Return the content of a ratified commit, from its published copy where only that is left."""
        return commit.content or TailStore(store).read(commit_path(self.location, commit))

    def require(self, maintenance: Maintenance) -> None:
        """Raise MaintenanceNotAllowedError unless the catalog allows the maintenance (C478)."""
        if maintenance not in self.info.allowed_maintenance:
            raise MaintenanceNotAllowedError(
                f"The catalog that manages {self.info.name} does not allow {_WORDS[maintenance]}. Leave it to the "
                "catalog, or have it allowed there.",
                table=str(self.info.name),
                maintenance=maintenance.value,
            )


_WORDS = {
    Maintenance.LOG_CLEANUP: "its log to be cleaned up",
    Maintenance.VACUUM: "vacuum",
    Maintenance.OPTIMIZE: "its files to be rearranged",
}
