"""catalogManaged: a catalog, not the file system, decides which commits are the newest (C444-C484).

`snapshot.access` decides how a table may be accessed, before its features are checked, and `commit.committers` decides
who commits, from the storage options. This module holds the rules for protocol and metadata.
"""

from __future__ import annotations

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol.configuration import CATALOG_MANAGED, TABLE_ID, TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.protocol.properties import ENABLE_IN_COMMIT_TIMESTAMPS


class CatalogManaged(TableFeature):
    name = CATALOG_MANAGED[0]
    kind = FeatureKind.READER_WRITER
    preview_names = CATALOG_MANAGED[1:]
    requires = ("inCommitTimestamp",)
    listing_unsupported_reason = (
        "Only creating a table in a catalog makes it catalog-managed; an existing path cannot become so."
    )

    def prepare(self, configuration: TableConfiguration, before: TableConfiguration | None) -> TableConfiguration:
        if before is not None and not before.is_catalog_managed:
            raise InvalidOperationError(
                f"The table '{before.location}' is not catalog-managed. {self.listing_unsupported_reason}",
                error_class="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
                feature=self.name,
            )
        return configuration

    def check_change(self, configuration: TableConfiguration, before: TableConfiguration, *, keeps_files: bool) -> None:
        if configuration.properties.get(TABLE_ID) != before.properties.get(TABLE_ID):
            raise InvalidOperationError(
                f"The table property {TABLE_ID} is the id of the table in the catalog and cannot be changed. Do not "
                "set it.",
                error_class="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
                property=TABLE_ID,
            )

    def validate(self, configuration: TableConfiguration) -> None:
        """Require in-commit timestamps, because published files have no reliable times (C450, C475)."""
        if not is_active(configuration, Feature.IN_COMMIT_TIMESTAMP):
            raise InvalidOperationError(
                f"Catalog-managed tables need in-commit timestamps. Keep {ENABLE_IN_COMMIT_TIMESTAMPS.name} at true.",
                error_class="DELTA_CATALOG_MANAGED_NEEDS_IN_COMMIT_TIMESTAMPS",
                property=ENABLE_IN_COMMIT_TIMESTAMPS.name,
            )


FEATURE = CatalogManaged()
