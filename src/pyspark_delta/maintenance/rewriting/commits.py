"""Commits of rewritten bins, without a change of rows (C149). Bins that other writers made useless are given up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark_delta.errors import ConcurrentDeleteDeleteError, ConcurrentDeleteReadError, DeltaError
from pyspark_delta.maintenance.rewriting.reconciliation import Describe, Rearrangement
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel
from pyspark_delta.protocol.state import TableState
from pyspark_delta.transaction.attempts import commit_reconciled, never_lands
from pyspark_delta.write.written import delete_new, has_row_ids

_PRESERVED = {"delta.rowTracking.preserved": "true"}


@dataclass(frozen=True)
class CommittedBins:
    """A commit of bins: the version (None if all were given up), and the bins that are in it, and that are not."""

    version: int | None
    bins: Sequence[RewrittenBin]
    given_up: Sequence[RewrittenBin] = ()


@dataclass(frozen=True, kw_only=True)
class CommitWords:
    """What the commits of a run say: `describe` returns the operation with its metrics, for the bins of a commit."""

    describe: Describe
    user_metadata: str | None = None
    engine_info: str = ""


def commit_bins(base: TableState, bins: Sequence[RewrittenBin], words: CommitWords) -> CommittedBins:
    """Commit bins in one version after `base`, the state of the version at which their files were read.

    Bins that concurrent commits made useless are given up. Files that no commit names are deleted, unless it is unknown
    whether the commit was made. Raises as `commit_draft`, but not for concurrent changes of the files.
    """
    assert base.configuration is not None
    empty = CommitDraft(
        operation=words.describe(bins),
        data_change=False,
        isolation=IsolationLevel.SNAPSHOT,
        user_metadata=words.user_metadata,
        tags=_PRESERVED if has_row_ids(base.configuration) else {},
        engine_info=words.engine_info,
    )
    draft = Rearrangement(base, tuple(bins), words.describe).applied(empty)
    try:
        state, draft = commit_reconciled(draft, base)
    except (ConcurrentDeleteReadError, ConcurrentDeleteDeleteError):
        delete_bins(base, bins)
        return CommittedBins(None, (), bins)
    except DeltaError as error:
        if never_lands(error, base):
            delete_bins(base, bins)
        raise
    assert isinstance(draft.reconciler, Rearrangement)
    done = draft.reconciler.bins
    numbers = {one.source.number for one in done}
    used = {path for one in done for path in one.used_paths(base.location)}
    _delete(base, [path for one in (*bins, *done) for path in one.written if path not in used])
    return CommittedBins(state.version, done, [one for one in bins if one.source.number not in numbers])


def delete_bins(base: TableState, bins: Iterable[RewrittenBin]) -> None:
    """Delete the files of bins that no commit names; what cannot be deleted is left to vacuum."""
    _delete(base, [path for one in bins for path in one.written])


def _delete(base: TableState, paths: Sequence[str]) -> None:
    delete_new(base.location, base.storage_options, list(dict.fromkeys(paths)))
