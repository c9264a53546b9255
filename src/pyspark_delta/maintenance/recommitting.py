"""Committing live files again with other fields, such as statistics: the rows stay the same."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from pyspark_delta.protocol.draft import CommitDraft, ReadSet
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of

FILES_PER_COMMIT = 100_000


def commit_again(
    snapshot: Snapshot, files: pa.Table, changed: Callable[[pa.Table], pa.Table], draft: CommitDraft
) -> int | None:
    """Commit files of a snapshot again, as `changed` returns them, 100,000 in a commit; return the last version.

    Each commit is checked against all commits since the snapshot, where the files were live: a file that is removed
    meanwhile must not come back. `draft` is completed with the files. Raises CommitConflictError if that happens, after
    the commits before.
    """
    base, version = state_of(snapshot), None
    for start in range(0, files.num_rows, FILES_PER_COMMIT):
        part = files.slice(start, FILES_PER_COMMIT)
        reads = ReadSet(paths=frozenset(part["path"].to_pylist()))
        # A commit is recognized by its transaction id, so each needs its own.
        one = replace(draft, adds=changed(part), data_change=False, reads=reads, transaction_id=str(uuid.uuid4()))
        version = commit_draft(one, base).version
    return version
