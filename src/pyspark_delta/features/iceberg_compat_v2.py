"""icebergCompatV2: data files can be read as an Iceberg table (Iceberg Compatibility V2; C291-C301)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import ENABLE_ICEBERG_COMPAT_V2


class IcebergCompatV2(TableFeature):
    name = "icebergCompatV2"
    requires = ("columnMapping",)
    excludes = ("deletionVectors", "icebergCompatV1", "icebergCompatV3")

    def is_active(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ICEBERG_COMPAT_V2.of(configuration.properties)

    def materializes_partition_columns(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)


FEATURE = IcebergCompatV2()
