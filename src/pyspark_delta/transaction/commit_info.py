"""`commitInfo`: who committed what, with delta-spark's names and order (Commit Provenance Information; C192)."""

from __future__ import annotations

from typing import Any

from pyspark_delta._version import __version__
from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.transaction.isolation import isolation_level

_FROM_NO_VERSION = frozenset(["CLONE", "CONVERT"])
"""Operations that make a table from version -1, as in delta-spark; others have read no version then."""


def commit_info(ready: ReadyCommit) -> CommitInfo:
    """Return the provenance of a commit; the in-commit timestamp comes first if there is one (C356)."""
    draft = ready.draft
    values: dict[str, Any] = {
        "inCommitTimestamp": ready.in_commit_timestamp,
        "timestamp": ready.timestamp,
        "operation": draft.operation.name,
        "operationParameters": dict(draft.operation.parameters),
        "readVersion": ready.version - 1 if ready.version or draft.operation.name in _FROM_NO_VERSION else None,
        "isolationLevel": isolation_level(draft, ready.configuration).value,
        "isBlindAppend": draft.is_blind_append,
        "operationMetrics": {name: str(value) for name, value in draft.operation.metrics.items()},
        "operationEngine": draft.operation.engine or None,  # of this package only: with metrics as JSON numbers
        "userMetadata": draft.user_metadata,
        "tags": {**ready.tags, **draft.tags} or None,
        "engineInfo": draft.engine_info or engine_info(),
        "txnId": draft.transaction_id,
    }
    return CommitInfo(values={name: value for name, value in values.items() if value is not None})


def engine_info(engine: str = "") -> str:
    """Return `pyspark-delta/<version>`, followed by the engine that ran the operation, such as `PySpark/4.3.0`."""
    return f"pyspark-delta/{__version__} {engine}".rstrip()
