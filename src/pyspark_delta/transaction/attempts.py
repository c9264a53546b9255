"""The attempts to commit a draft: each on a newer base, until one lands or a winner conflicts with it.

The draft never changes. An attempt whose outcome is unknown is made again for the same version: put-if-absent then
tells whether the earlier one landed, by the transaction id in the log.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from pyspark_delta.commit import (
    CommitRequest,
    Committed,
    Committer,
    FilesystemCommitter,
    Rejected,
    TakenVersion,
    Transient,
    Unknown,
    VersionTaken,
)
from pyspark_delta.errors import AttemptsExhaustedError, CommitStateUnknownError, DeltaError, FileNotFoundInStoreError
from pyspark_delta.log.names import LOG_DIRECTORY, CommitName
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState
from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.storage.paths import join
from pyspark_delta.transaction.conflicts import check_conflicts
from pyspark_delta.transaction.finish import encode, finish
from pyspark_delta.transaction.post_commit import post_commit
from pyspark_delta.transaction.winner import Winner


@dataclass(frozen=True, slots=True)
class AttemptPolicy:
    """How often and how patiently to try. Times are seconds; each wait is drawn at random up to its limit.

    `attempts` bounds how often another writer may win; `repetitions` how often one version is asked for again after
    failures of the store.
    """

    attempts: int = 1000
    repetitions: int = 5
    contention_wait: float = 0.2
    failure_wait: float = 0.2
    longest_wait: float = 10.0
    sleep: Callable[[float], None] = time.sleep


def commit_draft(
    draft: CommitDraft,
    base: TableState,
    *,
    committer: Committer | None = None,
    policy: AttemptPolicy = AttemptPolicy(),
) -> TableState:
    """Commit the draft as a version after `base`; the state of the table at that version.

    Raises a CommitConflictError that names the winner, AttemptsExhaustedError, CommitStateUnknownError, and whatever
    made the store reject the commit. Only after CommitStateUnknownError may the data files of the draft be in use.
    """
    store = store_for(base.location, base.storage_options)
    committer = committer or FilesystemCommitter(store)
    first = base.version + 1
    failures = 0
    for attempt in range(policy.attempts + policy.repetitions):
        ready = finish(draft, base)
        request = CommitRequest(
            table_location=base.location,
            version=ready.version,
            content=encode(ready),
            transaction_id=draft.transaction_id,
        )
        match committer.commit(request):
            case Committed():
                return _committed(ready, base, store)
            case VersionTaken(winners):
                base = advance(draft, base, winners, store)
                failures = 0
                policy.sleep(random.uniform(0, policy.contention_wait * min(1.0, attempt / 20)))
            case Rejected(error):
                raise error
            case Transient(error):
                failures = _again(failures, policy, error)
            case Unknown(error):
                failures = _again(failures, policy, _unknown(request, error))
            case other:
                assert_never(other)
    raise AttemptsExhaustedError(
        f"Other writers took versions {first} to {base.version} of '{base.location}' while this {draft.operation.name} "
        f"made {policy.attempts} attempts; nothing was committed. Run it again, or with fewer writers at once.",
        first=first,
        last=base.version,
    )


def advance(draft: CommitDraft, base: TableState, taken: Sequence[TakenVersion], store: ObjectStore) -> TableState:
    """The state after every version that is there by now, when none of them conflicts with the draft.

    `taken` are the versions known already, from the one after `base` on. Raises a CommitConflictError.
    """
    version = base.version
    for winner in taken:
        check_conflicts(draft, Winner.parse(winner))
        version = winner.version
    while (content := _read_commit(base.location, version + 1, store)) is not None:
        version += 1
        check_conflicts(draft, Winner.parse(TakenVersion(version, content)))
    return replace(base, version=version)


def _read_commit(location: str, version: int, store: ObjectStore) -> bytes | None:
    try:
        return store.read(join(location, LOG_DIRECTORY, str(CommitName(version))))
    except FileNotFoundInStoreError:
        return None


def _committed(ready: ReadyCommit, base: TableState, store: ObjectStore) -> TableState:
    post_commit(ready, base.location, store)
    domains = {**base.domains, **{domain.domain: domain for domain in ready.domains}}
    return replace(
        base,
        version=ready.version,
        configuration=ready.configuration,
        domains={name: domain for name, domain in domains.items() if not domain.removed},
        timestamp=ready.in_commit_timestamp or ready.timestamp,
    )


def _again(failures: int, policy: AttemptPolicy, error: DeltaError) -> int:
    """Wait before the same version is asked for again; raises `error` when that was done often enough."""
    if failures >= policy.repetitions:
        raise error
    policy.sleep(random.uniform(0, min(policy.longest_wait, policy.failure_wait * 2**failures)))
    return failures + 1


def _unknown(request: CommitRequest, cause: DeltaError) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"The store did not answer whether version {request.version} of '{request.table_location}' was committed: "
        f"{cause.message} Look for the txnId {request.transaction_id} in the history before you run it again.",
        version=request.version,
        transaction_id=request.transaction_id,
    )
