"""Writing DataFrames: frames are checked and aligned, workers write files with Arrow, the driver commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_delta.spark.write.save_modes import save

__all__ = ["save"]


def __getattr__(name: str) -> Any:
    # Lazily: workers import this package for `task` alone, and need nothing that plans or commits.
    if name == "save":
        from pyspark_delta.spark.write.save_modes import save

        return save
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
