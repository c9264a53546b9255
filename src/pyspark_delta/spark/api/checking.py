"""The methods of `DeltaTable` that check, repair and measure a table: in this process, without a Spark job."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Literal, overload

from pyspark_delta.maintenance.checking import CheckLevel, CheckRequest, CheckResult, check_table
from pyspark_delta.maintenance.checking.repair import RepairPlan, RepairResult, plan_repair
from pyspark_delta.maintenance.health import HealthReport, table_health
from pyspark_delta.transaction.commit_info import engine_info

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_delta.snapshot import Snapshot


class CheckedDeltaTable:
    """Checks of a table against the protocol, as `Table` has them."""

    _spark: SparkSession

    @abstractmethod
    def _open(self, version: int | None = None, timestamp: str | datetime | int | None = None) -> Snapshot: ...

    def check(
        self,
        level: CheckLevel = "list",
        *,
        only: Collection[str] = (),
        ignore: Collection[str] = (),
        since: int | None = None,
    ) -> CheckResult:
        """Check the log and the newest version against the protocol, and return the findings; see `Table.check`."""
        snapshot = self._open()
        return check_table(
            snapshot.location,
            CheckRequest(level, tuple(only), tuple(ignore), since),
            storage_options=snapshot.storage_options,
            catalog_table=snapshot.catalog_table,
        )

    @overload
    def repair(
        self, allow: Collection[str] = (), *, level: CheckLevel = "list", plan: Literal[False] = False
    ) -> RepairResult: ...
    @overload
    def repair(self, allow: Collection[str] = (), *, level: CheckLevel = "list", plan: Literal[True]) -> RepairPlan: ...
    def repair(
        self, allow: Collection[str] = (), *, level: CheckLevel = "list", plan: bool = False
    ) -> RepairResult | RepairPlan:
        """Check the table, and repair what can be repaired without loss, and what `allow` names; see `Table.repair`."""
        snapshot = self._open()
        made = plan_repair(
            snapshot.location,
            allow=tuple(allow),
            request=CheckRequest(level),
            storage_options=snapshot.storage_options,
            catalog_table=snapshot.catalog_table,
            engine_info=engine_info(f"PySpark/{self._spark.version}"),
        )
        return made if plan else made.execute()

    def health(self) -> HealthReport:
        """Return figures about files, skipping, deleted rows, log and retention, and what to do; see `Table.health`."""
        return table_health(self._open())
