"""Combine two drafts on the same version: several operations in one commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import orjson
import pyarrow as pa

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.draft import CommitDraft, Operation

SEVERAL = "TRANSACTION"
"""The operation name of a commit with several operations."""


def combine(before: CommitDraft, more: CommitDraft) -> CommitDraft:
    """Return the first draft with the changes of the second; if both set the same value, the second wins.

    Raises InvalidOperationError if one commit cannot contain both: change data files represent all changes of a commit
    (C169), and either all file actions of a commit change data, or none.
    """
    _check_change_data(before, more)
    kinds = {draft.data_change for draft in (before, more) if _has_files(draft)}
    if len(kinds) > 1:
        raise InvalidOperationError(
            "A part of the transaction changes rows, another one (dataChange = false) only rearranges them, and one "
            "commit cannot do both. Make two transactions of it."
        )
    transactions = {t.app_id: t for t in (*before.transactions, *more.transactions)}
    domains = {d.domain: d for d in (*before.domains, *more.domains)}
    return replace(
        before,
        adds=together(before.adds, more.adds),
        removes=together(before.removes, more.removes),
        changes=together(before.changes, more.changes),
        data_change=kinds.pop() if kinds else before.data_change,
        protocol=more.protocol or before.protocol,
        metadata=more.metadata or before.metadata,
        transactions=tuple(transactions.values()),
        domains=tuple(domains.values()),
        reads=before.reads.union(more.reads),
        isolation=before.isolation or more.isolation,
        user_metadata=before.user_metadata if more.user_metadata is None else more.user_metadata,
        tags={**before.tags, **more.tags},
    )


def operation_of(parts: Sequence[Operation]) -> Operation:
    """Return what the history shows for operations in one commit: the single one, or their names and summed metrics."""
    if len(parts) == 1:
        return parts[0]
    metrics: Counter[str] = Counter()
    for part in parts:
        metrics.update(part.metrics)
    names = orjson.dumps([part.name for part in parts]).decode()
    engines = ", ".join(dict.fromkeys(part.engine for part in parts if part.engine))
    return Operation(SEVERAL, {"operations": names}, dict(metrics), engines)


def together(before: pa.Table, more: pa.Table) -> pa.Table:
    """Return the files of both, each a table with columns of `actions.columns`."""
    return pa.concat_tables([before, more], promote_options="default") if before.num_rows else more


def _check_change_data(before: CommitDraft, more: CommitDraft) -> None:
    told = any(draft.changes.num_rows for draft in (before, more))
    if told and any(_has_files(draft) and not draft.changes.num_rows for draft in (before, more)):
        raise InvalidOperationError(
            "The table has a change data feed, and a part of the transaction replaces some rows of a file. Its change "
            "data files would hide the rows of the other parts. Put appends last, or make two "
            "transactions of it."
        )


def _has_files(draft: CommitDraft) -> bool:
    return bool(draft.adds.num_rows or draft.removes.num_rows)
