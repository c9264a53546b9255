"""A commit that is complete for one version: features have completed it, and it can be encoded into the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyCommit:
    """A draft completed for one version. Times are ms since the epoch.

    `protocol` and `metadata` are None if the version does not change them; `configuration` is always that of this
    version. `in_commit_timestamp` is None if the table has none.
    """

    draft: CommitDraft
    version: int
    timestamp: int
    configuration: TableConfiguration
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: tuple[SetTransaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    adds: pa.Table = field(hash=False)
    removes: pa.Table = field(hash=False)
    in_commit_timestamp: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)

    def with_metadata(self, metadata: Metadata) -> ReadyCommit:
        """Return the commit with other metadata, which it then contains."""
        configuration = replace(self.configuration, metadata=metadata)
        return replace(self, metadata=metadata, configuration=configuration)

    @property
    def data_change(self) -> bool:
        """True if the commit changes which rows the table has."""
        return self.draft.data_change
