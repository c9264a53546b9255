"""A draft becomes the commit of one version: what depends on the base is completed here, in every attempt."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pyarrow as pa

from pyspark_delta.actions.encode import encode_action
from pyspark_delta.actions.encode_files import encode_adds, encode_removes
from pyspark_delta.actions.model import CommitInfo, DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.errors import AppendOnlyTableError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import APPEND_ONLY
from pyspark_delta.transaction.commit_info import commit_info
from pyspark_delta.transaction.draft import CommitDraft
from pyspark_delta.transaction.state import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyCommit:
    """A draft completed for one version: every action as it will be in the log. `timestamp` in ms since the epoch."""

    version: int
    timestamp: int
    commit_info: CommitInfo
    configuration: TableConfiguration  # of this version
    protocol: Protocol | None
    metadata: Metadata | None
    transactions: tuple[SetTransaction, ...]
    domains: tuple[DomainMetadata, ...]
    adds: pa.Table = field(hash=False)
    removes: pa.Table = field(hash=False)
    data_change: bool


def finish(draft: CommitDraft, base: TableState) -> ReadyCommit:
    """Complete the draft for the version after `base`. Raises AppendOnlyTableError."""
    configuration = _configuration(draft, base)
    _check_append_only(draft, configuration)
    timestamp = int(time.time() * 1000)
    return ReadyCommit(
        version=base.version + 1,
        timestamp=timestamp,
        commit_info=commit_info(draft, read_version=base.version, timestamp=timestamp),
        configuration=configuration,
        protocol=draft.protocol,
        metadata=draft.metadata,
        transactions=draft.transactions,
        domains=draft.domains,
        adds=draft.adds,
        removes=draft.removes,
        data_change=draft.data_change,
    )


def encode(ready: ReadyCommit) -> bytes:
    """The content of the commit file: one action per line, commitInfo first (C011, C193)."""
    single = (ready.commit_info, ready.protocol, ready.metadata, *ready.transactions, *ready.domains)
    lines = [encode_action(action) + b"\n" for action in single if action is not None]
    lines.extend(encode_removes(ready.removes, data_change=ready.data_change, deletion_timestamp=ready.timestamp))
    lines.extend(encode_adds(ready.adds, data_change=ready.data_change))
    return b"".join(lines)


def _configuration(draft: CommitDraft, base: TableState) -> TableConfiguration:
    before = base.configuration
    protocol = draft.protocol or (before.protocol if before else None)
    metadata = draft.metadata or (before.metadata if before else None)
    if protocol is None or metadata is None:
        raise ValueError("the first version of a table needs protocol and metadata")
    if before is not None and protocol is before.protocol and metadata is before.metadata:
        return before
    return TableConfiguration(protocol, metadata, before.location if before else "")


def _check_append_only(draft: CommitDraft, configuration: TableConfiguration) -> None:
    if not (draft.removes.num_rows and draft.data_change and configuration.supports("appendOnly", legacy_writer=2)):
        return
    if APPEND_ONLY.of(configuration.properties):
        raise AppendOnlyTableError(
            f"This {draft.operation.name} would remove rows, but the table has the property delta.appendOnly. Append, "
            "or set the property to false first."
        )
