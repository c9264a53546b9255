"""Commits of a managed table that are ratified by being published: `_delta_log/<v>.json`, put if absent (C456)."""

from __future__ import annotations

from pyspark_delta.catalog.contract import CommitKind, LogTail, Proposal, Ratification, RatifiedCommit, TableInfo
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.catalog.proposals import check_proposal, refused
from pyspark_delta.errors import (
    CatalogError,
    FileAlreadyExistsError,
    FileNotFoundInStoreError,
    InvalidProposalError,
    PermissionDeniedError,
    RatificationConflictError,
    StaleMetadataError,
    StorageError,
)
from pyspark_delta.log.last_checkpoint import read_last_checkpoint
from pyspark_delta.log.listing import list_log
from pyspark_delta.log.named_files import later_commits, lists_everything
from pyspark_delta.log.provenance import commit_info
from pyspark_delta.storage import ObjectStore

_BEGINNING = 1 << 16  # bytes that hold commitInfo, the first action of a commit (C356)


class FileCommits:
    """The commits of one table."""

    def __init__(self, store: ObjectStore, table: TableInfo) -> None:
        self._store, self._table = store, table

    def ratify(self, proposal: Proposal) -> Ratification:
        """Publish a proposal if the previous version exists.

        Raises the errors of `Catalog.ratify`, and StorageError, after which the outcome is unknown.
        """
        table, version = self._table, proposal.version
        check_proposal(table, proposal)
        if proposal.content is None:
            raise refused(table, version, "this catalog publishes commits itself, so it needs their content")
        if proposal.expected_etag not in (None, table.etag):
            raise StaleMetadataError(f"The metadata of {table.name} have changed.", table=str(table.name))
        self._check_before(proposal)
        commit = RatifiedCommit(
            version=version,
            kind=CommitKind.PUBLISHED,
            timestamp=proposal.timestamp,
            size=len(proposal.content),
            transaction_id=proposal.transaction_id or None,
        )
        path = published_path(table.location, version)
        try:
            self._store.write_if_absent(path, proposal.content)
        except PermissionDeniedError:
            raise
        except (FileAlreadyExistsError, StorageError) as error:
            return Ratification(commit, replayed=self._resolve(proposal, path, error))
        return Ratification(commit)

    def tail(self, start: int = 0) -> LogTail:
        """Return the newest version up to which commits are published without a gap.

        The search starts at the version `start`, if it exists.
        """
        latest = self._latest(start)
        return LogTail(latest, (), latest)

    def require_published(self, version: int) -> None:
        """Raise InvalidProposalError if a version is not published, and so not ratified."""
        if not self._is_there(version):
            raise InvalidProposalError(
                f"Version {version} of {self._table.name} is not published: there is no "
                f"'{published_path(self._table.location, version)}'.",
                table=str(self._table.name),
                version=version,
            )

    def _check_before(self, proposal: Proposal) -> None:
        """Raise InvalidProposalError unless the previous version exists and has an earlier in-commit timestamp.

        If the proposed version exists, the check passes, because the write will fail: the previous version may have
        been cleaned up.
        """
        before = published_path(self._table.location, proposal.version - 1)
        try:
            info = commit_info(self._store.read(before, (0, _BEGINNING)))
        except FileNotFoundInStoreError:
            if self._is_there(proposal.version):
                return
            raise refused(
                self._table,
                proposal.version,
                f"the latest version is {self._latest(0)}, and versions must be consecutive",
            ) from None
        timestamp = None if info is None else info.in_commit_timestamp
        if timestamp is not None and proposal.timestamp <= timestamp and not self._is_there(proposal.version):
            raise refused(
                self._table,
                proposal.version,
                f"its in-commit timestamp {proposal.timestamp} is not after {timestamp}, that of the previous version",
            )

    def _resolve(self, proposal: Proposal, path: str, error: StorageError) -> bool:
        """Return True if an earlier request made the commit, False if this one did, although it failed with `error`.

        Raises RatificationConflictError if the version has another commit, and `error` if it has none.
        """
        try:
            content = self._store.read(path)
        except FileNotFoundInStoreError:
            raise error from None
        info = commit_info(content)
        if content == proposal.content or (proposal.transaction_id and info and info.txn_id == proposal.transaction_id):
            return isinstance(error, FileAlreadyExistsError)
        tail = self.tail(proposal.version)
        raise RatificationConflictError(
            f"Version {proposal.version} of {self._table.name} already has another commit; the latest version is "
            f"{tail.latest_version}.",
            version=proposal.version,
            tail=tail,
            table=str(self._table.name),
        )

    def _is_there(self, version: int) -> bool:
        try:
            self._store.status(published_path(self._table.location, version))
        except FileNotFoundInStoreError:
            return False
        return True

    def _latest(self, start: int) -> int:
        """Return the latest version. The listing starts at `start`, else at the checkpoint of `_last_checkpoint`.

        If this version does not exist, the listing starts at version 0. Raises CatalogError if there are no commits.
        """
        hint = None if start else read_last_checkpoint(self._store, self._table.location)
        first = start or (hint.version if hint is not None else 0)
        versions = None
        if first and lists_everything(self._table.location):
            versions = later_commits(self._store, self._table.location, first)
        if versions is None:
            versions = list_log(self._store, self._table.location, first).commits
        if not versions and first:
            versions = list_log(self._store, self._table.location).commits
        if not versions:
            raise CatalogError(
                f"The table {self._table.name} has no commits in '{self._table.location}'. Its files were removed; "
                "drop it, or restore them.",
                table=str(self._table.name),
            )
        latest = min(versions)
        while latest + 1 in versions:
            latest += 1
        return latest
