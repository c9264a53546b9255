"""Auto compaction: after a commit, combine the small files of the partitions that it wrote to, if they are many.

Counts come from the log, so they include the files of all writers. An error is a warning: the commit stands.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.errors import DeltaError, DeltaWarning
from pyspark_delta.log.reconciliation import file_keys
from pyspark_delta.maintenance.budget import Budget
from pyspark_delta.maintenance.layout.plan import LayoutPlan
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.rewriting.bins import pack, worthwhile
from pyspark_delta.maintenance.rewriting.candidates import GROUP
from pyspark_delta.maintenance.rewriting.metrics import RewriteResult
from pyspark_delta.maintenance.rewriting.plan import RewritePlan
from pyspark_delta.progress import quietly
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import AUTO_COMPACT, AUTO_OPTIMIZE
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.difference import commits_between
from pyspark_delta.transaction.winner import Winner

_ENABLED = ("true", "auto", "legacy")


@dataclass(frozen=True, kw_only=True)
class AutoCompaction:
    """The settings of auto compaction; `enabled` overrides the table's properties.

    A partition is compacted if it has at least `min_files` files below `min_size` bytes, by default half of
    `target_size`. After `seconds` no more files are begun; the rest is for the next commit.
    """

    enabled: bool | None = None
    min_files: int = 50
    target_size: int = 128 << 20
    min_size: int | None = None
    seconds: float = 10.0


DEFAULT = AutoCompaction()
"""The settings that hold unless a session has others."""


def is_auto_compacted(configuration: TableConfiguration, settings: AutoCompaction = DEFAULT) -> bool:
    """Return True if commits to a table are followed by a compaction."""
    if settings.enabled is not None:
        return settings.enabled
    value = AUTO_COMPACT.of(configuration.properties)
    return value in _ENABLED if value is not None else bool(AUTO_OPTIMIZE.of(configuration.properties))


def compact_after(
    current: Callable[[], Snapshot],
    version: int | None,
    configuration: TableConfiguration | None,
    settings: AutoCompaction = DEFAULT,
    *,
    place: Callable[[RewritePlan], RewritePlan] | None = None,
    engine_info: str = "",
) -> RewriteResult | None:
    """Compact what a commit of `version` left in too many small files; return None if there was nothing to do.

    `configuration` is that of the committed version; both are None if nothing was committed. `current` opens the latest
    version; it is called only if the table is compacted at all. `place` chooses where the plan runs, by default in this
    process. An error becomes a DeltaWarning: if it were raised, the caller would write the rows again.
    """
    if version is None or configuration is None or not is_auto_compacted(configuration, settings):
        return None
    try:
        with quietly():
            snapshot = current()
            if not _is_allowed(snapshot):
                return None
            plan = plan_auto_compaction(snapshot, version, settings)
            if plan is None:
                return None
            return (plan if place is None else place(plan)).execute(engine_info=engine_info)
    except Exception as error:
        reason = error.message if isinstance(error, DeltaError) else f"{type(error).__name__}: {error}"
        table = f" of '{configuration.location}'" if configuration.location else ""
        text = f"Version {version}{table} is committed, but it was not compacted: {reason}"
        warnings.warn(DeltaWarning(text), stacklevel=4)
        return None


def _is_allowed(snapshot: Snapshot) -> bool:
    managed = managed_table(snapshot.catalog_table)
    return managed is None or Maintenance.OPTIMIZE in managed.info.allowed_maintenance


def plan_auto_compaction(snapshot: Snapshot, version: int, settings: AutoCompaction = DEFAULT) -> RewritePlan | None:
    """Return the compaction that a commit makes worthwhile, without writing anything; None if there is none."""
    added = _added_paths(snapshot, version)
    if not len(added):
        return None
    target = settings.target_size
    request = OptimizeRequest(
        target_size=target,
        min_size=settings.min_size or target // 2,
        max_deleted_share=1.0,
        budget=Budget(seconds=settings.seconds),
    )
    plan = plan_optimize(snapshot, request)
    without_empty = replace(plan.candidates, empty=plan.candidates.empty.slice(0, 0))
    plan = replace(plan, parameters={**plan.parameters, "auto": True}, candidates=without_empty)
    if isinstance(plan, LayoutPlan):  # a clustered table
        return plan if plan.chosen.other_files >= settings.min_files else None
    files = plan.candidates.files
    groups = np.asarray(files[GROUP])
    keys = file_keys(files["path"].combine_chunks(), None, snapshot.location)
    touched = groups[np.asarray(pc.is_in(keys, value_set=added))]
    many = np.flatnonzero(np.bincount(groups, minlength=1) >= settings.min_files)
    chosen = np.isin(groups, np.intersect1d(many, touched))
    if not chosen.any():
        return None
    bins = worthwhile(pack(files.filter(pa.array(chosen)), target))
    if not len(bins):
        return None
    return replace(plan, bins=bins, bins_left=0)


def _added_paths(snapshot: Snapshot, version: int) -> pa.Array:
    """Return the keys of the files that a commit added."""
    texts = snapshot.read_commits(commits_between(snapshot, version, version))
    chunks = [chunk for text in texts for chunk in Winner(text).added()["path"].chunks]
    return file_keys(pa.concat_arrays(chunks), None, snapshot.location) if chunks else pa.array([], pa.string())
