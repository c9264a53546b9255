"""What maintenance a table is due, and its execution, one task after another within a budget."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pyspark_delta.display import counted
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features.support import check_writable
from pyspark_delta.maintenance.budget import Budget
from pyspark_delta.maintenance.drop_feature import DropFeaturePlan
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.policy.decisions import DECISIONS, drops, is_drop_due
from pyspark_delta.maintenance.policy.policy import MaintenancePolicy, MaintenanceReport, MaintenanceTask
from pyspark_delta.maintenance.reorganize import PurgeRequest, plan_purge
from pyspark_delta.maintenance.rewriting.metrics import RewriteResult
from pyspark_delta.maintenance.rewriting.request import RewriteRequest
from pyspark_delta.maintenance.statistics import plan_statistics
from pyspark_delta.maintenance.vacuum import VacuumRequest, plan_vacuum
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True, repr=False)
class MaintenancePlan(MaintenanceReport):
    """What maintenance of a version is due, and why."""

    snapshot: Snapshot
    policy: MaintenancePolicy = field(default_factory=MaintenancePolicy)
    rewriting: RewriteRequest = field(default_factory=RewriteRequest)
    engine_info: str = ""

    def execute(self) -> MaintenanceReport:
        """Do what is due, one task after another, within the budget. Each task looks at the newest version first.

        The budget limits the rewriting of files and the files that get statistics; after its seconds, no further task
        is begun. What was done before an error stays. Raises the errors of the commands.
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
    tasks = tuple(decide(snapshot, policy) for decide in DECISIONS.values())
    limits = RewriteRequest() if rewriting is None else rewriting
    return MaintenancePlan(snapshot.location, snapshot.version, tasks, snapshot, policy, limits, engine_info)


class _Run:
    """The execution of a plan: tasks in order, and what is left of the budget."""

    def __init__(self, plan: MaintenancePlan) -> None:
        self._plan = plan
        self._snapshot = plan.snapshot
        self._begun = time.monotonic()
        self._read = 0  # bytes

    def execute(self) -> MaintenanceReport:
        """Decide and do each task."""
        done = tuple(self._do(name) for name in DECISIONS)
        return MaintenanceReport(self._snapshot.location, self._snapshot.version, done)

    def _do(self, name: str) -> MaintenanceTask:
        self._snapshot = self._snapshot.update()
        task = DECISIONS[name](self._snapshot, self._plan.policy)
        if not task.due:
            return task
        if self._is_over():
            return MaintenanceTask(name, True, task.why, "left, because the budget is spent")
        result = {
            "optimize": self._optimize,
            "purge": self._purge,
            "statistics": self._statistics,
            "drop features": self._drop_features,
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
        plan = plan_statistics(self._snapshot, budget=self._left())
        result = plan.execute(engine_info=self._plan.engine_info)
        self._read += plan.size_in_bytes
        left = f", {counted(result.num_files_left, 'file')} left for the next run" if result.num_files_left else ""
        return f"{counted(result.num_files, 'file')} got statistics{left}"

    def _drop_features(self) -> str:
        """Do what can be done now to drop features. Their traces are removed whatever the budget."""
        return ", ".join(map(_dropped, drops(self._snapshot, self._plan.policy, self._plan.engine_info)))

    def _vacuum(self) -> str:
        result = plan_vacuum(self._snapshot, VacuumRequest(), engine_info=self._plan.engine_info).execute()
        return f"{counted(result.num_deleted_files, 'file')} of {counted(result.size_of_deleted_files, 'byte')} deleted"

    def _checkpoint(self) -> str:
        self._snapshot.checkpoint()
        return f"written for version {self._snapshot.version}"


def _dropped(plan: DropFeaturePlan) -> str:
    name, finish_after = plan.drop.feature.name, plan.finish_after
    if is_drop_due(plan):
        try:
            return f"{name} dropped in version {plan.execute().version}"
        except InvalidOperationError as error:
            if "finish_after" not in error.facts:
                raise
            finish_after = error.facts["finish_after"]
    return f"{name} waits until {finish_after:%Y-%m-%d %H:%M} UTC"
