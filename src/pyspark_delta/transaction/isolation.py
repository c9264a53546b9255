"""The isolation level of a commit: which concurrent commits it tolerates."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel
from pyspark_delta.protocol.properties import ISOLATION_LEVEL


def isolation_level(draft: CommitDraft, configuration: TableConfiguration | None) -> IsolationLevel:
    """Return the isolation level of the draft, or the table's `delta.isolationLevel`.

    A draft that only rearranges rows stays valid if others add rows, so snapshot isolation suffices, as in delta-spark.
    Raises InvalidTableError for an illegal property.
    """
    if draft.isolation is not None:
        return draft.isolation
    if not draft.data_change and not (draft.protocol or draft.metadata or draft.transactions or draft.domains):
        return IsolationLevel.SNAPSHOT
    if configuration is None:
        return IsolationLevel.SERIALIZABLE
    return IsolationLevel(ISOLATION_LEVEL.of(configuration.properties))
