"""icebergCompatV3: data files can be read as an Iceberg table (Iceberg Compatibility V3)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import ENABLE_ICEBERG_COMPAT_V3


class IcebergCompatV3(TableFeature):
    name = "icebergCompatV3"
    requires = ("columnMapping", "rowTracking")
    excludes = ("icebergCompatV1", "icebergCompatV2")

    def is_active(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ICEBERG_COMPAT_V3.of(configuration.properties)

    def materializes_partition_columns(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)


FEATURE = IcebergCompatV3()
