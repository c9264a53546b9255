"""appendOnly: rows may be added, never changed or removed (Append-only Tables; C375-C378)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import APPEND_ONLY


class AppendOnly(TableFeature):
    name = "appendOnly"
    legacy_writer_version = 2

    def is_active(self, configuration: TableConfiguration) -> bool:
        return APPEND_ONLY.of(configuration.properties)


FEATURE = AppendOnly()
