"""The stores of Hadoop's file systems: through the client of a Spark session, else through PyArrow and libhdfs."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_delta.session_stores import hadoop_opener
from pyspark_delta.storage.contract import ObjectStore


def hadoop_store(scheme: str, authority: str, options: Mapping[str, str]) -> ObjectStore:
    """Return the store for a file system of Hadoop. Raises MissingDependencyError if this process has no client."""
    opener = hadoop_opener()
    if opener is not None:
        store: ObjectStore = opener(scheme, authority, options)
        return store
    from pyspark_delta.storage.arrow_hadoop import ArrowHadoopStore

    return ArrowHadoopStore(scheme, authority, options)
