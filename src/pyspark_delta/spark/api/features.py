"""The method of `DeltaTable` that removes a table feature: delta-spark's name, and more arguments."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING, Literal, overload

from pyspark_delta.maintenance.drop_feature import DropFeaturePlan, plan_drop_feature
from pyspark_delta.spark.conf.arguments import check_text
from pyspark_delta.spark.conf.limits import cost_model
from pyspark_delta.spark.engine.write.job import SparkTasks
from pyspark_delta.transaction.commit_info import engine_info

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_delta.engines.tasks import TaskRunner
    from pyspark_delta.snapshot import Snapshot


class DeltaTableOfFeatures:
    """Dropping table features: in this process, or in tasks of Spark where many bytes are rewritten."""

    _spark: SparkSession

    @abstractmethod
    def _open(self, version: int | None = None, timestamp: str | datetime | int | None = None) -> Snapshot: ...

    @overload
    def dropFeatureSupport(
        self, featureName: str, truncateHistory: bool | None = None, *, plan: Literal[False] = False
    ) -> None: ...
    @overload
    def dropFeatureSupport(
        self, featureName: str, truncateHistory: bool | None = None, *, plan: Literal[True]
    ) -> DropFeaturePlan: ...
    def dropFeatureSupport(
        self, featureName: str, truncateHistory: bool | None = None, *, plan: bool = False
    ) -> DropFeaturePlan | None:
        """Drop a table feature, so that clients without it can use the table. Rows stay as they are.

        What the feature left in the newest version is removed first. By default earlier versions stay, and the table
        gets the feature checkpointProtection. With `truncateHistory` they are deleted instead, once they are old
        enough. With `plan`, return a plan and change nothing. The details and errors are those of `Table.drop_feature`.
        """
        check_text("featureName", featureName)
        if truncateHistory is not None and not isinstance(truncateHistory, bool):
            raise TypeError(f"truncateHistory is True, False or None, found {type(truncateHistory).__name__}.")
        made = plan_drop_feature(
            self._open(),
            featureName,
            truncate_history=bool(truncateHistory),
            engine_info=engine_info(f"PySpark/{self._spark.version}"),
            place=self._tasks,
        )
        if plan:
            return made
        made.execute()
        return None

    def _tasks(self, location: str, size: int) -> TaskRunner | None:
        """Return tasks of the session for bytes that are too many for this process."""
        in_driver = cost_model(self._spark).compacts_in_driver(location, size)
        return None if in_driver else SparkTasks(self._spark)
