"""Checking, repairing and measuring a table without Spark: what `Table` offers of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from os import PathLike
from typing import Any, Literal, overload

from pyspark_delta.maintenance.checking import CheckLevel, CheckRequest, CheckResult, check_table
from pyspark_delta.maintenance.checking.repair import RepairPlan, RepairResult, plan_repair
from pyspark_delta.maintenance.health import HealthReport, table_health
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import normalize_location
from pyspark_delta.table.refreshing import show_change


class CheckedTable(ABC):
    """Checks of a table without Spark. Only `repair` changes it."""

    @property
    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The snapshot that this table reads."""

    @abstractmethod
    def refresh(self) -> Any:
        """Show the latest version from now on."""

    def check(
        self,
        level: CheckLevel = "list",
        *,
        only: Collection[str] = (),
        ignore: Collection[str] = (),
        since: int | None = None,
        progress: ShowProgress = None,
    ) -> CheckResult:
        """Check the log and the newest version of the table against the protocol, and return the findings.

        `level` is how much is read: `log` (the log alone), `list` (that files exist, too), `footer` (footers of data
        files and deletion vectors, too), `data` (all rows, too). `only` and `ignore` are ids of checks, such as `L01`,
        or letters for all of a kind. With `since`, commits up to that version are not checked.

        A table that cannot be opened is checked with `check_location`. Raises InvalidOptionError, and StorageError if
        the store does not answer.
        """
        snapshot = self.snapshot
        with operation(progress):
            return check_table(
                snapshot.location,
                CheckRequest(level, tuple(only), tuple(ignore), since),
                storage_options=snapshot.storage_options,
                catalog_table=snapshot.catalog_table,
            )

    @staticmethod
    def check_location(
        location: str | PathLike[str],
        level: CheckLevel = "list",
        *,
        only: Collection[str] = (),
        ignore: Collection[str] = (),
        since: int | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> CheckResult:
        """Check the table at a location, which may be too damaged to be opened; see `check`.

        Raises TableNotFoundError if there is no log.
        """
        request = CheckRequest(level, tuple(only), tuple(ignore), since)
        return check_table(normalize_location(location), request, storage_options=storage_options)

    @overload
    def repair(
        self, allow: Collection[str] = (), *, level: CheckLevel = "list", plan: Literal[False] = False
    ) -> RepairResult: ...
    @overload
    def repair(self, allow: Collection[str] = (), *, level: CheckLevel = "list", plan: Literal[True]) -> RepairPlan: ...
    def repair(
        self, allow: Collection[str] = (), *, level: CheckLevel = "list", plan: bool = False
    ) -> RepairResult | RepairPlan:
        """Check the table, and repair what can be repaired without loss; with `plan=True`, return what would be done.

        Repairs that remove something, give effect to a feature or trust a file must be named in `allow`: `features`,
        `wrong-checkpoints`, `checkpoint-parts`, `unpublished-checkpoints`, `unknown-files`, `missing-files`,
        `corrupt-files`, `duplicate-files`, `file-sizes`, `drop-vector`. Raises InvalidOptionError,
        UnsupportedFeatureError for a table with unknown features, MaintenanceNotAllowedError if the catalog does not
        allow a repair, CommitConflictError, and the errors of `check`.
        """
        snapshot = self.snapshot
        made = plan_repair(
            snapshot.location,
            allow=tuple(allow),
            request=CheckRequest(level),
            storage_options=snapshot.storage_options,
            catalog_table=snapshot.catalog_table,
        )
        if plan:
            return made
        result = made.execute()
        show_change(self.refresh)
        return result

    def health(self) -> HealthReport:
        """Return figures about files, skipping, deleted rows, log, checkpoints and retention, and what to do.

        Nothing but the log is read. Raises CorruptLogError.
        """
        return table_health(self.snapshot)
