"""Stores for the locations of tables, and the normalized form of a location that a user passes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from pyspark_delta.session_stores import session_settings
from pyspark_delta.storage.contract import FileStatus, ObjectStore
from pyspark_delta.storage.credentials import CREDENTIALS_KEY, source_of
from pyspark_delta.storage.hadoop_stores import hadoop_store
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.storage.paths import (
    HADOOP_SCHEMES,
    canonical_scheme,
    normalize_location,
    require_supported,
    split,
)

__all__ = [
    "ACCESS_PREFIX",
    "FileStatus",
    "ObjectStore",
    "intercepted",
    "normalize_location",
    "own_options",
    "store_for",
]

ACCESS_PREFIX = "pyspark_delta."
"""The prefix of storage options that configure access to the table. They are not passed to the store."""

_LOCAL = LocalStore()
_interceptors: list[Callable[[ObjectStore], ObjectStore]] = []


def store_for(location: str, storage_options: Mapping[str, str] | None = None) -> ObjectStore:
    """Return the store for a location. Locations with equal scheme, authority and options share a store.

    Without options of its own, an object store takes the settings of the Spark session, if there is one.

    Raises UnsupportedTableError for an unknown scheme, MissingDependencyError if a remote store needs the `cloud`
    extra, InvalidOptionError for options that the store refuses.
    """
    store = _store(location, storage_options)
    for wrap in _interceptors:
        store = wrap(store)
    return store


@contextlib.contextmanager
def intercepted(wrap: Callable[[ObjectStore], ObjectStore]) -> Iterator[None]:
    """Make `store_for` return `wrap(store)` on every thread while the block runs; for tests and traces."""
    _interceptors.append(wrap)
    try:
        yield
    finally:
        _interceptors.remove(wrap)


def own_options(storage_options: Mapping[str, str] | None) -> dict[str, str]:
    """Return the options for the store: all except those that configure how the table is accessed."""
    return {key: value for key, value in (storage_options or {}).items() if not key.startswith(ACCESS_PREFIX)}


def _store(location: str, storage_options: Mapping[str, str] | None) -> ObjectStore:
    scheme, authority, _ = split(location)
    if scheme == "file":
        return _LOCAL
    require_supported(scheme, location)
    options = {str(key): str(value) for key, value in own_options(storage_options).items()}
    if scheme in HADOOP_SCHEMES:
        return hadoop_store(scheme, authority, options)
    source = (storage_options or {}).get(CREDENTIALS_KEY, "")
    if not options and not source:
        options = dict(session_settings(canonical_scheme(scheme)))
    return _remote(scheme, authority, tuple(sorted(options.items())), source)


@lru_cache(maxsize=64)
def _remote(scheme: str, authority: str, options: tuple[tuple[str, str], ...], source: str) -> ObjectStore:
    if scheme == "memory":
        from pyspark_delta.storage.memory import MemoryStore

        return MemoryStore.named(authority)
    from pyspark_delta.storage.object import ObjectStorage

    return ObjectStorage(scheme, authority, dict(options), source_of({CREDENTIALS_KEY: source}))
