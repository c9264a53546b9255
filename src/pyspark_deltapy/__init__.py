"""The second short name of the data source, `deltapy`, for sessions where another implementation owns `delta`.

Spark asks every module named `pyspark_*` for one `DefaultSource`, so a second name takes a second module.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name != "DefaultSource":
        raise AttributeError(f"module 'pyspark_deltapy' has no attribute '{name}'")
    try:
        return import_module("pyspark_delta.spark.source").DeltapySource
    except Exception as error:  # Spark imports all sources at once: a failure here would break the others.
        raise AttributeError(f"the data source cannot be loaded: {error}") from error
