"""rowTracking: rows have stable ids and commit versions (Row Tracking; C321-C342)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import ENABLE_ROW_TRACKING


class RowTracking(TableFeature):
    name = "rowTracking"
    requires = ("domainMetadata",)
    write_obstacle = (
        "New files would have to be given row ids, on each table that supports row tracking. "
        "Write it with another engine for now."
    )

    def is_active(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ROW_TRACKING.of(configuration.properties)

    def hinders_writing(self, configuration: TableConfiguration) -> bool:
        return True  # ids are assigned as soon as the feature is supported, active or not


FEATURE = RowTracking()
