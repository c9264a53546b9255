"""Which maintenance a table is worth: each decision with its reason, from the log alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import pyarrow.compute as pc

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.display import counted
from pyspark_delta.features import supported_features
from pyspark_delta.log.history import commits_newest_first
from pyspark_delta.log.listing import list_back
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.drop_feature import DropFeaturePlan, plan_drop_feature
from pyspark_delta.maintenance.drop_feature.droppable import known_feature
from pyspark_delta.maintenance.layout.plan import LayoutPlan
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.policy.policy import MaintenancePolicy, MaintenanceTask
from pyspark_delta.maintenance.statistics import plan_statistics
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import CHECKPOINT_INTERVAL
from pyspark_delta.snapshot import Snapshot

_MOST_COMMITS = 10_000  # that are looked through for the last vacuum


def _allows(snapshot: Snapshot, maintenance: Maintenance) -> bool:
    managed = managed_table(snapshot.catalog_table)
    return managed is None or maintenance in managed.info.allowed_maintenance


def _decide_optimize(snapshot: Snapshot, policy: MaintenancePolicy) -> MaintenanceTask:
    if not _allows(snapshot, Maintenance.OPTIMIZE):
        return MaintenanceTask("optimize", False, "the catalog does not allow it")
    plan = plan_optimize(snapshot, OptimizeRequest())
    saved = max(0, plan.files_removed - plan.files_added)
    why = f"it would replace {counted(plan.files_removed, 'file')} by about {plan.files_added:,}"
    due = saved >= policy.saved_files
    if isinstance(plan, LayoutPlan):
        new, size = plan.chosen.other_bytes, snapshot.size_in_bytes()
        why += f", and {new:,} of {counted(size, 'byte')} are not clustered"
        due = due or (new > 0 and new >= policy.unclustered_share * size)
    return MaintenanceTask("optimize", due, why)


def _decide_purge(snapshot: Snapshot, policy: MaintenancePolicy) -> MaintenanceTask:
    if not _allows(snapshot, Maintenance.OPTIMIZE):
        return MaintenanceTask("purge", False, "the catalog does not allow it")
    files = vectors = 0
    for batch in snapshot.read_files(FileRequest(("deletion_vector",))):
        files += batch.num_rows
        vectors += pc.sum(pc.is_valid(batch.column("deletion_vector"))).as_py() or 0
    why = f"{vectors:,} of {counted(files, 'file')} have deletion vectors"
    return MaintenanceTask("purge", vectors > 0 and vectors >= policy.vector_share * files, why)


def _decide_statistics(snapshot: Snapshot, policy: MaintenancePolicy) -> MaintenanceTask:
    if not policy.statistics:
        return MaintenanceTask("statistics", False, "the policy excludes it")
    if not _allows(snapshot, Maintenance.OPTIMIZE):
        return MaintenanceTask("statistics", False, "the catalog does not allow it")
    files = plan_statistics(snapshot).files.num_rows
    return MaintenanceTask("statistics", files > 0, f"{counted(files, 'file')} without statistics")


def drops(snapshot: Snapshot, policy: MaintenancePolicy, engine_info: str = "") -> tuple[DropFeaturePlan, ...]:
    """Return the plans to drop the features that the policy names and the table has.

    The history is truncated where it has to be, so that no feature replaces the dropped one. Raises
    InvalidOperationError for an unknown feature, and one that cannot be dropped.
    """
    supported = supported_features(snapshot.configuration)
    found = [feature for feature in map(known_feature, policy.drop_features) if feature.name in supported]
    return tuple(
        plan_drop_feature(snapshot, feature.name, truncate_history=_truncates(feature), engine_info=engine_info)
        for feature in found
    )


def _truncates(feature: TableFeature) -> bool:
    removal = feature.removal
    return removal is not None and (removal.protects_history or removal.needs_truncation)


def is_drop_due(plan: DropFeaturePlan) -> bool:
    """Return True if a feature has traces in the newest version, or can be dropped now."""
    return bool(plan.traces) or plan.finish_after is None


def _decide_drops(snapshot: Snapshot, policy: MaintenancePolicy) -> MaintenanceTask:
    if not policy.drop_features:
        return MaintenanceTask("drop features", False, "the policy names none")
    plans = drops(snapshot, policy)
    said = [f"{plan.drop.feature.name} {_drop_state(plan)}" for plan in plans]
    due = any(is_drop_due(plan) for plan in plans)
    return MaintenanceTask("drop features", due, ", ".join(said) or "the table has none that the policy names")


def _drop_state(plan: DropFeaturePlan) -> str:
    if plan.traces:
        return "has traces in the newest version"
    if plan.finish_after is None:
        return "can be dropped"
    return f"can be dropped from {plan.finish_after:%Y-%m-%d %H:%M} UTC on"


def _decide_vacuum(snapshot: Snapshot, policy: MaintenancePolicy) -> MaintenanceTask:
    if policy.vacuum_days is None:
        return MaintenanceTask("vacuum", False, "the policy excludes it")
    if not _allows(snapshot, Maintenance.VACUUM):
        return MaintenanceTask("vacuum", False, "the catalog does not allow it")
    since = datetime.now(UTC) - timedelta(days=policy.vacuum_days)
    last = next(_vacuums_since(snapshot, since), None)
    if last is not None:
        return MaintenanceTask("vacuum", False, f"the last one was at {last:%Y-%m-%d %H:%M} UTC")
    created = snapshot.metadata.created_time
    if created is not None and datetime.fromtimestamp(created / 1000, UTC) > since:
        return MaintenanceTask("vacuum", False, f"the table is younger than {policy.vacuum_days:g} days")
    return MaintenanceTask("vacuum", True, f"there was none for {policy.vacuum_days:g} days")


def _vacuums_since(snapshot: Snapshot, since: datetime) -> Iterator[datetime]:
    for commit in commits_newest_first(snapshot, _MOST_COMMITS):
        if commit["timestamp"] is None or commit["timestamp"] < since:
            return
        if commit["operation"] == "VACUUM END":
            yield commit["timestamp"]


def _decide_checkpoint(snapshot: Snapshot, policy: MaintenancePolicy) -> MaintenanceTask:
    interval = policy.checkpoint_commits or CHECKPOINT_INTERVAL.of(snapshot.properties)
    known = list_back(snapshot.store, snapshot.location, snapshot.version).checkpoints()
    commits = snapshot.version - max((one.version for one in known), default=-1)
    why = f"readers replay {counted(commits, 'commit')}, the interval is {interval:,}"
    return MaintenanceTask("checkpoint", commits >= interval, why)


DECISIONS: Mapping[str, Callable[[Snapshot, MaintenancePolicy], MaintenanceTask]] = MappingProxyType(
    {
        "optimize": _decide_optimize,
        "purge": _decide_purge,
        "statistics": _decide_statistics,  # after those that write new files
        "drop features": _decide_drops,
        "vacuum": _decide_vacuum,
        "checkpoint": _decide_checkpoint,  # last, so that it covers what the others commit
    }
)
"""The decisions by the names of their tasks, in the order in which the tasks are done."""
