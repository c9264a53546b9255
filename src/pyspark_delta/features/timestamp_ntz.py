"""timestampNtz: timestamps without a time zone (Timestamp without timezone; C318-C320)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import TIMESTAMP_NTZ


class TimestampNtz(TableFeature):
    name = "timestampNtz"
    declaration_check = "P05"
    kind = FeatureKind.READER_WRITER

    def uses(self, configuration: TableConfiguration) -> bool:
        return any(found == TIMESTAMP_NTZ for found in types_in(configuration.schema))

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return self.uses(configuration)


FEATURE = TimestampNtz()
