"""icebergCompatV3: data files can be read as an Iceberg table of format 3 (Iceberg Compatibility V3)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol import iceberg
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import COLUMN_MAPPING_MODE, ENABLE_ICEBERG_COMPAT_V3, ENABLE_ROW_TRACKING


class IcebergCompatV3(iceberg.IcebergCompat):
    name = "icebergCompatV3"
    requires = ("columnMapping", "rowTracking")
    excludes = ("icebergCompatV1", "icebergCompatV2")
    enabling = ENABLE_ICEBERG_COMPAT_V3
    implied_properties: ClassVar[Mapping[str, str]] = MappingProxyType(
        {COLUMN_MAPPING_MODE.name: "name", ENABLE_ROW_TRACKING.name: "true"}
    )

    def prepare(self, configuration: TableConfiguration, before: TableConfiguration | None) -> TableConfiguration:
        mapped = is_active(configuration, Feature.COLUMN_MAPPING)
        return iceberg.with_nested_ids(configuration) if mapped and self.is_active(configuration) else configuration

    def validate(self, configuration: TableConfiguration) -> None:
        if not self.is_active(configuration):
            return
        iceberg.check_mapping(configuration, self.name, ("name", "id"))
        iceberg.check_types(configuration.schema, self.name, iceberg.PRIMITIVES_V1 | iceberg.NESTED | {"variant"})
        iceberg.check_type_changes(configuration.schema, self.name)
        iceberg.check_literal_defaults(configuration.schema, self.name)
        if not is_active(configuration, Feature.ROW_TRACKING):
            raise iceberg.violation(
                self.name,
                "WRONG_REQUIRED_TABLE_PROPERTY",
                f"it needs row ids. Set {ENABLE_ROW_TRACKING.name} to true.",
            )


FEATURE = IcebergCompatV3()
