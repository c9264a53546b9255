"""Dropping a feature: steps until no trace is left, what the history needs, and the commit that drops the feature."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark_delta.actions.model import Protocol
from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.display import html_facts, listed
from pyspark_delta.errors import (
    AttemptsExhaustedError,
    CommitConflictError,
    DeltaError,
    DeltaWarning,
    InvalidOperationError,
)
from pyspark_delta.features.support import check_writable
from pyspark_delta.maintenance.drop_feature.droppable import Drop, find_drop
from pyspark_delta.maintenance.drop_feature.history import (
    BARRIERS,
    History,
    add_barriers,
    checkpoint,
    look_back,
    truncate_history,
)
from pyspark_delta.maintenance.drop_feature.steps import Rewriter, Steps
from pyspark_delta.maintenance.drop_feature.traces import find_traces
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.protocol.intervals import format_interval
from pyspark_delta.protocol.properties import CHECKPOINT_PROTECTION_VERSION, DROP_FEATURE_RETENTION
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import AttemptPolicy, commit_draft
from pyspark_delta.transaction.base import state_of

_TRIES = 3  # of all steps, if other writers bring traces back
_RACES = 20  # commits of other writers in a row that take the version of the drop
_ONCE = AttemptPolicy(attempts=1)  # after a lost race, the newest version is looked through first


@dataclass(frozen=True)
class DropFeatureResult:
    """A dropped feature: the version of the commit that dropped it, and the protocol from then on."""

    feature: str
    version: int
    protocol: Protocol

    def facts(self) -> dict[str, object]:
        """Return the result as names and values."""
        return {
            "feature": self.feature,
            "version": self.version,
            "min_reader_version": self.protocol.min_reader_version,
            "min_writer_version": self.protocol.min_writer_version,
            "reader_features": sorted(self.protocol.reader_features or ()),
            "writer_features": sorted(self.protocol.writer_features or ()),
        }

    def _repr_html_(self) -> str:
        shown = {name: listed(value) if isinstance(value, list) else value for name, value in self.facts().items()}
        return html_facts("DropFeatureResult", shown)


def run_drop(
    snapshot: Snapshot, name: str, truncate: bool, rewrite: Rewriter, engine_info: str = ""
) -> DropFeatureResult:
    """Drop a feature from the newest version of a table; `snapshot` is an earlier one or the newest.

    Raises InvalidOperationError if the feature cannot be dropped, or not yet.
    """
    snapshot = snapshot.update()
    for _ in range(_TRIES):
        check_writable(snapshot.configuration, snapshot.location)
        drop = find_drop(snapshot.configuration, name, truncate)
        found = find_traces(snapshot, drop)
        if found.files:
            _check_catalog(snapshot)
        try:
            snapshot = Steps(drop, rewrite, engine_info).run(snapshot, found)
        except CommitConflictError:
            snapshot = snapshot.update()
            continue
        if found and find_traces(snapshot, drop):
            continue
        if drop.truncate:
            snapshot = _without_history(snapshot, drop, engine_info, cleared=bool(found))
        elif drop.is_protected:
            snapshot = add_barriers(snapshot, BARRIERS, engine_info)
        dropped = _commit_drop(snapshot, drop, engine_info)
        if dropped is not None:
            return _result(dropped, drop)
        snapshot = snapshot.update()
    raise InvalidOperationError(
        f"The feature '{name}' was not dropped from '{snapshot.location}', because concurrent writers use it. Stop "
        "them, and run it again.",
        error_class="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        sqlstate="40000",
        feature=name,
    )


def _check_catalog(snapshot: Snapshot) -> None:
    managed = managed_table(snapshot.catalog_table)
    if managed is not None:
        managed.require(Maintenance.OPTIMIZE)


# ----------------------------------------------------------------------------------------------------- the history
def _without_history(snapshot: Snapshot, drop: Drop, engine_info: str, *, cleared: bool) -> Snapshot:
    """Delete the versions with traces if they are old enough; return the newest version.

    Raises InvalidOperationError, which says when it can be run again, if they are not. `cleared` says that this run has
    removed traces from the newest version.
    """
    history = look_back(snapshot, drop)
    if history.traced is None:
        return snapshot
    if history.clean_at is None:
        snapshot = add_barriers(snapshot, 1, engine_info)
        history = look_back(snapshot, drop)
    if not cleared and time.time() * 1000 >= history.expires(snapshot):
        snapshot = truncate_history(snapshot)
        history = look_back(snapshot, drop)
        if history.traced is None:
            return snapshot
    raise _too_early(snapshot, drop, history, cleared)


def _too_early(snapshot: Snapshot, drop: Drop, history: History, cleared: bool) -> InvalidOperationError:
    name, expires = drop.feature.name, datetime.fromtimestamp(history.expires(snapshot) / 1000, UTC)
    length = format_interval(DROP_FEATURE_RETENTION.of(snapshot.properties))
    when = (
        f"They may be deleted from {expires:%Y-%m-%d %H:%M} UTC on, because {DROP_FEATURE_RETENTION.name} is "
        f"'{length}'. Run it again then"
    )
    other = "." if drop.removal.needs_truncation else ", or drop the feature without truncating the history."
    if drop.removal.needs_truncation:
        error_class = "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
        what = f"The versions that the feature '{name}' protects are still in the history of '{snapshot.location}'."
    elif cleared:
        error_class = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
        what = f"The newest version of '{snapshot.location}' no longer uses the feature '{name}', but earlier ones do."
    else:
        error_class = "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
        what = f"Earlier versions of '{snapshot.location}' use the feature '{name}'."
    return InvalidOperationError(
        f"{what} {when}{other}",
        error_class=error_class,
        sqlstate="22KD0",
        feature=name,
        newest_version=history.traced,
        finish_after=expires,
    )


# -------------------------------------------------------------------------------------------------------- the drop
def _commit_drop(snapshot: Snapshot, drop: Drop, engine_info: str) -> Snapshot | None:
    """Commit the drop as the version right after one without traces; return it, or None if traces have come back."""
    for _ in range(_RACES):
        try:
            version = commit_draft(_draft(snapshot, drop, engine_info), state_of(snapshot), policy=_ONCE).version
        except (CommitConflictError, AttemptsExhaustedError):
            snapshot = snapshot.update()
            if (
                find_traces(snapshot, drop)
                or not drop.names <= find_drop(snapshot.configuration, drop.feature.name, drop.truncate).names
            ):
                return None
            continue
        assert version is not None
        return snapshot.at_version(version)
    return None


def _draft(snapshot: Snapshot, drop: Drop, engine_info: str) -> CommitDraft:
    gone = {name.casefold() for name in drop.removal.properties}
    properties = {name: value for name, value in snapshot.properties.items() if name.casefold() not in gone}
    if drop.is_protected:
        properties[CHECKPOINT_PROTECTION_VERSION.name] = str(snapshot.version + 1)
    metadata = replace(snapshot.metadata, configuration=properties)
    known = snapshot.domains() if drop.removal.domains else {}
    return CommitDraft(
        operation=Operation("DROP FEATURE", {"featureName": min(drop.names), "truncateHistory": drop.truncate}),
        protocol=drop.protocol_after(snapshot.protocol),
        metadata=None if metadata == snapshot.metadata else metadata,
        domains=tuple(replace(known[name], removed=True) for name in drop.removal.domains if name in known),
        engine_info=engine_info,
    )


def _result(dropped: Snapshot, drop: Drop) -> DropFeatureResult:
    """Return the result, after a checkpoint for clients without the feature."""
    if drop.removal.protects_history:
        try:
            checkpoint(dropped)
        except DeltaError as error:  # the next checkpoint serves as well
            warnings.warn(
                DeltaWarning(
                    f"The feature '{drop.feature.name}' is dropped from '{dropped.location}', but the checkpoint of "
                    f"version {dropped.version} could not be written: {error.message}"
                ),
                stacklevel=3,
            )
    return DropFeatureResult(drop.feature.name, dropped.version, dropped.protocol)
