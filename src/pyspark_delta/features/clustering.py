"""clustering: files are laid out by the values of clustering columns (Clustered Table; C347-C354)."""

from __future__ import annotations

from pyspark_delta.protocol.feature import TableFeature


class Clustering(TableFeature):
    name = "clustering"
    requires = ("domainMetadata",)
    write_obstacle = "New files would need statistics of all clustering columns. Write it with another engine for now."


FEATURE = Clustering()
