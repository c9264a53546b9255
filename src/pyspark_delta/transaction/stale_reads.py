"""Check that rows read at an older version are the same at the version that a commit starts from."""

from __future__ import annotations

from pyspark_delta.commit import committer_for
from pyspark_delta.errors import ConcurrentDeleteReadError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, Operation, ReadSet
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.transaction.conflicts import ConflictCheck
from pyspark_delta.transaction.winner import Winner

_READ_AGAIN = (
    "Read the table again and repeat the operation. To use the rows of version {version} although the table has "
    "changed, read them with the option versionAsOf={version}."
)


def check_unchanged(
    reads: ReadSet,
    configuration: TableConfiguration,
    version: int,
    snapshot: Snapshot,
    operation: str,
    isolation: IsolationLevel | None = None,
) -> None:
    """Check that no commit after `version`, up to that of the snapshot, changed what was read at `version`.

    `configuration` is that of `version`; the predicates of `reads` are bound to it. Raises ConcurrentAppendError and
    ConcurrentDeleteReadError, the latter also if the log no longer has all these commits.
    """
    check = ConflictCheck(
        CommitDraft(operation=Operation(operation), reads=reads, isolation=isolation),
        snapshot.location,
        moment=f" at version {version}, which its DataFrame shows",
        remedy=_READ_AGAIN.format(version=version),
    )
    seen = version
    store = store_for(snapshot.location, snapshot.storage_options)
    for taken in committer_for(store, snapshot.catalog_table).later(snapshot.location, version):
        if taken.version > snapshot.version:
            break
        check.check_files(Winner.parse(taken), configuration)
        seen = taken.version
    if seen < snapshot.version:
        raise log_is_gone(version, snapshot, operation)


def log_is_gone(version: int, snapshot: Snapshot, operation: str) -> ConcurrentDeleteReadError:
    """Return the error for a version that is too old to be compared with that of the snapshot."""
    return ConcurrentDeleteReadError(
        f"The DataFrame of this {operation} shows version {version} of '{snapshot.location}', which is now at version "
        f"{snapshot.version}. The log no longer has all versions between them, so it is unknown whether its rows are "
        f"still the same; nothing was committed. {_READ_AGAIN.format(version=version)}",
        version=snapshot.version,
    )
