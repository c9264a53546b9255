"""What a transaction wants to commit, independent of the version it will become."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from pyspark_delta.actions.columns import MODIFICATION_TIME, PARTITION_VALUES, PATH, SIZE, STATS
from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction


def no_files() -> pa.Table:
    """An empty set of file actions."""
    return pa.schema([PATH, PARTITION_VALUES, SIZE, MODIFICATION_TIME, STATS]).empty_table()


@dataclass(frozen=True, slots=True)
class Operation:
    """What `commitInfo` says that a commit did: its name, parameters and metrics, by delta-spark's names.

    Parameters other than plain text are JSON texts; metrics are numbers.
    """

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    metrics: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What the transaction's result depends on: a winner that changes it is a conflict.

    `whole_table`: rows that appear anywhere. `transactions`: the application ids whose version was looked at.
    """

    whole_table: bool = False
    transactions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDraft:
    """A finished change, staged but not committed. Every attempt completes this same draft on a newer base.

    `adds` and `removes` are file actions in columns (`actions.columns`); data files of `adds` exist already.
    `protocol` and `metadata` are given only where they change.
    """

    operation: Operation
    adds: pa.Table = field(default_factory=no_files, hash=False)
    removes: pa.Table = field(default_factory=no_files, hash=False)
    data_change: bool = True
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: tuple[SetTransaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    reads: ReadSet = ReadSet()
    user_metadata: str | None = None
    engine_info: str = ""
    transaction_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def is_blind_append(self) -> bool:
        """Whether the commit removes no file, and depends on none that it read."""
        return not self.removes.num_rows and not self.reads.whole_table
