"""The commitInfo of a commit file: writer, transaction id and time of a commit (C192-C197, C356)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from pyspark_delta.actions.model import CommitInfo


def commit_info(content: bytes) -> CommitInfo | None:
    """Return the `commitInfo` of a commit file, or of its beginning; None if it has none, or is not readable."""
    for line in content.splitlines():
        if b'"commitInfo"' not in line:
            continue
        try:
            action: Any = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        info = action.get("commitInfo") if isinstance(action, Mapping) else None
        if isinstance(info, Mapping):
            return CommitInfo(values=dict(info))
    return None


def transaction_id(content: bytes) -> str | None:
    """Return the `commitInfo.txnId` of a commit file; None if it has none, or is not readable."""
    info = commit_info(content)
    return None if info is None else info.txn_id
