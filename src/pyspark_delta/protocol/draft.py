"""The changes that a transaction commits, independent of the resulting version."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from typing import Protocol as Interface

import pyarrow as pa

from pyspark_delta.actions.columns import MODIFICATION_TIME, PARTITION_VALUES, PATH, SIZE, STATS
from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.configuration import TableConfiguration


def no_files() -> pa.Table:
    """Return an empty table of file actions."""
    return pa.schema([PATH, PARTITION_VALUES, SIZE, MODIFICATION_TIME, STATS]).empty_table()


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation of a commit in `commitInfo`: its name, parameters and metrics, with delta-spark's names.

    Parameters other than strings, numbers and booleans are JSON; metrics are numbers. `engine` is the engine that ran a
    statement; empty for other operations.
    """

    name: str
    parameters: Mapping[str, str | bool | int | None] = field(default_factory=dict, hash=False)
    metrics: Mapping[str, int] = field(default_factory=dict, hash=False)
    engine: str = ""


class IsolationLevel(Enum):
    """Which concurrent changes of what a transaction has read are allowed; the values are those in the log."""

    SERIALIZABLE = "Serializable"  # as if the commits ran one after another, in version order
    WRITE_SERIALIZABLE = "WriteSerializable"  # rows of concurrent blind appends may be missed
    SNAPSHOT = "SnapshotIsolation"  # added rows do not matter: the commit only rearranges rows that it read


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What the transaction's result depends on: a concurrent commit that changes it is a conflict.

    `whole_table`: all rows, including added ones. `predicates`: added rows that may match one of these, which are bound
    to the schema of the table. `paths`: the files, by path in the log, whose rows were read. `transactions`: the
    application ids whose version was read. `time_zone` is the session time zone in which the predicates read partition
    values; without it, timestamp partition values are not used.
    """

    whole_table: bool = False
    predicates: tuple[Expression, ...] = ()
    paths: frozenset[str] = frozenset()
    transactions: frozenset[str] = frozenset()
    time_zone: str | None = None

    @property
    def is_empty(self) -> bool:
        """True if no rows of the table were read."""
        return not (self.whole_table or self.predicates or self.paths)

    def union(self, other: ReadSet) -> ReadSet:
        """Return the union of both."""
        zones = {reads.time_zone for reads in (self, other) if reads.predicates}
        return ReadSet(
            whole_table=self.whole_table or other.whole_table,
            predicates=self.predicates + other.predicates,
            paths=self.paths | other.paths,
            transactions=self.transactions | other.transactions,
            time_zone=zones.pop() if len(zones) == 1 else None,
        )


class Reconciler(Interface):
    """Adapts a draft that only rearranges rows to commits that changed the files it reads."""

    def reconcile(self, draft: CommitDraft, winner: Any, configuration: TableConfiguration) -> CommitDraft | None:
        """Return the draft that does the same after a winning commit (`transaction.winner`), itself if nothing changes.

        `configuration` is that of the table after the winner. None if the draft cannot be adapted, which is a conflict.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDraft:
    """A complete change, staged but not committed. Every attempt completes the same draft on the newest version.

    `adds`, `removes` and `changes` (change data files) are file actions in columns (`actions.columns`); the data files
    of `adds` and `changes` already exist. `protocol` and `metadata` are None if they do not change. If `isolation` is
    None, the table's own level applies. `tags` are those of `commitInfo`. `reconciler` adapts the draft to concurrent
    changes of its files, which are a conflict otherwise.
    """

    operation: Operation
    adds: pa.Table = field(default_factory=no_files, hash=False)
    removes: pa.Table = field(default_factory=no_files, hash=False)
    changes: pa.Table = field(default_factory=no_files, hash=False)
    data_change: bool = True
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: tuple[SetTransaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    reads: ReadSet = ReadSet()
    isolation: IsolationLevel | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    engine_info: str = ""
    reconciler: Reconciler | None = field(default=None, repr=False, compare=False)
    transaction_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def is_empty(self) -> bool:
        """True if the commit would leave the table as it is, with one version more."""
        return not (self.has_files or self.protocol or self.metadata or self.transactions or self.domains)

    @property
    def has_files(self) -> bool:
        """True if files are added, removed or changed."""
        return bool(self.adds.num_rows or self.removes.num_rows or self.changes.num_rows)

    @property
    def is_blind_append(self) -> bool:
        """True if the commit only adds files, and depends on no file that it read."""
        return not (self.removes.num_rows or self.changes.num_rows) and self.reads.is_empty
