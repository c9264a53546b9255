"""Log cleanup: delete files older than the table's retention, up to a retained checkpoint (C104, C364-C371).

Files are deleted oldest first, and commits before checkpoints, so an interrupted cleanup leaves every retained version
readable. Modification times date the commits: they are never before the in-commit timestamps.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from pyspark_delta import progress
from pyspark_delta.actions.decode import decode_sidecar
from pyspark_delta.features import Feature, is_supported
from pyspark_delta.log.checkpoints import CheckpointReader
from pyspark_delta.log.listing import Checkpoint, LogListing, list_log, log_location
from pyspark_delta.log.names import (
    SIDECAR_DIRECTORY,
    STAGED_DIRECTORY,
    CommitName,
    CompactionName,
    LogName,
    VersionChecksumName,
    parse_name,
    version_prefix,
)
from pyspark_delta.logs import logger
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import CHECKPOINT_PROTECTION_VERSION, LOG_RETENTION
from pyspark_delta.storage import FileStatus, ObjectStore
from pyspark_delta.storage.paths import decode, file_name, join
from pyspark_delta.storage.temporary import LEFTOVER_AGE, LeavesTemporaryFiles

_log = logger(__name__)

_DAY = 86_400_000  # ms
_DELETED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class CleanedLog:
    """The result of a cleanup: the version of the oldest checkpoint, and the number of deleted files."""

    first_version: int | None = None
    log_files: int = 0
    sidecars: int = 0


def clean_log(
    store: ObjectStore,
    table_location: str,
    configuration: TableConfiguration,
    *,
    now_ms: int | None = None,
    cutoff_ms: int | None = None,
    allowed_by_catalog: bool = False,
    everywhere: bool = False,
) -> CleanedLog:
    """Delete the log files that no retained version is read from.

    Versions are retained as long as the table property says, or since `cutoff_ms`, in milliseconds since the epoch.

    Where a store makes temporary files, it also deletes those of killed writers, a week after their last write: in the
    directories of the log, and with `everywhere` beside data files.

    Does nothing without a checkpoint that is old enough, for tables whose catalog does not allow it (C478), and if
    checkpoints are protected (`delta.requireCheckpointProtectionBeforeVersion`). Raises CorruptLogError, before
    anything is deleted, if the checkpoint that would replace all earlier files cannot be read.
    """
    now = int(time.time() * 1000) if now_ms is None else now_ms
    _remove_leftovers(store, table_location, now - LEFTOVER_AGE, everywhere)
    if configuration.is_catalog_managed and not allowed_by_catalog:
        return CleanedLog()
    if cutoff_ms is None:
        cutoff_ms = _midnight(now - LOG_RETENTION.of(configuration.properties) // timedelta(milliseconds=1))
    cutoff, found = _old_files(store, table_location, cutoff_ms)
    if cutoff is None or _is_protected(configuration, cutoff.version):
        return CleanedLog()
    CheckpointReader(store, table_location, cutoff).open()

    def is_expired_commit(name: LogName) -> bool:
        match name:
            case CommitName(version, uuid):
                return uuid is None and version < cutoff.version  # the commit of the checkpoint stays (C367)
            case VersionChecksumName(version):
                return version < cutoff.version
            case CompactionName(start):
                return start <= cutoff.version
            case _:
                return False

    def is_expired_checkpoint(name: LogName) -> bool:
        return not isinstance(name, CommitName | VersionChecksumName | CompactionName) and name.version < cutoff.version

    files = _delete(store, (file for name, file in found if is_expired_commit(name)))
    files += _delete(store, (file for name, file in found if is_expired_checkpoint(name)))
    if configuration.is_catalog_managed:
        files += _delete(store, _staged(store, table_location, cutoff.version))
    sidecars = 0
    if files or is_supported(configuration, Feature.V2_CHECKPOINT):
        sidecars = _delete(store, orphaned_sidecars(store, table_location, _midnight(now) - _DAY))
    _log.debug("Deleted %d files of the log of %s, and %d sidecars", files, table_location, sidecars)
    return CleanedLog(cutoff.version, files, sidecars)


def _remove_leftovers(store: ObjectStore, table_location: str, before_ms: int, everywhere: bool) -> None:
    if not isinstance(store, LeavesTemporaryFiles):  # others publish in one request
        return
    if everywhere:
        store.remove_leftovers(table_location, before_ms, recursive=True)
        return
    log = log_location(table_location)
    for directory in (log, join(log, SIDECAR_DIRECTORY), join(log, STAGED_DIRECTORY)):
        store.remove_leftovers(directory, before_ms)


def _old_files(
    store: ObjectStore, table_location: str, cutoff: int
) -> tuple[Checkpoint | None, list[tuple[LogName, FileStatus]]]:
    """Return the newest complete checkpoint not after the newest commit that is not after a time (C364, C365, C371).

    Also return the files of the log at least up to that version, in the order of their names.
    """
    checkpoint: Checkpoint | None = None
    newest: Checkpoint | None = None
    latest, version, own = 0, -1, LogListing()
    files: list[tuple[LogName, FileStatus]] = []
    for file in store.list_from(join(log_location(table_location), version_prefix(0))):
        name = parse_name(file_name(file.path))
        if name is None:
            continue
        files.append((name, file))
        if isinstance(name, CompactionName | VersionChecksumName):
            continue
        if name.version != version:
            version, own = name.version, LogListing()
        if not isinstance(name, CommitName):
            own.add(file)
            newest = next(iter(own.checkpoints()), newest)
        elif name.uuid is None:  # which is listed after the checkpoints of its version
            latest = max(latest + 1, file.modification_time)
            if latest > cutoff:
                break
            checkpoint = newest
    return checkpoint, files


def _is_protected(configuration: TableConfiguration, version: int) -> bool:
    """True if a cleanup before the version would delete some, but not all, traces of a dropped feature."""
    boundary = CHECKPOINT_PROTECTION_VERSION.of(configuration.properties)
    return is_supported(configuration, Feature.CHECKPOINT_PROTECTION) and version < boundary


def _staged(store: ObjectStore, table_location: str, last_version: int) -> Iterator[FileStatus]:
    """Yield the staged commits up to a version (C479): the published ones count, even if a staged one was rejected."""
    end = version_prefix(last_version + 1)
    for file in store.list_from(join(log_location(table_location), STAGED_DIRECTORY, version_prefix(0))):
        if file_name(file.path) >= end:
            return
        name = parse_name(file_name(file.path))
        if isinstance(name, CommitName) and name.uuid is not None:
            yield file


def orphaned_sidecars(store: ObjectStore, table_location: str, younger: int) -> Iterator[FileStatus]:
    """Yield the sidecars without a checkpoint (C368) that are older than a time.

    Newer ones may belong to a checkpoint that is being written (C369). Raises CorruptLogError if some checkpoint cannot
    be read, before anything is returned.
    """
    directory = join(log_location(table_location), SIDECAR_DIRECTORY)
    old = [file for file in store.list_from(f"{directory}/") if file.modification_time < younger]
    if not old:
        return
    named: set[str] = set()
    for checkpoint in list_log(store, table_location).checkpoints():
        reader = CheckpointReader(store, table_location, checkpoint)
        named.update(file_name(decode(decode_sidecar(fields).path)) for fields in reader.actions("sidecar"))
    yield from (file for file in old if file_name(file.path) not in named)


def _delete(store: ObjectStore, files: Iterable[FileStatus]) -> int:
    step = progress.begin("Delete log files", None, "files")
    remaining, number = iter(files), 0
    while block := [file.path for file in islice(remaining, _DELETED_AT_ONCE)]:
        store.delete(block)
        number += len(block)
        step.add(len(block))
    return number


def _midnight(time_ms: int) -> int:
    """Return the beginning of the day in UTC."""
    return time_ms // _DAY * _DAY
