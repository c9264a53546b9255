"""Work that follows a commit. It is best effort, because the version exists even if this work fails."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from pyspark_delta.catalog.connections import known_table, managed_table
from pyspark_delta.catalog.contract import Capability, Maintenance, MetadataChange, TableInfo
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.errors import DeltaError, DeltaWarning, FileNotFoundInStoreError
from pyspark_delta.log.checkpoint_writer import write_checkpoint
from pyspark_delta.log.cleanup import clean_log
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import published_segment
from pyspark_delta.lru import LruCache
from pyspark_delta.progress import quietly
from pyspark_delta.protocol.clustering import DOMAIN as CLUSTERING
from pyspark_delta.protocol.properties import (
    CHECKPOINT_INTERVAL,
    ENABLE_EXPIRED_LOG_CLEANUP,
    LOG_RETENTION,
    SYMLINK_MANIFEST,
)
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.state import TableState
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.storage import ObjectStore
from pyspark_delta.transaction.symlink_manifest import refresh_manifests
from pyspark_delta.transaction.version_checksum import Totals, write_version_checksum

T = TypeVar("T")

_DAY = 86_400  # seconds
_cleaned: LruCache[str, tuple[Any, ...]] = LruCache(1000)  # tables


def post_commit(ready: ReadyCommit, base: TableState, store: ObjectStore) -> None:
    """Write the version checksum, the symlink manifests if the table has them, and, if it is due, a checkpoint, which
    cleans up the log. Failures are warnings.

    Readers work without either (C025, C123). `base` is the state before the commit.
    """
    location = base.location

    def attempt(what: str, action: Callable[[], T]) -> T | None:
        try:
            with quietly():
                return action()
        except Exception as error:  # for any error, the caller must learn that the commit succeeded
            reason = error.message if isinstance(error, DeltaError) else f"{type(error).__name__}: {error}"
            warnings.warn(
                DeltaWarning(f"Version {ready.version} of '{location}' is committed, but {what}: {reason}"),
                stacklevel=5,
            )
            return None

    attempt("its metadata could not be reported to the catalog", lambda: _report(ready, base))
    complete = attempt(
        "its version checksum could not be written", lambda: write_version_checksum(ready, location, store)
    )
    if SYMLINK_MANIFEST.of(ready.configuration.properties):
        attempt("its manifest could not be written", lambda: _refresh_manifest(ready, base))
    if ready.version == 0 or ready.version % CHECKPOINT_INTERVAL.of(ready.configuration.properties):
        return
    written = attempt(
        "its checkpoint could not be written",
        lambda: _checkpoint(ready, location, store, counted=complete is not False),
    )
    if written and ENABLE_EXPIRED_LOG_CLEANUP.of(ready.configuration.properties):
        attempt("the log could not be cleaned up", lambda: _clean(ready, base, store))


def _refresh_manifest(ready: ReadyCommit, base: TableState) -> None:
    """Write the manifests of the partitions that the commit changed, from the newest version."""
    if ready.adds.num_rows or ready.removes.num_rows:
        snapshot = Snapshot.load(base.location, storage_options=base.storage_options, catalog_table=base.catalog_table)
        refresh_manifests(snapshot, (ready.adds, ready.removes))


def _report(ready: ReadyCommit, base: TableState) -> None:
    """Report changes of metadata to the catalog in which a table is registered."""
    known = known_table(base.catalog_table)
    domains = tuple(domain for domain in ready.domains if domain.domain == CLUSTERING)
    if known is None or not (ready.protocol or ready.metadata or domains):
        return
    catalog, table = known
    if isinstance(table, TableInfo) and not table.catalog_managed and Capability.MIRROR in catalog.capabilities:
        change = MetadataChange(protocol=ready.protocol, metadata=ready.metadata, domains=domains)
        catalog.report_change(table, ready.version, ready.in_commit_timestamp or ready.timestamp, change)


def _checkpoint(ready: ReadyCommit, location: str, store: ObjectStore, *, counted: bool) -> bool:
    """Write the checkpoint, and the version checksum from its counts if no earlier checksum led to it."""
    if ready.configuration.is_catalog_managed and not _is_published(store, location, ready.version):
        return False
    replay = LogReplay(store, published_segment(store, location, ready.version))
    written = write_checkpoint(replay, ready.configuration)
    if not counted:
        totals = Totals(written.totals, replay.replayed_transactions(), replay.replayed_domains())
        write_version_checksum(ready, location, store, totals)
    return True


def _is_published(store: ObjectStore, location: str, version: int) -> bool:
    """True if a commit is in the log, which is required for a checkpoint of it (C476)."""
    try:
        store.status(published_path(location, version))
    except FileNotFoundInStoreError:
        return False
    return True


def _clean(ready: ReadyCommit, base: TableState, store: ObjectStore) -> None:
    """Clean up the log, at most once per day and process, because the retention limit is a midnight.

    Another clean-up on the same day would list the whole log and find nothing.
    """
    table = managed_table(base.catalog_table)
    allowed = table is not None and Maintenance.LOG_CLEANUP in table.info.allowed_maintenance
    configuration, now = ready.configuration, time.time()
    kept = LOG_RETENTION.of(configuration.properties).total_seconds()
    state = (now // _DAY, (now - kept) // _DAY, allowed, configuration.protocol, dict(configuration.properties))
    if _cleaned.get(base.location) == state:
        return
    if clean_log(store, base.location, configuration, allowed_by_catalog=allowed).log_files:
        clear_cache(base.location)  # its snapshots may be read from deleted files
    _cleaned.put(base.location, state)
