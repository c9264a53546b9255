"""icebergCompatV1: data files can be read as an Iceberg table (Iceberg Compatibility V1; C283-C290)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pyspark_delta.features import Feature, is_active, is_supported
from pyspark_delta.protocol import iceberg
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import COLUMN_MAPPING_MODE, ENABLE_ICEBERG_COMPAT_V1
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState


class IcebergCompatV1(TableFeature):
    name = "icebergCompatV1"
    requires = ("columnMapping",)
    excludes = ("icebergCompatV2", "icebergCompatV3")
    implied_properties: ClassVar[Mapping[str, str]] = MappingProxyType({COLUMN_MAPPING_MODE.name: "name"})

    def uses(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ICEBERG_COMPAT_V1.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

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
                "it must not support deletion vectors. Drop the feature deletionVectors first, or use "
                "icebergCompatV2, for which it is enough to disable them.",
            )

    def check_change(self, configuration: TableConfiguration, before: TableConfiguration, *, keeps_files: bool) -> None:
        """Refuse existing files of a partitioned table: they would have to hold the partition columns (C286, C288)."""
        if not self.is_active(configuration):
            return
        if self.is_active(before):
            iceberg.check_partitioning(configuration, before, self.name)
        elif keeps_files and (before.partition_columns or not is_active(before, Feature.COLUMN_MAPPING)):
            raise iceberg.needs_rewrite(self.name)

    def stores_partition_columns(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)

    def finish(self, commit: ReadyCommit, base: TableState) -> ReadyCommit:
        if self.is_active(commit.configuration):
            iceberg.check_num_records(commit, self.name)
        return commit


FEATURE = IcebergCompatV1()
