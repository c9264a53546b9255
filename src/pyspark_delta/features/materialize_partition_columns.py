"""materializePartitionColumns: data files also contain the partition columns (Materialize Partition Columns)."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import MATERIALIZE_PARTITION_COLUMNS
from pyspark_delta.protocol.removal import Removal


class MaterializePartitionColumns(TableFeature):
    name = "materializePartitionColumns"
    removal = Removal(
        disabling={MATERIALIZE_PARTITION_COLUMNS.name: None},
        leaves="partition columns in data files, which readers ignore",
    )

    def is_requested(self, configuration: TableConfiguration) -> bool:
        return MATERIALIZE_PARTITION_COLUMNS.of(configuration.properties) is True

    def stores_partition_columns(self, configuration: TableConfiguration) -> bool:
        return True

    def uses(self, configuration: TableConfiguration) -> bool:
        return bool(configuration.partition_columns)


FEATURE = MaterializePartitionColumns()
