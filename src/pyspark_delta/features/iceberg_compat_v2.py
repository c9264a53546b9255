"""icebergCompatV2: data files can be read as an Iceberg table (Iceberg Compatibility V2; C291-C301)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol import iceberg
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import (
    COLUMN_MAPPING_MODE,
    ENABLE_DELETION_VECTORS,
    ENABLE_ICEBERG_COMPAT_V2,
)
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState


class IcebergCompatV2(iceberg.IcebergCompat):
    name = "icebergCompatV2"
    requires = ("columnMapping",)
    excludes = ("icebergCompatV1", "icebergCompatV3")
    enabling = ENABLE_ICEBERG_COMPAT_V2
    implied_properties: ClassVar[Mapping[str, str]] = MappingProxyType({COLUMN_MAPPING_MODE.name: "name"})

    def prepare(self, configuration: TableConfiguration, before: TableConfiguration | None) -> TableConfiguration:
        mapped = is_active(configuration, Feature.COLUMN_MAPPING)
        return iceberg.with_nested_ids(configuration) if mapped and self.is_active(configuration) else configuration

    def validate(self, configuration: TableConfiguration) -> None:
        if not self.is_active(configuration):
            return
        iceberg.check_mapping(configuration, self.name, ("name", "id"))
        iceberg.check_types(configuration.schema, self.name, iceberg.PRIMITIVES_V1 | iceberg.NESTED)
        iceberg.check_type_changes(configuration.schema, self.name)
        if is_active(configuration, Feature.DELETION_VECTORS):
            raise iceberg.violation(
                self.name,
                "DELETION_VECTORS_SHOULD_BE_DISABLED",
                f"deletion vectors must be disabled. Set {ENABLE_DELETION_VECTORS.name} to false, and purge existing "
                "deletion vectors.",
            )

    def finish(self, commit: ReadyCommit, base: TableState) -> ReadyCommit:
        commit = super().finish(commit, base)
        if self.is_active(commit.configuration):
            iceberg.check_no_deletion_vectors(commit, self.name)
        return commit


FEATURE = IcebergCompatV2()
