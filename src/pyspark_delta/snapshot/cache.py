"""The snapshots of a process, by table: opened once, then updated with one listing per use.

Bounded by the number of tables (`PYSPARK_DELTA_SNAPSHOT_CACHE_ENTRIES`, 16 unless set; 0 turns the cache off); the
columns of files that a snapshot keeps are bounded by `PYSPARK_DELTA_FILE_CACHE_BYTES` for each table.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeAlias

from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.lru import LruCache
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.snapshot.snapshot import Snapshot

ENTRIES_VARIABLE = "PYSPARK_DELTA_SNAPSHOT_CACHE_ENTRIES"
DEFAULT_ENTRIES = 16

_Key: TypeAlias = tuple[str, tuple[tuple[str, str], ...], CatalogTable | None]

_snapshots: LruCache[_Key, Snapshot] = LruCache(lambda: int(os.environ.get(ENTRIES_VARIABLE, DEFAULT_ENTRIES)))


def latest_snapshot(
    location: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    catalog_table: CatalogTable | None = None,
    tail: TailFiles | None = None,
) -> Snapshot:
    """Return the latest version of a table. Arguments and errors are as in `Snapshot.load`."""
    key = _key(location, storage_options, catalog_table)
    known = _snapshots.get(key)
    try:
        if known is None:
            snapshot = Snapshot.load(location, storage_options=storage_options, catalog_table=catalog_table, tail=tail)
        elif tail is not None and tail.latest_version < known.version:
            snapshot = known.update()  # another thread has seen a newer version since, or the catalog was restored
        else:
            snapshot = known.update(tail=tail)
    except Exception:
        _snapshots.pop(key)
        raise

    def newest(newer: Snapshot | None) -> Snapshot:
        if newer is not None and newer is not known and newer.version >= snapshot.version:
            return newer  # another thread was ahead
        return snapshot

    return _snapshots.update(key, newest) or snapshot


def remember(snapshot: Snapshot) -> None:
    """Replace an older snapshot of a table by a newer one, for example that of a new commit."""
    key = _key(snapshot.location, snapshot.storage_options, snapshot.catalog_table)
    _snapshots.update(key, lambda known: snapshot if known is not None and known.version < snapshot.version else known)


def clear_cache(location: str | None = None) -> None:
    """Forget the snapshots of one location, or all of them."""
    _snapshots.discard(lambda key: location is None or key[0] == location)


def _key(location: str, storage_options: Mapping[str, str] | None, catalog_table: CatalogTable | None) -> _Key:
    return location, tuple(sorted((storage_options or {}).items())), catalog_table
