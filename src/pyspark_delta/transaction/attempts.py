"""The attempts to commit a draft: each on a newer base, until one succeeds or conflicts with a winning commit.

The draft never changes. An attempt with an unknown outcome is repeated for the same version: put-if-absent then shows,
by the transaction id in the log, whether the earlier attempt succeeded.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from pyspark_delta.commit import (
    CommitRequest,
    Committed,
    Committer,
    Rejected,
    TakenVersion,
    Transient,
    Unknown,
    VersionTaken,
    check_committer,
    committer_for,
)
from pyspark_delta.errors import (
    AttemptsExhaustedError,
    CatalogError,
    CommitConflictError,
    CommitStateUnknownError,
    DeltaError,
    InvalidOperationError,
    InvalidTableError,
    StorageError,
    UnsupportedTableError,
)
from pyspark_delta.logs import logger
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState
from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.storage.paths import split
from pyspark_delta.transaction.advance import advance, exactly_timed, state_after
from pyspark_delta.transaction.conflicts import ConflictCheck
from pyspark_delta.transaction.finish import encode, finish
from pyspark_delta.transaction.post_commit import post_commit
from pyspark_delta.transaction.winner import Winner

_log = logger(__name__)
# After these errors, no attempt has succeeded and none can succeed later. Errors of remote stores are not among them: a
# request that seemed to fail may still arrive.
_NEVER_LANDED = (
    CommitConflictError,
    AttemptsExhaustedError,
    InvalidOperationError,
    InvalidTableError,
    UnsupportedTableError,
)


@dataclass(frozen=True, slots=True)
class AttemptPolicy:
    """How often and how long to retry. Times are in seconds; each wait is random up to its limit.

    `attempts` limits how often another writer may commit first; `repetitions` limits how often one version is retried
    after failures of the store. After losing a race, a writer waits at most `contention_waits` times the duration of
    the attempt, and at most `contention_wait`. This keeps several writers from repeating the same work at once when
    only one of them can win.
    """

    attempts: int = 1000
    repetitions: int = 5
    contention_waits: float = 4.0
    contention_wait: float = 2.0
    failure_wait: float = 0.2
    longest_wait: float = 10.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


def commit_draft(
    draft: CommitDraft,
    base: TableState,
    *,
    committer: Committer | None = None,
    policy: AttemptPolicy = AttemptPolicy(),
) -> TableState:
    """Commit the draft as a version after `base`; return the state of the table at that version.

    Raises as `commit_reconciled`.
    """
    return commit_reconciled(draft, base, committer=committer, policy=policy)[0]


def commit_reconciled(
    draft: CommitDraft,
    base: TableState,
    *,
    committer: Committer | None = None,
    policy: AttemptPolicy = AttemptPolicy(),
) -> tuple[TableState, CommitDraft]:
    """Commit the draft as a version after `base`; return the state of the table at that version, and the draft that was
    committed, which the draft's reconciler may have adapted.

    Raises a CommitConflictError that names the winning commit, AttemptsExhaustedError, CommitStateUnknownError, and any
    error with which the store or the catalog rejects the commit. Only after CommitStateUnknownError may the data files
    of the draft be in use.
    """
    store = store_for(base.location, base.storage_options)
    committer = committer or committer_for(store, base.catalog_table)
    check = ConflictCheck(draft, base.location)
    base = exactly_timed(draft, base, store)
    ready, request = _complete(draft, base)
    check_committer(ready.configuration, base.configuration, committer, base.location)
    first, lost, failures, begun = request.version, 0, 0, policy.clock()
    start = time.perf_counter()
    unknown: CommitStateUnknownError | None = None  # an earlier attempt at this version may have succeeded
    while True:
        match committer.commit(request):
            case Committed(version, content):
                if content is None:
                    _log_commit(draft, version, base.location, lost + failures + 1, start)
                    return _committed(ready, base, store), draft
                # An earlier attempt made this commit, with another timestamp.
                return state_after(Winner.parse(TakenVersion(version, content)), base), draft
            case VersionTaken(winners):
                policy.sleep(random.uniform(0, _contention_wait(policy, policy.clock() - begun)))
                begun = policy.clock()  # later commits of other writers are read with the rest
                try:
                    advanced = advance(check, base, winners, committer, store)
                except (
                    StorageError,
                    CatalogError,
                ) as error:  # the winners are read again
                    failures = _again(failures, policy, unknown or error)
                    continue
                if advanced.landed:
                    _log_commit(draft, advanced.state.version, base.location, lost + failures + 1, start)
                    return advanced.state, draft
                lost, failures, base, unknown = lost + 1, 0, advanced.state, None
                check, draft = advanced.check, advanced.check.draft
                if lost >= policy.attempts:
                    raise _exhausted(draft, base, first, lost)
                ready, request = _complete(draft, base)
            case Rejected(error):
                raise unknown or error
            case Transient(error):
                failures = _again(failures, policy, unknown or error)
            case Unknown(error):
                unknown = _unknown(request, error)
                failures = _again(failures, policy, unknown)
            case other:
                assert_never(other)


def never_lands(error: BaseException, base: TableState) -> bool:
    """Return True if the commit that raised an error did not succeed and cannot succeed later.

    Then nothing needs the data files of its draft. A local store has no requests that may still arrive.
    """
    if isinstance(error, StorageError):
        return base.catalog_table is None and split(base.location)[0] == "file"
    return isinstance(error, _NEVER_LANDED)


def _complete(draft: CommitDraft, base: TableState) -> tuple[ReadyCommit, CommitRequest]:
    ready = finish(draft, base)
    return ready, CommitRequest(
        table_location=base.location,
        version=ready.version,
        content=encode(ready),
        transaction_id=draft.transaction_id,
    )


def _committed(ready: ReadyCommit, base: TableState, store: ObjectStore) -> TableState:
    post_commit(ready, base, store)
    domains = {**base.domains, **{domain.domain: domain for domain in ready.domains}}
    return replace(
        base,
        version=ready.version,
        configuration=ready.configuration,
        domains={name: domain for name, domain in domains.items() if not domain.removed},
        timestamp=ready.in_commit_timestamp or ready.timestamp,
    )


def _again(failures: int, policy: AttemptPolicy, error: DeltaError) -> int:
    """Wait before the same version is retried; raise `error` if the limit of retries is reached."""
    if failures >= policy.repetitions:
        raise error
    _log.debug("Trying the same version again, failure %d: %s", failures + 1, error.message)
    policy.sleep(random.uniform(0, min(policy.longest_wait, policy.failure_wait * 2**failures)))
    return failures + 1


def _log_commit(draft: CommitDraft, version: int | None, location: str, attempts: int, start: float) -> None:
    """Log a commit with the metrics of its history."""
    if _log.isEnabledFor(logging.INFO):
        operation = draft.operation
        metrics = "".join(f", {name}={value}" for name, value in operation.metrics.items() if value)
        files = f"{draft.adds.num_rows} files added, {draft.removes.num_rows} removed"
        seconds = time.perf_counter() - start
        text = "Committed %s as version %d of %s: %s%s; attempts=%d, %.3f s"
        _log.info(text, operation.name, version, location, files, metrics, attempts, seconds)


def _contention_wait(policy: AttemptPolicy, attempt: float) -> float:
    return min(policy.contention_wait, policy.contention_waits * attempt)


def _exhausted(draft: CommitDraft, base: TableState, first: int, attempts: int) -> AttemptsExhaustedError:
    return AttemptsExhaustedError(
        f"Other writers took versions {first} to {base.version} of '{base.location}' while this {draft.operation.name} "
        f"made {attempts} attempts; nothing was committed. Run it again, or with fewer concurrent writers.",
        first=first,
        last=base.version,
    )


def _unknown(request: CommitRequest, cause: DeltaError) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"It is unknown whether version {request.version} of '{request.table_location}' was committed: {cause.message} "
        f"Before you run it again, check whether the history contains the txnId {request.transaction_id}.",
        version=request.version,
        transaction_id=request.transaction_id,
    )
