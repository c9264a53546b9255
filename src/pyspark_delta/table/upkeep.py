"""The method of `Table` that does what maintenance is worth it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, overload

from pyspark_delta.maintenance.budget import UNLIMITED, Budget
from pyspark_delta.maintenance.policy import (
    MaintenancePlan,
    MaintenancePolicy,
    MaintenanceReport,
    plan_maintenance,
)
from pyspark_delta.maintenance.rewriting.request import RewriteRequest
from pyspark_delta.maintenance.rewriting.rewrite import MEMORY
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.table.refreshing import show_change
from pyspark_delta.table.writing import Place


class KeptTable(ABC):
    """Maintenance by a policy."""

    @abstractmethod
    def _place(self) -> Place: ...

    @abstractmethod
    def refresh(self) -> Any:
        """Show the latest version from now on."""

    @overload
    def maintain(
        self,
        policy: MaintenancePolicy | None = None,
        *,
        budget: Budget = UNLIMITED,
        threads: int | None = None,
        memory: int | str = MEMORY,
        progress: ShowProgress = None,
        plan: Literal[False] = False,
    ) -> MaintenanceReport: ...
    @overload
    def maintain(
        self,
        policy: MaintenancePolicy | None = None,
        *,
        budget: Budget = UNLIMITED,
        threads: int | None = None,
        memory: int | str = MEMORY,
        progress: ShowProgress = None,
        plan: Literal[True],
    ) -> MaintenancePlan: ...
    def maintain(
        self,
        policy: MaintenancePolicy | None = None,
        *,
        budget: Budget = UNLIMITED,
        threads: int | None = None,
        memory: int | str = MEMORY,
        progress: ShowProgress = None,
        plan: bool = False,
    ) -> MaintenanceReport | MaintenancePlan:
        """Compact or cluster, purge deletion vectors, add statistics, vacuum, checkpoint, as far as each is worth it.

        `policy` says what is worth it. The report says for each task why it was done or left. `budget`, `threads`
        and `memory` limit the rewriting of files, as for `optimize`; after the seconds of the budget, no further task
        is begun. With `plan=True`, the decisions are returned, which need only the log. Raises the errors of
        `optimize`, `purge`, `compute_statistics`, `vacuum` and `checkpoint`.
        """
        limits = RewriteRequest(budget=budget, threads=threads, memory=memory)
        made = plan_maintenance(self._place().latest(), policy, limits)
        if plan:
            return made
        try:
            with operation(progress):
                return made.execute()
        finally:
            show_change(self.refresh)
