"""UNDO: restore the version before the newest commit that changed rows or the declaration of a table."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.log.commits import CommitText
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.difference import commits_between

_AT_ONCE = 100  # commits


def version_before_last_change(snapshot: Snapshot) -> int:
    """Return the version before the newest commit that added or removed rows, or changed schema or properties.

    Commits that only rearrange files, or only log something, are passed over. Raises InvalidOperationError if that
    commit created the table, or if the log does not reach back to it.
    """
    last = snapshot.version
    while last >= 0:
        commits = commits_between(snapshot, max(0, last - _AT_ONCE + 1), last)
        if not commits:
            break
        for text in snapshot.read_commits(tuple(reversed(commits))):
            if _changes(text):
                return _before(snapshot, text.version)
            last = text.version - 1
    raise InvalidOperationError(
        f"The log of '{snapshot.location}' has no commit from version {last + 1} on that changed the table, and does "
        "not reach back further. Name a version to restore.",
        error_class="DELTA_CANNOT_RESTORE_TABLE_VERSION",
    )


def _before(snapshot: Snapshot, version: int) -> int:
    if version == 0:
        raise InvalidOperationError(
            f"The newest change of '{snapshot.location}' is its creation, which cannot be undone. Delete the table.",
            error_class="DELTA_CANNOT_RESTORE_TABLE_VERSION",
        )
    return version - 1


def _changes(text: CommitText) -> bool:
    """Return True if a commit changes rows, schema, properties or protocol."""
    if text.find("metaData") or text.find("protocol"):
        return True
    return any(b'"dataChange":false' not in line for kind in ("add", "remove") for line in text.lines_of(kind))
