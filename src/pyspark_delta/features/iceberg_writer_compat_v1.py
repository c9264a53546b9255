"""icebergWriterCompatV1: the table can be written as an Iceberg table (IcebergWriterCompatV1; C302-C317)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import ENABLE_ICEBERG_WRITER_COMPAT_V1


class IcebergWriterCompatV1(TableFeature):
    name = "icebergWriterCompatV1"
    requires = ("columnMapping", "icebergCompatV2")
    write_obstacle = (
        "New data files would have to follow the rules of Iceberg compatibility. Write it with another engine for now."
    )

    def is_active(self, configuration: TableConfiguration) -> bool:
        return ENABLE_ICEBERG_WRITER_COMPAT_V1.of(configuration.properties)


FEATURE = IcebergWriterCompatV1()
