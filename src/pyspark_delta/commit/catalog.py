"""Commits through the catalog that manages a table: staged, ratified, published (Commit Protocol; C468-C474).

If a response is lost, the catalog can be asked which commit a version has, and the transaction id in the commit
identifies its writer. Only ratified commits are published.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping

from pyspark_delta.catalog.contract import (
    Capability,
    Catalog,
    LogTail,
    MetadataChange,
    NewTable,
    Proposal,
    RatifiedCommit,
    StagingTable,
    TableInfo,
)
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.catalog.managed_table import ManagedTable
from pyspark_delta.commit.contents import CommitContents
from pyspark_delta.commit.contract import (
    CommitRequest,
    CommitResult,
    Committed,
    Rejected,
    TakenVersion,
    Transient,
    Unknown,
    VersionTaken,
)
from pyspark_delta.commit.filesystem import FilesystemCommitter
from pyspark_delta.errors import (
    CatalogError,
    CatalogUnavailableError,
    DeltaError,
    DeltaWarning,
    FileNotFoundInStoreError,
    PermissionDeniedError,
    RatificationConflictError,
    StorageError,
    TooManyUnpublishedError,
)
from pyspark_delta.log.provenance import transaction_id
from pyspark_delta.storage import ObjectStore

INLINE_LIMIT = 16 << 10
"""Bytes up to which a commit is sent inline to a catalog that accepts its content: this saves writing and reading one
file.
"""


class CatalogCommitter:
    """Commits to one managed table.

    A repeated request is the same proposal, with the same staged file, so that the catalog recognises it; a request for
    another version has its own file (C446).
    """

    def __init__(self, table: ManagedTable, store: ObjectStore) -> None:
        self._table, self._store = table, store
        self._asked: tuple[CommitRequest, Proposal] | None = None

    @property
    def required_properties(self) -> Mapping[str, str]:
        """The properties that the catalog requires the table to keep."""
        return self._table.info.required_properties

    def commit(self, request: CommitRequest) -> CommitResult:
        try:
            proposal = self._proposal(request)
        except PermissionDeniedError as error:
            return Rejected(error)
        except StorageError as error:
            return Transient(error)
        try:
            result = self._ratify(request, proposal)
        except (CatalogError, StorageError) as error:  # while resolving the outcome
            return Unknown(error)
        if isinstance(result, Committed):
            self._publish(request, is_next=result.content is None and proposal.published_version == request.version - 1)
        return result

    def later(self, table_location: str, version: int) -> Iterator[TakenVersion]:
        return self._taken(self._table.log_tail(version), version + 1)

    # ------------------------------------------------------------------------------------------------- proposing
    def _proposal(self, request: CommitRequest) -> Proposal:
        if self._asked is not None and self._asked[0] == request:
            return self._asked[1]
        capabilities, content = self._table.catalog.capabilities, request.content
        contents = CommitContents.parse(request.version, content)
        inline = Capability.PUT_IF_ABSENT in capabilities or (
            Capability.INLINE in capabilities and len(content) <= INLINE_LIMIT
        )
        proposal = Proposal(
            version=request.version,
            timestamp=contents.timestamp,
            transaction_id=request.transaction_id,
            file=None if inline else self._table.stage(self._store, request.version, content),
            content=content if inline else None,
            change=MetadataChange(protocol=contents.protocol, metadata=contents.metadata, domains=contents.domains)
            if contents.changes_metadata
            else None,
            published_version=request.version - 1 if self._is_published(request.version - 1) else None,
        )
        self._asked = request, proposal
        return proposal

    def _is_published(self, version: int) -> bool:
        try:
            self._store.status(published_path(self._table.location, version))
        except FileNotFoundInStoreError:
            return False
        return True

    # ------------------------------------------------------------------------------------------------- ratifying
    def _ratify(self, request: CommitRequest, proposal: Proposal, *, published: bool = False) -> CommitResult:
        """Return the outcome of one proposal. Raises CatalogError and StorageError if it cannot be resolved."""
        try:
            ratified = self._table.catalog.ratify(self._table.info, proposal)
        except RatificationConflictError as error:
            tail = error.tail if isinstance(error.tail, LogTail) else self._table.log_tail()
            return self._resolve(request, proposal, tail, error)
        except CatalogUnavailableError as error:
            return self._resolve(request, proposal, self._table.log_tail(), error)
        except TooManyUnpublishedError as error:
            if published:
                return Transient(error)
            try:
                self._table.publish(self._store)
            except DeltaError as refusal:
                return Rejected(refusal)
            return self._ratify(request, proposal, published=True)
        except CatalogError as error:
            return Rejected(error)
        content = self._table.read(self._store, ratified.commit) if ratified.replayed else request.content
        return Committed(request.version, None if content == request.content else content)

    def _resolve(self, request: CommitRequest, proposal: Proposal, tail: LogTail, error: CatalogError) -> CommitResult:
        """Return whether the version is this commit or another one, according to the catalog."""
        if tail.latest_version < request.version:
            return Transient(error)
        if self._is_own(proposal, tail):
            return Committed(request.version)
        winners = tuple(self._taken(tail, request.version))
        if transaction_id(winners[0].content) == request.transaction_id:
            return Committed(request.version, winners[0].content)
        return VersionTaken(winners)

    def _is_own(self, proposal: Proposal, tail: LogTail) -> bool:
        """True if the catalog has exactly this proposal as the commit of its version."""
        found = next((c for c in tail.commits if c.version == proposal.version), None)
        return found is not None and proposal.file is not None and found.file_name == proposal.file.name

    def _taken(self, tail: LogTail, first: int) -> Iterator[TakenVersion]:
        """Yield the versions from `first` to the latest, with their content from the catalog or the published files."""
        known: dict[int, RatifiedCommit] = {commit.version: commit for commit in tail.commits}
        for version in range(first, tail.latest_version + 1):
            commit = known.get(version)
            if commit is None:
                content = self._store.read(published_path(self._table.location, version))
            else:
                content = self._table.read(self._store, commit)
            yield TakenVersion(version, content)

    # ------------------------------------------------------------------------------------------------ publishing
    def _publish(self, request: CommitRequest, *, is_next: bool) -> None:
        """Publish the commit, and those before it unless it `is_next`. A failure is a warning."""
        if Capability.PUT_IF_ABSENT in self._table.catalog.capabilities:
            return
        try:
            if is_next:
                self._table.publish_one(self._store, request.version, request.content)
            else:
                self._table.publish(self._store)
        except DeltaError as error:
            warnings.warn(
                DeltaWarning(
                    f"Version {request.version} of '{request.table_location}' is committed, but could not be "
                    f"published: {error.message}"
                ),
                stacklevel=4,
            )


class CreatingCommitter:
    """Creates the first version of a table at its staging location, and thereby registers its name (C481)."""

    def __init__(
        self, catalog: Catalog, staging: StagingTable, store: ObjectStore, created: Callable[[TableInfo], None]
    ) -> None:
        self._catalog, self._staging, self._created = catalog, staging, created
        self._files = FilesystemCommitter(store)

    def commit(self, request: CommitRequest) -> CommitResult:
        made = self._files.commit(request)
        if not isinstance(made, Committed):
            return made
        content = made.content or request.content
        contents = CommitContents.parse(request.version, content)
        assert contents.protocol is not None
        assert contents.metadata is not None
        new = NewTable(
            version=request.version,
            timestamp=contents.timestamp,
            protocol=contents.protocol,
            metadata=contents.metadata,
            domains=contents.domains,
        )
        try:
            self._created(self._catalog.create_table(self._staging, new))
        except CatalogUnavailableError as error:
            return Unknown(error)
        except CatalogError as error:
            return Rejected(error)
        return made

    def later(self, table_location: str, version: int) -> Iterator[TakenVersion]:
        return self._files.later(table_location, version)
