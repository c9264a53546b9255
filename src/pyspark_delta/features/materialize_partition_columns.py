"""materializePartitionColumns: data files also contain the partition columns (Materialize Partition Columns)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import MATERIALIZE_PARTITION_COLUMNS


class MaterializePartitionColumns(TableFeature):
    name = "materializePartitionColumns"

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return MATERIALIZE_PARTITION_COLUMNS.of(configuration.properties) is True

    def stores_partition_columns(self, configuration: TableConfiguration) -> bool:
        return True

    def uses(self, configuration: TableConfiguration) -> bool:
        return bool(configuration.partition_columns)


FEATURE = MaterializePartitionColumns()
