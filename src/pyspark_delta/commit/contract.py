"""The contract of committers: one atomic attempt to make one version exist (Creation of New Log Entries; C012-C015).

Outcomes are values. Whoever asks decides what to do next; a committer never retries on its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from pyspark_delta.errors import DeltaError


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """One attempt: the whole content of the commit file of `version`.

    `transaction_id` is the `commitInfo.txnId` in the content: by it a writer recognises its own commit.
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
    """The version exists, is durable, and is this request's.

    `content` is given where an earlier attempt with the same transaction id made it, with other content.
    """

    version: int
    content: bytes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class VersionTaken:
    """The version exists and is another writer's: the first of `winners`. Nothing was changed."""

    winners: tuple[TakenVersion, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """The version does not exist, and asking again is of no use. Nothing was changed."""

    error: DeltaError


@dataclass(frozen=True, slots=True)
class Transient:
    """The version did not exist when it was looked for after a failure; the same request may be made again."""

    error: DeltaError


@dataclass(frozen=True, slots=True)
class Unknown:
    """Whether the version exists could not be found out; the same request may be made again, and settles it."""

    error: DeltaError


CommitResult: TypeAlias = Committed | VersionTaken | Rejected | Transient | Unknown


class Committer(Protocol):
    """What makes versions exist: a store with put-if-absent, or a catalog.

    For every version at most one request is ever answered with `Committed`. A request that is made again after
    `Transient` or `Unknown` is answered with `Committed` when its first attempt had landed after all.
    """

    def commit(self, request: CommitRequest) -> CommitResult:
        """Try to make the version exist with this content. Raises nothing but programming errors."""
        ...

    def later(self, table_location: str, version: int) -> Iterator[TakenVersion]:
        """The versions that exist after one, in order. Raises StorageError, CatalogError."""
        ...
