"""icebergCompatV3: data files can be read as an Iceberg table of format 3 (Iceberg Compatibility V3)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol import iceberg
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import COLUMN_MAPPING_MODE, ENABLE_ICEBERG_COMPAT_V3, ENABLE_ROW_TRACKING
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState


class IcebergCompatV3(TableFeature):
    name = "icebergCompatV3"
    requires = ("columnMapping", "rowTracking")
    excludes = ("icebergCompatV1", "icebergCompatV2")
    implied_properties: ClassVar[Mapping[str, str]] = MappingProxyType(
        {COLUMN_MAPPING_MODE.name: "name", ENABLE_ROW_TRACKING.name: "true"}
    )

    def uses(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ICEBERG_COMPAT_V3.of(configuration.properties)

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)

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

    def check_change(self, configuration: TableConfiguration, before: TableConfiguration, *, keeps_files: bool) -> None:
        """Refuse existing files: they have no ids for list elements and map entries, and perhaps no partition
        columns.
        """
        if not self.is_active(configuration):
            return
        if self.is_active(before):
            iceberg.check_partitioning(configuration, before, self.name)
        elif keeps_files:
            raise iceberg.needs_rewrite(self.name)

    def stores_partition_columns(self, configuration: TableConfiguration) -> bool:
        return self.is_active(configuration)

    def finish(self, commit: ReadyCommit, base: TableState) -> ReadyCommit:
        if self.is_active(commit.configuration):
            iceberg.check_num_records(commit, self.name)
        return commit


FEATURE = IcebergCompatV3()
