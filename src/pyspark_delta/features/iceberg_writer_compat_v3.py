"""icebergWriterCompatV3: the table can be written as an Iceberg table of format 3.

There is no published text: the rules are those of version 1, extended by what icebergCompatV3 allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pyspark_delta.features import Feature, active_features, is_active
from pyspark_delta.protocol import iceberg, iceberg_writers
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import (
    COLUMN_MAPPING_MODE,
    ENABLE_ICEBERG_COMPAT_V3,
    ENABLE_ICEBERG_WRITER_COMPAT_V3,
)

ALLOWED = frozenset(
    [
        *("appendOnly", "columnMapping", "icebergWriterCompatV3", "icebergCompatV3", "domainMetadata"),
        *("vacuumProtocolCheck", "v2Checkpoint", "inCommitTimestamp", "clustering", "timestampNtz", "typeWidening"),
        *("rowTracking", "deletionVectors", "variantType", "variantType-preview"),
        *("variantShredding", "variantShredding-preview", "typeWidening-preview"),
    ]
)
_TYPES = (iceberg.PRIMITIVES_V1 | iceberg.NESTED | {"variant"}) - {"byte", "short"}


class IcebergWriterCompatV3(TableFeature):
    name = "icebergWriterCompatV3"
    requires = ("columnMapping", "icebergCompatV3")
    implied_properties: ClassVar[Mapping[str, str]] = MappingProxyType(
        {COLUMN_MAPPING_MODE.name: "id", ENABLE_ICEBERG_COMPAT_V3.name: "true"}
    )

    def uses(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ICEBERG_WRITER_COMPAT_V3.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

    def validate(self, configuration: TableConfiguration) -> None:
        if not self.is_active(configuration):
            return
        iceberg.check_mapping(configuration, self.name, ("id",))
        if not is_active(configuration, Feature.ICEBERG_COMPAT_V3):
            raise iceberg.violation(
                self.name,
                "WRONG_REQUIRED_TABLE_PROPERTY",
                f"it needs icebergCompatV3. Set {ENABLE_ICEBERG_COMPAT_V3.name} to true.",
            )
        iceberg.check_types(configuration.schema, self.name, _TYPES)
        iceberg_writers.check_names(configuration.schema, self.name)
        iceberg_writers.check_features(
            configuration.protocol.writer_features or (),  # writer version 7 lists them all
            self.name,
            allowed=ALLOWED,
            inactive=[name for name in iceberg_writers.INACTIVE if name != Feature.ROW_TRACKING],
            active=active_features(configuration),
        )

    def check_change(self, configuration: TableConfiguration, before: TableConfiguration, *, keeps_files: bool) -> None:
        if self.is_active(configuration) and self.is_active(before):
            iceberg_writers.check_map_keys(before.schema, configuration.schema, self.name)


FEATURE = IcebergWriterCompatV3()
