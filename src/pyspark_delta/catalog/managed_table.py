"""The client's part of a managed table, the same for every catalog: log tail, staged commits, and publishing.

Publishing copies ratified commits, in order, to the files that every reader finds (C473). It can be repeated, and every
client that may write to the table may publish every commit.
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
    """A resolved table that a catalog manages."""

    catalog: Catalog
    info: TableInfo

    @property
    def location(self) -> str:
        """The location of the table."""
        return self.info.location

    def log_tail(self, start: int | None = None) -> LogTail:
        """Return the log tail from the catalog, from a version that exists (C462, C472). Raises CatalogError."""
        tail = self.catalog.log_tail(self.info, start)
        check_tail(self.location, tail)
        return tail

    def tail_files(self) -> TailFiles:
        """Return the log tail for reading the log. Raises CatalogError."""
        return tail_files(self.location, self.catalog.log_tail(self.info))

    def stage(self, store: ObjectStore, version: int, content: bytes) -> StagedFile:
        """Write a commit file durably under a new name; it has no effect until it is ratified (C446, C453)."""
        name = str(CommitName(version, str(uuid.uuid4())))
        path = staged_path(self.location, name)
        store.write_if_absent(path, content)
        status = store.status(path)
        return StagedFile(name, status.size, status.modification_time)

    def publish(self, store: TableFiles, tail: LogTail | None = None) -> int | None:
        """Publish every unpublished commit of the tail in order, and report it to the catalog.

        Return the newest published version; None if the catalog remembers no commit. Raises PublishedMismatchError if
        another commit is published in place of a ratified one, CatalogError, StorageError. Commits published before the
        error stay published.
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
            store.status(published_path(self.location, commit.version))  # a published commit may lose its staged file
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
                    f"'{path}' is not the commit that the catalog has ratified as version {version}: another "
                    f"writer wrote to '{self.location}' without its catalog. Publishing has stopped. Find that writer, "
                    "and restore the file from the staged commit.",
                    version=version,
                    path=path,
                ) from None

    def read(self, store: ObjectStore, commit: RatifiedCommit) -> bytes:
        """Return the content of a ratified commit, from its published copy if the staged file is gone."""
        return commit.content or TailStore(store).read(commit_path(self.location, commit))

    def require(self, maintenance: Maintenance) -> None:
        """Raise MaintenanceNotAllowedError unless the catalog allows the maintenance (C478)."""
        if maintenance not in self.info.allowed_maintenance:
            raise MaintenanceNotAllowedError(
                f"The catalog that manages {self.info.name} does not allow {_WORDS[maintenance]}. The catalog does "
                "this itself, or must be configured to allow it.",
                table=str(self.info.name),
                maintenance=maintenance.value,
            )


_WORDS = {
    Maintenance.LOG_CLEANUP: "its log to be cleaned up",
    Maintenance.VACUUM: "vacuum",
    Maintenance.OPTIMIZE: "its files to be rearranged",
}
