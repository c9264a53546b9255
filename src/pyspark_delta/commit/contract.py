"""The contract of committers: one atomic attempt to create one version (Creation of New Log Entries; C012-C015).

Outcomes are values. The caller decides what to do next; a committer never retries on its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from pyspark_delta.errors import DeltaError


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """One attempt: the complete content of the commit file of `version`.

    `transaction_id` is the `commitInfo.txnId` in the content: with it a writer recognises its own commit.
    """

    table_location: str
    version: int
    content: bytes
    transaction_id: str


@dataclass(frozen=True, slots=True)
class TakenVersion:
    """A version that another writer has committed, and its content."""

    version: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Committed:
    """The version exists, is durable, and was created by this request.

    `content` is set if an earlier attempt with the same transaction id made it, with other content.
    """

    version: int
    content: bytes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class VersionTaken:
    """Another writer has created the version, the first of `winners`. Nothing was changed."""

    winners: tuple[TakenVersion, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """The version does not exist, and retrying cannot succeed. Nothing was changed."""

    error: DeltaError


@dataclass(frozen=True, slots=True)
class Transient:
    """The version did not exist when it was checked after a failure; the same request may be retried."""

    error: DeltaError


@dataclass(frozen=True, slots=True)
class Unknown:
    """It is unknown whether the version exists; the same request may be retried, and resolves it."""

    error: DeltaError


CommitResult: TypeAlias = Committed | VersionTaken | Rejected | Transient | Unknown


class Committer(Protocol):
    """Creates versions: a store with put-if-absent, or a catalog.

    For every version at most one request is ever answered with `Committed`. A request that is retried after `Transient`
    or `Unknown` is answered with `Committed` if its first attempt succeeded after all.
    """

    def commit(self, request: CommitRequest) -> CommitResult:
        """Try to create the version with this content. Raises only programming errors."""
        ...

    def later(self, table_location: str, version: int) -> Iterator[TakenVersion]:
        """Yield the versions that exist after one, in order. Raises StorageError, CatalogError."""
        ...
