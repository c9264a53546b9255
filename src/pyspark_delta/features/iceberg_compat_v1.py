"""icebergCompatV1: data files can be read as an Iceberg table (Iceberg Compatibility V1; C283-C290)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import ENABLE_ICEBERG_COMPAT_V1


class IcebergCompatV1(TableFeature):
    name = "icebergCompatV1"
    requires = ("columnMapping",)
    excludes = ("deletionVectors", "icebergCompatV2", "icebergCompatV3")

    def is_active(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ICEBERG_COMPAT_V1.of(configuration.properties)

    def materializes_partition_columns(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)


FEATURE = IcebergCompatV1()
