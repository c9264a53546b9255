"""What maintenance a table is worth: each decision with its reason, from the log alone, and then its execution."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import pyarrow.compute as pc

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.display import counted, html_rows
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.features.support import check_writable
from pyspark_delta.log.history import commits_newest_first
from pyspark_delta.log.listing import list_back
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.budget import Budget
from pyspark_delta.maintenance.layout.plan import LayoutPlan
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.reorganize import PurgeRequest, plan_purge
from pyspark_delta.maintenance.rewriting.metrics import RewriteResult
from pyspark_delta.maintenance.rewriting.request import RewriteRequest
from pyspark_delta.maintenance.statistics import plan_statistics
from pyspark_delta.maintenance.vacuum import VacuumRequest, plan_vacuum
from pyspark_delta.protocol.properties import CHECKPOINT_INTERVAL
from pyspark_delta.snapshot import Snapshot

_MOST_COMMITS = 10_000  # that are looked through for the last vacuum
_OPTIONAL = ("vacuum_days", "checkpoint_commits")  # limits that may be None


@dataclass(frozen=True, kw_only=True)
class MaintenancePolicy:
    """When maintenance is worth it.

    A compaction has to save `saved_files` files. A clustered table is clustered if files that never were have a share
    `unclustered_share` of its bytes. Deletion vectors are purged if a share `vector_share` of the files has some. With
    `statistics`, files that lack statistics get them. A vacuum follows the last one after `vacuum_days` days; None
    never vacuums. A checkpoint is written after `checkpoint_commits` commits, by default as many as
    delta.checkpointInterval says.
    """

    saved_files: int = 10
    unclustered_share: float = 0.1
    vector_share: float = 0.25
    statistics: bool = True
    vacuum_days: float | None = 7
    checkpoint_commits: int | None = None

    def __post_init__(self) -> None:
        limits = {
            "saved_files": 1,
            "unclustered_share": 0,
            "vector_share": 0,
            "vacuum_days": 0,
            "checkpoint_commits": 1,
        }
        for name, least in limits.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
                raise InvalidOptionError(f"{name} is a number from {least} on, found {value!r}.", option=name)


@dataclass(frozen=True, slots=True)
class MaintenanceTask:
    """One kind of maintenance: if it is due, and why or why not. `result` says what it did; empty before."""

    name: str
    due: bool
    why: str
    result: str = ""


@dataclass(frozen=True, repr=False)
class MaintenanceReport:
    """The maintenance of a table: every task, with the reason why it was done or left, and the newest version."""

    location: str
    version: int
    tasks: tuple[MaintenanceTask, ...]

    def facts(self) -> list[dict[str, object]]:
        """Return a row of names and values for each task."""
        return [{name: getattr(task, name) for name in ("name", "due", "why", "result")} for task in self.tasks]

    def _repr_html_(self) -> str:
        rows = [(task.name, "yes" if task.due else "no", task.why, task.result) for task in self.tasks]
        return html_rows(f"Maintenance of {self.location}", ("task", "due", "why", "result"), rows)

    def __repr__(self) -> str:
        due = ", ".join(task.name for task in self.tasks if task.due)
        return f"MaintenanceReport({self.location!r}, version={self.version}, due: {due or 'nothing'})"

    def __str__(self) -> str:
        lines = [f"Maintenance of '{self.location}' at version {self.version}:"]
        for task in self.tasks:
            done = f"; {task.result}" if task.result else ""
            lines.append(f"  {task.name}: {'due' if task.due else 'not due'}, {task.why}{done}")
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class MaintenancePlan(MaintenanceReport):
    """What maintenance of a version is due, and why."""

    snapshot: Snapshot
    policy: MaintenancePolicy = field(default_factory=MaintenancePolicy)
    rewriting: RewriteRequest = field(default_factory=RewriteRequest)
    engine_info: str = ""

    def execute(self) -> MaintenanceReport:
        """Do what is due, one task after another, within the budget. Each task looks at the newest version first.

        The budget limits the rewriting of files; after its seconds, no further task is begun. What was done before an
        error stays. Raises the errors of the commands.
        """
        return _Run(self).execute()


def plan_maintenance(
    snapshot: Snapshot,
    policy: MaintenancePolicy | None = None,
    rewriting: RewriteRequest | None = None,
    *,
    engine_info: str = "",
) -> MaintenancePlan:
    """Return what maintenance of a table is due, from its log alone, without writing.

    `rewriting` limits the rewriting of files: its budget, threads and memory. Raises as `check_writable`.
    """
    check_writable(snapshot.configuration, snapshot.location)
    policy = MaintenancePolicy() if policy is None else policy
    tasks = tuple(decide(snapshot, policy) for decide in _DECISIONS.values())
    limits = RewriteRequest() if rewriting is None else rewriting
    return MaintenancePlan(snapshot.location, snapshot.version, tasks, snapshot, policy, limits, engine_info)


# -------------------------------------------------------------------------------------------------------- decisions
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


_DECISIONS: Mapping[str, Callable[[Snapshot, MaintenancePolicy], MaintenanceTask]] = MappingProxyType(
    {
        "optimize": _decide_optimize,
        "purge": _decide_purge,
        "statistics": _decide_statistics,  # after those that write new files
        "vacuum": _decide_vacuum,
        "checkpoint": _decide_checkpoint,  # last, so that it covers what the others commit
    }
)


# -------------------------------------------------------------------------------------------------------- execution
class _Run:
    """The execution of a plan: tasks in order, and what is left of the budget."""

    def __init__(self, plan: MaintenancePlan) -> None:
        self._plan = plan
        self._snapshot = plan.snapshot
        self._begun = time.monotonic()
        self._read = 0  # bytes

    def execute(self) -> MaintenanceReport:
        """Decide and do each task."""
        done = tuple(self._do(name) for name in _DECISIONS)
        return MaintenanceReport(self._snapshot.location, self._snapshot.version, done)

    def _do(self, name: str) -> MaintenanceTask:
        self._snapshot = self._snapshot.update()
        task = _DECISIONS[name](self._snapshot, self._plan.policy)
        if not task.due:
            return task
        if self._is_over():
            return MaintenanceTask(name, True, task.why, "left, because the budget is spent")
        result = {
            "optimize": self._optimize,
            "purge": self._purge,
            "statistics": self._statistics,
            "vacuum": self._vacuum,
            "checkpoint": self._checkpoint,
        }[name]()
        self._snapshot = self._snapshot.update()
        return MaintenanceTask(name, True, task.why, result)

    def _is_over(self) -> bool:
        seconds = self._plan.rewriting.budget.seconds
        return seconds is not None and time.monotonic() - self._begun >= seconds

    def _left(self) -> Budget:
        budget = self._plan.rewriting.budget
        seconds, size = budget.seconds, budget.size
        return Budget(
            None if size is None else max(1, size - self._read),
            None if seconds is None else max(0.001, seconds - (time.monotonic() - self._begun)),
            budget.commits,
        )

    def _optimize(self) -> str:
        limits = self._plan.rewriting
        request = OptimizeRequest(budget=self._left(), threads=limits.threads, memory=limits.memory)
        return self._rewritten(plan_optimize(self._snapshot, request).execute(engine_info=self._plan.engine_info))

    def _purge(self) -> str:
        limits = self._plan.rewriting
        request = PurgeRequest(budget=self._left(), threads=limits.threads, memory=limits.memory)
        return self._rewritten(plan_purge(self._snapshot, request).execute(engine_info=self._plan.engine_info))

    def _rewritten(self, result: RewriteResult) -> str:
        self._read += result.removed.total
        left = f", {counted(result.bins_left, 'bin')} left for the next run" if result.bins_left else ""
        return f"{counted(result.removed.count, 'file')} replaced by {result.added.count:,}{left}"

    def _statistics(self) -> str:
        result = plan_statistics(self._snapshot).execute(engine_info=self._plan.engine_info)
        return f"{counted(result.num_files, 'file')} got statistics"

    def _vacuum(self) -> str:
        result = plan_vacuum(self._snapshot, VacuumRequest(), engine_info=self._plan.engine_info).execute()
        return f"{counted(result.num_deleted_files, 'file')} of {counted(result.size_of_deleted_files, 'byte')} deleted"

    def _checkpoint(self) -> str:
        self._snapshot.checkpoint()
        return f"written for version {self._snapshot.version}"
