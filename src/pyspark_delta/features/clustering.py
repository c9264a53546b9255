"""clustering: files are laid out by the values of clustering columns (Clustered Table; C347-C354)."""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature


class Clustering(TableFeature):
    name = "clustering"
    declaration_check = "P09"
    requires = ("domainMetadata",)
    listing_unsupported_reason = "Declare clustering columns instead, which adds the feature."

    def validate(self, configuration: TableConfiguration) -> None:
        """Refuse a table that is both partitioned and clustered (C348)."""
        if configuration.partition_columns:
            raise InvalidOperationError(
                f"The table is partitioned by {', '.join(configuration.partition_columns)}, so it cannot also be "
                "clustered. Choose one of the two for a new table.",
                error_class="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
            )


FEATURE = Clustering()
