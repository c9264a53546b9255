"""icebergCompatV1: data files can be read as an Iceberg table (Iceberg Compatibility V1; C283-C290)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pyspark_delta.features import Feature, is_active, is_supported
from pyspark_delta.protocol import iceberg
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import COLUMN_MAPPING_MODE, ENABLE_ICEBERG_COMPAT_V1


class IcebergCompatV1(iceberg.IcebergCompat):
    name = "icebergCompatV1"
    requires = ("columnMapping",)
    excludes = ("icebergCompatV2", "icebergCompatV3")
    enabling = ENABLE_ICEBERG_COMPAT_V1
    implied_properties: ClassVar[Mapping[str, str]] = MappingProxyType({COLUMN_MAPPING_MODE.name: "name"})

    def validate(self, configuration: TableConfiguration) -> None:
        if not self.is_active(configuration):
            return
        iceberg.check_mapping(configuration, self.name, ("name", "id"))
        iceberg.check_types(configuration.schema, self.name, iceberg.PRIMITIVES_V1)
        iceberg.check_type_changes(configuration.schema, self.name)
        if is_supported(configuration, Feature.DELETION_VECTORS):  # active or not (C285)
            raise iceberg.violation(
                self.name,
                "DELETION_VECTORS_SHOULD_BE_DISABLED",
                "it does not allow the feature deletionVectors. Drop that feature first, or use icebergCompatV2, which "
                "only requires disabling deletion vectors.",
            )

    def needs_other_files(self, before: TableConfiguration) -> bool:
        """Return True for a partitioned table: its files would have to hold the partition columns (C286, C288)."""
        return bool(before.partition_columns) or not is_active(before, Feature.COLUMN_MAPPING)


FEATURE = IcebergCompatV1()
