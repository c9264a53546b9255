"""icebergWriterCompatV1: the table can be written as an Iceberg table (IcebergWriterCompatV1; C302-C317)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pyspark_delta.features import Feature, active_features, is_active
from pyspark_delta.protocol import iceberg, iceberg_writers
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import (
    COLUMN_MAPPING_MODE,
    ENABLE_ICEBERG_COMPAT_V2,
    ENABLE_ICEBERG_WRITER_COMPAT_V1,
)

ALLOWED = frozenset(
    [
        *("appendOnly", "columnMapping", "icebergWriterCompatV1", "icebergCompatV2", "domainMetadata"),
        *("vacuumProtocolCheck", "v2Checkpoint", "inCommitTimestamp", "clustering", "timestampNtz", "typeWidening"),
    ]
)


class IcebergWriterCompatV1(iceberg_writers.IcebergWriterCompat):
    name = "icebergWriterCompatV1"
    requires = ("columnMapping", "icebergCompatV2")
    implied_properties: ClassVar[Mapping[str, str]] = MappingProxyType(
        {COLUMN_MAPPING_MODE.name: "id", ENABLE_ICEBERG_COMPAT_V2.name: "true"}
    )
    enabling = ENABLE_ICEBERG_WRITER_COMPAT_V1
    format_enabling = ENABLE_ICEBERG_COMPAT_V2
    types = (iceberg.PRIMITIVES_V1 | iceberg.NESTED) - {"byte", "short"}
    allowed = ALLOWED

    def validate(self, configuration: TableConfiguration) -> None:
        if self.is_active(configuration):
            has_format = is_active(configuration, Feature.ICEBERG_COMPAT_V2)
            self.check(configuration, has_format=has_format, active=active_features(configuration))


FEATURE = IcebergWriterCompatV1()
