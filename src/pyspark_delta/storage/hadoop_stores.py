"""The stores of Hadoop's file systems: which one serves a location in this process.

`pyspark_delta.spark` registers the store that uses Hadoop's own client in a JVM. Without it, PyArrow's
`HadoopFileSystem` reads, where it finds libhdfs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyspark_delta.storage.contract import ObjectStore

StoreOpener: TypeAlias = Callable[[str, str, Mapping[str, str]], ObjectStore]
"""A function that returns the store for a scheme, an authority and storage options."""

_opener: StoreOpener | None = None


def register_hadoop_stores(opener: StoreOpener) -> None:
    """Let `opener` make the stores of Hadoop's file systems in this process."""
    global _opener
    _opener = opener


def hadoop_store(scheme: str, authority: str, options: Mapping[str, str]) -> ObjectStore:
    """Return the store for a file system of Hadoop. Raises MissingDependencyError if this process has no client."""
    if _opener is not None:
        return _opener(scheme, authority, options)
    from pyspark_delta.storage.arrow_hadoop import ArrowHadoopStore

    return ArrowHadoopStore(scheme, authority, options)
