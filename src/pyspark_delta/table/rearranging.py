"""The methods of `Table` that rewrite files without changing rows: `optimize` and `purge`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, overload

from pyspark_delta.maintenance.budget import UNLIMITED, Budget
from pyspark_delta.maintenance.layout.layouts import Layout
from pyspark_delta.maintenance.optimize import MAX_DELETED_SHARE, OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.reorganize import PurgeRequest, plan_purge
from pyspark_delta.maintenance.rewriting.metrics import RewriteResult
from pyspark_delta.maintenance.rewriting.plan import RewritePlan
from pyspark_delta.maintenance.rewriting.rewrite import MEMORY
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.table.refreshing import show_change
from pyspark_delta.table.writing import Place, provenance

CommitInfo: TypeAlias = str | Mapping[str, Any] | None


class OptimizeOptions(TypedDict, total=False):
    """The options of `optimize`."""

    layout: Layout | None
    zorder_by: Sequence[str]
    full: bool
    target_size: int | str | None
    min_size: int | str | None
    max_deleted_share: float
    budget: Budget
    threads: int | None
    memory: int | str
    commit_info: CommitInfo
    progress: ShowProgress


class PurgeOptions(TypedDict, total=False):
    """The options of `purge`."""

    target_size: int | str | None
    budget: Budget
    threads: int | None
    memory: int | str
    commit_info: CommitInfo
    progress: ShowProgress


class RearrangedTable(ABC):
    """Rewriting files of the latest version; the object then shows the newest one.

    With `plan=True`, a method returns what it would do, and changes nothing.
    """

    @abstractmethod
    def _place(self) -> Place: ...

    @abstractmethod
    def refresh(self) -> Any:
        """Show the latest version from now on."""

    @overload
    def optimize(
        self, where: str | None = None, *, plan: Literal[False] = False, **options: Unpack[OptimizeOptions]
    ) -> RewriteResult: ...
    @overload
    def optimize(
        self, where: str | None = None, *, plan: Literal[True], **options: Unpack[OptimizeOptions]
    ) -> RewritePlan: ...
    def optimize(
        self,
        where: str | None = None,
        *,
        layout: Layout | None = None,
        zorder_by: Sequence[str] = (),
        full: bool = False,
        target_size: int | str | None = None,
        min_size: int | str | None = None,
        max_deleted_share: float = MAX_DELETED_SHARE,
        budget: Budget = UNLIMITED,
        threads: int | None = None,
        memory: int | str = MEMORY,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: bool = False,
    ) -> RewriteResult | RewritePlan:
        """Combine small files into larger ones, and rewrite files with many deleted rows.

        Rows, their order, their ids and the change data feed stay as they are. `where` selects partitions by a
        condition on partition columns. New files have about `target_size` bytes, a number or text such as `256MB`; the
        default is the table property delta.targetFileSize, otherwise 128 MiB, and more for tables from 10 GiB on.
        Files of `min_size` bytes and more, by default three quarters of the target size, stay unless more than
        `max_deleted_share` of their rows are deleted. `budget` limits what one run does. `threads` bins of files are
        rewritten at the same time, with about `memory` bytes.

        If the table has clustering columns, files that are not clustered yet are clustered, together with some that
        are; with `full`, also those that were clustered by other columns. For other tables, `layout` changes the order
        of rows, such as `Sort("day")` or `Cluster("id", "day")`, and `zorder_by` is the list of columns to cluster by;
        all files of the selected partitions are then rewritten.

        Concurrent writers do not conflict: rows that they delete meanwhile are deleted in the new files too. Without
        deletion vectors, the files that they change are left to the next run. Raises InvalidPredicateError for a
        condition on other columns, InvalidOperationError for a layout that the table cannot have, InvalidOptionError,
        MaintenanceNotAllowedError for a table whose catalog does not allow it, DataFileError, StorageError, and
        CommitConflictError if another writer changes the schema meanwhile.
        """
        request = OptimizeRequest(
            where=where,
            layout=layout,
            zorder_by=zorder_by,
            full=full,
            target_size=target_size,
            min_size=min_size,
            max_deleted_share=max_deleted_share,
            budget=budget,
            threads=threads,
            memory=memory,
        )
        made = plan_optimize(self._place().latest(), request)
        return made if plan else self._rewrite(made, commit_info, progress)

    @overload
    def purge(
        self, where: str | None = None, *, plan: Literal[False] = False, **options: Unpack[PurgeOptions]
    ) -> RewriteResult: ...
    @overload
    def purge(
        self, where: str | None = None, *, plan: Literal[True], **options: Unpack[PurgeOptions]
    ) -> RewritePlan: ...
    def purge(
        self,
        where: str | None = None,
        *,
        target_size: int | str | None = None,
        budget: Budget = UNLIMITED,
        threads: int | None = None,
        memory: int | str = MEMORY,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: bool = False,
    ) -> RewriteResult | RewritePlan:
        """Rewrite files that hold deleted rows or dropped columns; a vacuum then deletes the old files.

        To know about dropped columns, it reads the footers of files. Arguments and errors are those of `optimize`.
        """
        request = PurgeRequest(where=where, target_size=target_size, budget=budget, threads=threads, memory=memory)
        made = plan_purge(self._place().latest(), request)
        return made if plan else self._rewrite(made, commit_info, progress)

    def _rewrite(self, plan: RewritePlan, commit_info: CommitInfo, progress: ShowProgress) -> RewriteResult:
        metadata = provenance(None, commit_info)["user_metadata"]
        with operation(progress):
            result = plan.execute(user_metadata=metadata)
        show_change(self.refresh)
        return result
