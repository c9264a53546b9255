"""What a Spark session gives to stores: how to open Hadoop's file systems, and its settings for object stores.

`pyspark_delta.spark` registers both when it is imported, in every short-lived process of the Python Data Source. So
this module imports nothing, and neither storage nor PyArrow is loaded for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

StoreOpener: TypeAlias = Callable[[str, str, Mapping[str, str]], Any]
"""A function that returns the `ObjectStore` for a scheme, an authority and storage options."""

CloudSettings: TypeAlias = Callable[[str], Mapping[str, str]]
"""A function that returns the session's settings for the object stores of a scheme, with Hadoop's names."""

_opener: StoreOpener | None = None
_cloud_settings: CloudSettings | None = None


def register_hadoop(opener: StoreOpener, settings: CloudSettings) -> None:
    """Let `opener` make the stores of Hadoop's file systems in this process, and take settings from a session."""
    global _opener, _cloud_settings
    _opener, _cloud_settings = opener, settings


def hadoop_opener() -> StoreOpener | None:
    """Return the function that opens Hadoop's file systems through the client of a session; None without PySpark."""
    return _opener


def session_settings(scheme: str) -> Mapping[str, str]:
    """Return the session's settings for the object stores of a scheme; empty without a session."""
    return {} if _cloud_settings is None or scheme == "memory" else _cloud_settings(scheme)
