"""The snapshots of a process, by table: opened once, and updated with one listing at each use.

Bounded by the number of tables (`PYSPARK_DELTA_SNAPSHOT_CACHE_ENTRIES`, 16 unless set; 0 turns the cache off); the
columns of files that a snapshot keeps are bounded by `PYSPARK_DELTA_FILE_CACHE_BYTES` for each table.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeAlias

from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.snapshot.snapshot import Snapshot

ENTRIES_VARIABLE = "PYSPARK_DELTA_SNAPSHOT_CACHE_ENTRIES"
DEFAULT_ENTRIES = 16

_Key: TypeAlias = tuple[str, tuple[tuple[str, str], ...], CatalogTable | None]

_lock = threading.Lock()
_snapshots: OrderedDict[_Key, Snapshot] = OrderedDict()


def latest_snapshot(
    location: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    catalog_table: CatalogTable | None = None,
    tail: TailFiles | None = None,
) -> Snapshot:
    """Return the latest version of a table. Arguments and errors are as in `Snapshot.load`."""
    key = _key(location, storage_options, catalog_table)
    with _lock:
        known = _snapshots.get(key)
    try:
        if known is None:
            snapshot = Snapshot.load(location, storage_options=storage_options, catalog_table=catalog_table, tail=tail)
        elif tail is not None and tail.latest_version < known.version:
            snapshot = known.update()  # another thread has seen a newer version since, or the catalog was restored
        else:
            snapshot = known.update(tail=tail)
    except Exception:
        with _lock:
            _snapshots.pop(key, None)
        raise
    with _lock:
        newer = _snapshots.get(key)
        if newer is not None and newer is not known and newer.version >= snapshot.version:
            snapshot = newer  # another thread was ahead
        _snapshots[key] = snapshot
        _snapshots.move_to_end(key)
        while len(_snapshots) > _limit():
            _snapshots.popitem(last=False)
    return snapshot


def remember(snapshot: Snapshot) -> None:
    """Replace an older snapshot of a table by a newer one, for example that of a new commit."""
    key = _key(snapshot.location, snapshot.storage_options, snapshot.catalog_table)
    with _lock:
        known = _snapshots.get(key)
        if known is not None and known.version < snapshot.version:
            _snapshots[key] = snapshot


def clear_cache(location: str | None = None) -> None:
    """Forget the snapshots of one location, or all of them."""
    with _lock:
        for key in [k for k in _snapshots if location is None or k[0] == location]:
            del _snapshots[key]


def _key(location: str, storage_options: Mapping[str, str] | None, catalog_table: CatalogTable | None) -> _Key:
    return location, tuple(sorted((storage_options or {}).items())), catalog_table


def _limit() -> int:
    return int(os.environ.get(ENTRIES_VARIABLE, DEFAULT_ENTRIES))
