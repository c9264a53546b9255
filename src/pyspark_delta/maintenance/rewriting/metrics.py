"""The metrics of commits and of runs that rewrite files, with delta-spark's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.display import html_facts
from pyspark_delta.maintenance.rewriting.layout_metrics import LayoutMetrics
from pyspark_delta.maintenance.rewriting.rewritten import RewrittenBin


@dataclass(frozen=True, eq=False)
class FileSizes:
    """The sizes, in bytes, of some files."""

    sizes: np.ndarray

    @classmethod
    def of(cls, tables: Sequence[pa.Table]) -> FileSizes:
        """Return the sizes of files in tables with the column `size`."""
        found = [np.asarray(table["size"]) for table in tables]
        return cls(np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64))

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self.sizes)

    @property
    def total(self) -> int:
        """The sum of the sizes."""
        return int(self.sizes.sum())

    def as_row(self) -> dict[str, int | float | None]:
        """Return the smallest, largest and mean size, number and sum; no sizes without files."""
        if not self.count:
            return {"min": None, "max": None, "avg": 0.0, "totalFiles": 0, "totalSize": 0}
        mean = self.total / self.count
        return {"min": self.at(0), "max": self.at(1), "avg": mean, "totalFiles": self.count, "totalSize": self.total}

    def at(self, share: float) -> int:
        """Return the size that a share of the files does not exceed; 0 without files."""
        return int(self.sizes[min(self.count - 1, int(self.count * share))]) if self.count else 0


def commit_metrics(bins: Sequence[RewrittenBin]) -> dict[str, int]:
    """Return the metrics of a commit of some bins."""
    added, removed = FileSizes.of([one.adds for one in bins]), FileSizes.of([one.removes for one in bins])
    return {
        "numAddedFiles": added.count,
        "numRemovedFiles": removed.count,
        "numAddedBytes": added.total,
        "numRemovedBytes": removed.total,
        "minFileSize": added.at(0),
        "p25FileSize": added.at(0.25),
        "p50FileSize": added.at(0.5),
        "p75FileSize": added.at(0.75),
        "maxFileSize": added.at(1),
        "numDeletionVectorsRemoved": sum(_vectors(one.removes) for one in bins),
    }


@dataclass(frozen=True)
class RewriteResult:
    """What a run did: the committed versions, and the sizes in bytes of the files that it added and removed.

    `bins_given_up` were rewritten but not committed, because other writers changed their files; `bins_left` were not
    begun within the budget. Both are for the next run. `layout` is None for a compaction. Times are milliseconds since
    the epoch.
    """

    versions: tuple[int, ...] = ()
    added: FileSizes = field(default_factory=lambda: FileSizes.of(()), repr=False)
    removed: FileSizes = field(default_factory=lambda: FileSizes.of(()), repr=False)
    bins: int = 0
    bins_given_up: int = 0
    bins_left: int = 0
    partitions: int = 0
    files_considered: int = 0
    deletion_vectors_removed: int = 0
    deleted_rows_removed: int = 0
    started: int = 0
    ended: int = 0
    threads: int = 1
    layout: LayoutMetrics | None = None
    columns: int = 0
    columns_with_stats: int = 0

    @property
    def version(self) -> int | None:
        """The last committed version; None if nothing was committed."""
        return self.versions[-1] if self.versions else None

    @property
    def metrics(self) -> Mapping[str, int]:
        """The metrics of all commits together, by the names of the table's history."""
        return {
            "numAddedFiles": self.added.count,
            "numRemovedFiles": self.removed.count,
            "numAddedBytes": self.added.total,
            "numRemovedBytes": self.removed.total,
            "numDeletionVectorsRemoved": self.deletion_vectors_removed,
        }

    def as_row(self) -> dict[str, Any]:
        """Return the result with the columns of delta-spark's OPTIMIZE."""
        vectors = {
            "numDeletionVectorsRemoved": self.deletion_vectors_removed,
            "numDeletionVectorRowsRemoved": self.deleted_rows_removed,
        }
        return {
            "numFilesAdded": self.added.count,
            "numFilesRemoved": self.removed.count,
            "filesAdded": self.added.as_row(),
            "filesRemoved": self.removed.as_row(),
            "partitionsOptimized": self.partitions,
            "zOrderStats": None if self.layout is None else self.layout.zorder_stats(),
            "clusteringStats": None if self.layout is None else self.layout.clustering_stats(),
            "numBins": self.bins,
            "numBatches": len(self.versions),
            "totalConsideredFiles": self.files_considered,
            "totalFilesSkipped": self.files_considered - self.removed.count,
            "preserveInsertionOrder": self.layout is None,
            "numFilesSkippedToReduceWriteAmplification": 0,
            "numBytesSkippedToReduceWriteAmplification": 0,
            "startTimeMs": self.started,
            "endTimeMs": self.ended,
            "totalClusterParallelism": self.threads,
            "totalScheduledTasks": self.bins,
            "autoCompactParallelismStats": None,
            "deletionVectorStats": vectors if self.deletion_vectors_removed else None,
            "numTableColumns": self.columns,
            "numTableColumnsWithStats": self.columns_with_stats,
        }

    def facts(self) -> dict[str, object]:
        """Return the result as names and values."""
        return {
            "version": self.version,
            "commits": len(self.versions),
            "files_added": self.added.count,
            "files_removed": self.removed.count,
            "bytes_added": self.added.total,
            "bytes_removed": self.removed.total,
            "deletion_vectors_removed": self.deletion_vectors_removed,
            "bins": self.bins,
            "bins_given_up": self.bins_given_up,
            "bins_left": self.bins_left,
            "seconds": round((self.ended - self.started) / 1000, 3),
        }

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.facts().items() if value)
        return f"RewriteResult({shown})"

    def _repr_html_(self) -> str:
        return html_facts("RewriteResult", self.facts())


def deleted_rows_removed(bins: Sequence[RewrittenBin]) -> int:
    """Return how many deleted rows left with the removed files, and are not in the new files."""
    return sum(_deleted(one.removes) - _deleted(one.adds) for one in bins)


def _deleted(files: pa.Table) -> int:
    if "deletion_vector" not in files.column_names:
        return 0
    return pc.sum(pc.struct_field(files["deletion_vector"], "cardinality")).as_py() or 0


def _vectors(files: pa.Table) -> int:
    column = files["deletion_vector"]
    return len(column) - int(column.null_count)
