"""catalogManaged: the newest commits are known to a catalog, not to the file system (C444-C484)."""

from __future__ import annotations

from pyspark_delta.protocol.feature import FeatureKind, TableFeature


class CatalogManaged(TableFeature):
    name = "catalogManaged"
    kind = FeatureKind.READER_WRITER
    preview_names = ("catalogOwned-preview", "catalogOwned")
    requires = ("inCommitTimestamp",)
    read_obstacle = (
        "Its catalog decides which commits count, and the files alone may miss the newest ones. "
        "Open it by its catalog name with an engine that is connected to the catalog."
    )
    write_obstacle = read_obstacle
    listing_obstacle = "A table is managed by a catalog from its creation there; it cannot become so by its path."


FEATURE = CatalogManaged()
