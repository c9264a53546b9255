"""Committing live files again with other fields, such as statistics: the rows stay the same."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from pyspark_delta.protocol.draft import CommitDraft, ReadSet
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

FILES_PER_COMMIT = 100_000


class Recommitted(NamedTuple):
    """The last version, None without files, and how many files were committed."""

    version: int | None
    num_files: int


def commit_again(
    snapshot: Snapshot,
    files: pa.Table,
    changed: Callable[[pa.Table], pa.Table],
    draft: CommitDraft,
    *,
    files_per_commit: int = FILES_PER_COMMIT,
    is_over: Callable[[], bool] = lambda: False,
) -> Recommitted:
    """Commit files of a snapshot again, as `changed` returns them. After the first commit, `is_over` may end it.

    Each commit is checked against all commits since the snapshot, where the files were live: a file that is removed
    meanwhile must not come back. `draft` is completed with the files. Raises CommitConflictError if that happens, after
    the commits before.
    """
    base, done = state_of(snapshot), Recommitted(None, 0)
    for start in range(0, files.num_rows, files_per_commit):
        if start and is_over():
            break
        part = files.slice(start, files_per_commit)
        reads = ReadSet(paths=frozenset(part["path"].to_pylist()))
        # A commit is recognized by its transaction id, so each needs its own.
        one = replace(draft, adds=changed(part), data_change=False, reads=reads, transaction_id=str(uuid.uuid4()))
        done = Recommitted(commit_draft(one, base).version, start + part.num_rows)
    return done
