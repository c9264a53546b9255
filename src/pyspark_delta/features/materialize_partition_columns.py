"""materializePartitionColumns: data files hold the partition columns too (Materialize Partition Columns)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature


class MaterializePartitionColumns(TableFeature):
    name = "materializePartitionColumns"
    write_obstacle = "New data files would have to hold the partition columns. Write it with another engine for now."

    def is_active(self, configuration: TableConfiguration) -> bool:
        return bool(configuration.partition_columns)


FEATURE = MaterializePartitionColumns()
