"""The method of `Table` that removes a table feature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, overload

from pyspark_delta.maintenance.drop_feature import DropFeaturePlan, DropFeatureResult, plan_drop_feature
from pyspark_delta.table.arguments import check_arguments
from pyspark_delta.table.refreshing import show_change
from pyspark_delta.table.writing import Place


class TableOfFeatures(ABC):
    """Table features without Spark."""

    @abstractmethod
    def _place(self) -> Place: ...

    @abstractmethod
    def refresh(self) -> Any:
        """Show the latest version from now on."""

    @overload
    def drop_feature(
        self, name: str, *, truncate_history: bool = False, plan: Literal[False] = False
    ) -> DropFeatureResult: ...
    @overload
    def drop_feature(self, name: str, *, truncate_history: bool = False, plan: Literal[True]) -> DropFeaturePlan: ...
    @check_arguments
    def drop_feature(
        self, name: str, *, truncate_history: bool = False, plan: bool = False
    ) -> DropFeatureResult | DropFeaturePlan:
        """Drop a table feature, so that clients without it can use the table. Rows stay as they are.

        What the feature left in the newest version is removed first: properties, files with deletion vectors, and so
        on. Earlier versions stay readable for clients that know the feature, and the table gets the feature
        checkpointProtection, which keeps their checkpoints. With `truncate_history` they are deleted instead: the first
        run ends with an error that says when the second one can finish, a day later by default. An interrupted run is
        continued by the next one. With `plan=True`, a plan is returned, and nothing is changed.

        Raises InvalidOperationError for a feature that cannot be dropped, or not yet, and MaintenanceNotAllowedError.
        """
        made = plan_drop_feature(self._place().latest(), name, truncate_history=truncate_history)
        if plan:
            return made
        try:
            return made.execute()
        finally:
            show_change(self.refresh)
