"""Advance the base of a commit past the versions that other writers have committed since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark_delta.commit import Committer, TakenVersion
from pyspark_delta.errors import FileNotFoundInStoreError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.log.names import LOG_DIRECTORY, CommitName
from pyspark_delta.logs import logger
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.state import TableState
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import join
from pyspark_delta.transaction.conflicts import ConflictCheck, configuration_after
from pyspark_delta.transaction.winner import Winner

_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Advanced:
    """The newest base, and the check of the draft for it. `landed` is True if the newest version is the draft's own
    commit, made by an earlier attempt whose outcome was unknown.
    """

    state: TableState
    check: ConflictCheck
    landed: bool = False


def advance(
    check: ConflictCheck, base: TableState, taken: Sequence[TakenVersion], committer: Committer, store: ObjectStore
) -> Advanced:
    """Return the state after every existing version, if none of them conflicts with the draft.

    `taken` are versions already known, starting after `base`; the committer finds later ones. Raises a
    CommitConflictError.
    """
    for winner in _winners(base, taken, committer):
        if winner.info.txn_id == check.draft.transaction_id:
            return Advanced(state_after(winner, base), check, landed=True)
        by = winner.info.values
        _log.debug("Version %d of %s was taken by %s", winner.version, base.location, by.get("operation"))
        check = check.check(winner, base)
        base = state_after(winner, base)
    return Advanced(exactly_timed(check.draft, base, store), check)


def state_after(winner: Winner, base: TableState) -> TableState:
    """Return the state of the version that the winning commit created on `base`."""
    configuration = base.configuration
    if configuration is not None:
        configuration = configuration_after(winner, configuration)
    domains = {**base.domains, **{domain.domain: domain for domain in winner.domains}}
    time = winner.info.in_commit_timestamp or winner.info.values.get("timestamp")
    return replace(
        base,
        version=winner.version,
        configuration=configuration,
        domains={name: domain for name, domain in domains.items() if not domain.removed},
        timestamp=time if isinstance(time, int) else base.timestamp,
    )


def exactly_timed(draft: CommitDraft, base: TableState, store: ObjectStore) -> TableState:
    """Return the state with its commit file's time, if the draft may be the first with an in-commit timestamp (C359).

    In all other cases, only times that the log itself records are needed.
    """
    before = base.configuration
    if before is None or (draft.metadata is None and draft.protocol is None):
        return base
    after = TableConfiguration(draft.protocol or before.protocol, draft.metadata or before.metadata)
    if is_active(before, Feature.IN_COMMIT_TIMESTAMP) or not is_active(after, Feature.IN_COMMIT_TIMESTAMP):
        return base
    try:
        return replace(base, timestamp=store.status(_path(base.location, base.version)).modification_time)
    except FileNotFoundInStoreError:
        return base  # deleted by log cleanup: its time is long past


def _winners(base: TableState, taken: Sequence[TakenVersion], committer: Committer) -> Iterator[Winner]:
    version = base.version
    for known in taken:
        yield Winner.parse(known)
        version = known.version
    for found in committer.later(base.location, version):
        yield Winner.parse(found)


def _path(location: str, version: int) -> str:
    return join(location, LOG_DIRECTORY, str(CommitName(version)))
