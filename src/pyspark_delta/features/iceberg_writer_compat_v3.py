"""icebergWriterCompatV3: the table can be written as an Iceberg table of format 3.

There is no published specification: the rules are those of version 1, extended by what icebergCompatV3 allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pyspark_delta.features import Feature, active_features, is_active
from pyspark_delta.protocol import iceberg, iceberg_writers
from pyspark_delta.protocol.configuration import TableConfiguration
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


class IcebergWriterCompatV3(iceberg_writers.IcebergWriterCompat):
    name = "icebergWriterCompatV3"
    requires = ("columnMapping", "icebergCompatV3")
    implied_properties: ClassVar[Mapping[str, str]] = MappingProxyType(
        {COLUMN_MAPPING_MODE.name: "id", ENABLE_ICEBERG_COMPAT_V3.name: "true"}
    )
    enabling = ENABLE_ICEBERG_WRITER_COMPAT_V3
    format_enabling = ENABLE_ICEBERG_COMPAT_V3
    types = (iceberg.PRIMITIVES_V1 | iceberg.NESTED | {"variant"}) - {"byte", "short"}
    allowed = ALLOWED
    inactive = frozenset(iceberg_writers.INACTIVE) - {Feature.ROW_TRACKING}

    def validate(self, configuration: TableConfiguration) -> None:
        if self.is_active(configuration):
            has_format = is_active(configuration, Feature.ICEBERG_COMPAT_V3)
            self.check(configuration, has_format=has_format, active=active_features(configuration))


FEATURE = IcebergWriterCompatV3()
