"""Combine two drafts: several operations in one commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.transaction.overlap import PathSet

SEVERAL = "TRANSACTION"
"""The operation name of a commit with several operations."""


def combine(before: CommitDraft, more: CommitDraft) -> CommitDraft:
    """Return the first draft with the changes of the second; if both set the same value, the second wins.

    Raises InvalidOperationError if one commit cannot contain both: change data files represent all changes of a commit
    (C169), and either all file actions of a commit change data, or none.
    """
    _check_change_data(before, more)
    return _combined(before, more)


def _combined(before: CommitDraft, more: CommitDraft) -> CommitDraft:
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


def follow(before: CommitDraft, more: CommitDraft, location: str, net: pa.Table | None = None) -> CommitDraft:
    """Return the first draft with the changes of a second one, which was made for the table that the first would leave.

    The second draft may remove files that the first one adds, and give them other deletion vectors. The commit then
    has neither of the two actions. `net` are change data files that show each row once, in place of those of both. If
    they show none, but files change, those of both stay: readers would take the rows of all these files for changed.

    Raises the errors of `combine`, and without `net` InvalidOperationError if change data files would have to represent
    two changes of one row.
    """
    if not before.has_files:
        return combine(before, more)
    added, removed = (PathSet.of(files.column("path"), location) for files in (before.adds, before.removes))
    _check_removed_once(more, removed, added)
    replaced = PathSet.of(more.removes.column("path"), location).holds(before.adds)
    if net is None:
        _check_changed_once(before, more, location)
        _check_change_data(before, more)
    earlier = replace(before, adds=before.adds.filter(pc.invert(replaced)))
    own = before.adds.filter(pc.invert(removed.holds(before.adds)))
    later = replace(
        more,
        removes=more.removes.filter(pc.invert(added.holds(more.removes))),
        reads=replace(more.reads, paths=_others(more.reads.paths, PathSet.of(own.column("path"), location))),
    )
    both = _combined(earlier, later)
    is_net = net is not None and (net.num_rows or not (both.adds.num_rows or both.removes.num_rows))
    return replace(both, changes=net) if is_net else both


def changed_again(before: CommitDraft, more: CommitDraft, location: str) -> pa.Table:
    """Return the files of the first draft whose rows the second one may change again, if change data files show it.

    A file with another deletion vector has the rows of the version before, so each of them is changed once.
    """
    if not (before.changes.num_rows or more.changes.num_rows):
        return before.adds.slice(0, 0)
    written = before.adds.filter(pc.invert(PathSet.of(before.removes.column("path"), location).holds(before.adds)))
    return written.filter(PathSet.of(more.removes.column("path"), location).holds(written))


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
            "data files would hide the rows of the other parts. Write change data files for these too, or make two "
            "transactions of it."
        )


def _has_files(draft: CommitDraft) -> bool:
    return bool(draft.adds.num_rows or draft.removes.num_rows)


def _check_removed_once(more: CommitDraft, removed: PathSet, added: PathSet) -> None:
    """Refuse a draft that was made for the version before: it removes a file that the transaction has removed."""
    again = more.removes.filter(pc.and_not(removed.holds(more.removes), added.holds(more.removes)))
    if again.num_rows:
        raise InvalidOperationError(
            f"{more.operation.name} removes the file '{again['path'][0]}', which the transaction has removed already. "
            "Make the draft for `row_snapshot`, which shows the files that are left.",
            operation=more.operation.name,
        )


def _check_changed_once(before: CommitDraft, more: CommitDraft, location: str) -> None:
    """Refuse to change rows that the transaction wrote if change data files represent its changes (C169)."""
    written = changed_again(before, more, location)
    if written.num_rows:
        raise InvalidOperationError(
            f"{more.operation.name} changes rows of the file '{written['path'][0]}', which the transaction itself "
            "wrote. The table has a change data feed, which would show two changes of one row in one version. Stage "
            "change data files that show each row once (net_changes), or make two transactions of it.",
            operation=more.operation.name,
        )


def _others(paths: frozenset[str], own: PathSet) -> frozenset[str]:
    """Return the paths of files that are in the table, without those that the transaction added."""
    files = pa.table({"path": pa.array(sorted(paths), pa.string())})
    return frozenset(files.filter(pc.invert(own.holds(files)))["path"].to_pylist())
