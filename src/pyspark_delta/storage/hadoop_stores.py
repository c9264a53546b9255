"""What a Spark session gives to stores: Hadoop's file systems, and its settings for object stores.

`pyspark_delta.spark` registers the store that uses Hadoop's own client in a JVM. Without it, PyArrow's
`HadoopFileSystem` reads, where it finds libhdfs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyspark_delta.storage.contract import ObjectStore

StoreOpener: TypeAlias = Callable[[str, str, Mapping[str, str]], ObjectStore]
"""A function that returns the store for a scheme, an authority and storage options."""

CloudSettings: TypeAlias = Callable[[str], Mapping[str, str]]
"""A function that returns the session's settings for the object stores of a scheme, with Hadoop's names."""

_opener: StoreOpener | None = None
_cloud_settings: CloudSettings | None = None


def register_hadoop(opener: StoreOpener, settings: CloudSettings) -> None:
    """Let `opener` make the stores of Hadoop's file systems in this process, and take settings from a session."""
    global _opener, _cloud_settings
    _opener, _cloud_settings = opener, settings


def session_settings(scheme: str) -> Mapping[str, str]:
    """Return the session's settings for the object stores of a scheme; empty without a session."""
    return {} if _cloud_settings is None or scheme == "memory" else _cloud_settings(scheme)


def hadoop_store(scheme: str, authority: str, options: Mapping[str, str]) -> ObjectStore:
    """Return the store for a file system of Hadoop. Raises MissingDependencyError if this process has no client."""
    if _opener is not None:
        return _opener(scheme, authority, options)
    from pyspark_delta.storage.arrow_hadoop import ArrowHadoopStore

    return ArrowHadoopStore(scheme, authority, options)
