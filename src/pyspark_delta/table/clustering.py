"""The methods of `Table` about the layout of its files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from pyspark_delta.maintenance.layout.quality import ClusteringQuality, clustering_quality
from pyspark_delta.snapshot import Snapshot


class ClusteredTable(ABC):
    """Questions about the layout of files."""

    @property
    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The snapshot that this table reads."""

    def clustering_quality(self, columns: Sequence[str] | None = None) -> ClusteringQuality:
        """Return how many files queries by some columns read on average, beside what the best layout would reach.

        `columns` are the clustering columns of the table by default. Queries are for one value, for ranges of 0.1, 1
        and 10 % of the rows by one column, and for boxes of 5 % by each column. Everything is computed from the
        statistics of the files; no data is read. Raises InvalidOptionError if the table has no clustering columns and
        none are named, and InvalidOperationError for columns that are unknown, without an order, or partition columns.
        """
        return clustering_quality(self.snapshot, columns)
