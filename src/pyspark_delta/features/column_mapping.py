"""columnMapping: columns of the schema find those of data files by physical name or id (Column Mapping; C236-C249)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.protocol.properties import COLUMN_MAPPING_MODE


class ColumnMapping(TableFeature):
    name = "columnMapping"
    kind = FeatureKind.READER_WRITER
    legacy_reader_version = 2
    legacy_writer_version = 5

    def is_active(self, configuration: TableConfiguration) -> bool:
        return COLUMN_MAPPING_MODE.of(configuration.properties) != "none"


FEATURE = ColumnMapping()
