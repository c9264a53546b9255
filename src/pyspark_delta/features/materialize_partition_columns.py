"""materializePartitionColumns: data files hold the partition columns too (Materialize Partition Columns)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature


class MaterializePartitionColumns(TableFeature):
    name = "materializePartitionColumns"

    def is_active(self, configuration: TableConfiguration) -> bool:
        return bool(configuration.partition_columns)

    def materializes_partition_columns(self, configuration: TableConfiguration) -> bool:
        return True


FEATURE = MaterializePartitionColumns()
