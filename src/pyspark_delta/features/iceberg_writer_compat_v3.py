"""icebergWriterCompatV3: writable as an Iceberg table, by rules without a published text."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import ENABLE_ICEBERG_WRITER_COMPAT_V3


class IcebergWriterCompatV3(TableFeature):
    name = "icebergWriterCompatV3"
    requires = ("columnMapping", "icebergCompatV3")
    write_obstacle = (
        "Its rules are not published, so new data files cannot be made to follow them. "
        "Write it with another engine for now."
    )

    def is_active(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ICEBERG_WRITER_COMPAT_V3.of(configuration.properties)

    def hinders_writing(self, configuration: TableConfiguration) -> bool:
        return True  # what an inactive feature asks of writers is not published either


FEATURE = IcebergWriterCompatV3()
