"""What a run did to the layout of files: delta-spark's `zOrderStats` and `clusteringStats`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LayoutMetrics:
    """The files that a run read: those that belonged to cubes, and others; and the cubes that it made.

    `merged_files` are those whose rows are in the new files. Sizes are bytes.
    """

    is_clustering: bool
    cube_files: int
    cube_bytes: int
    other_files: int
    other_bytes: int
    cubes: int
    merged_files: int
    merged_bytes: int
    new_cubes: int

    def zorder_stats(self) -> Mapping[str, Any] | None:
        """Return the members of `zOrderStats`; None for a clustered table."""
        if self.is_clustering:
            return None
        return {
            "strategyName": "all",
            "inputCubeFiles": {"num": self.cube_files, "size": self.cube_bytes},
            "inputOtherFiles": {"num": self.other_files, "size": self.other_bytes},
            "inputNumCubes": self.cubes,
            "mergedFiles": {"num": self.merged_files, "size": self.merged_bytes},
            "numOutputCubes": self.new_cubes,
            "mergedNumCubes": None,
        }

    def clustering_stats(self) -> Mapping[str, Any] | None:
        """Return the members of `clusteringStats`; None for Z-order."""
        if not self.is_clustering:
            return None
        return {
            "inputZCubeFiles": {"numFiles": self.cube_files, "size": self.cube_bytes},
            "inputOtherFiles": {"numFiles": self.other_files, "size": self.other_bytes},
            "inputNumZCubes": self.cubes,
            "mergedFiles": {"numFiles": self.merged_files, "size": self.merged_bytes},
            "numOutputZCubes": self.new_cubes,
        }
