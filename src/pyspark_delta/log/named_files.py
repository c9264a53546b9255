"""Look up files of a log by name, if only a few known versions are needed.

A local directory can only be listed completely, and then sorted: after ten thousand commits that takes longer than a
commit. An object store lists from any name, so there one listing is as fast.
"""

from __future__ import annotations

from collections.abc import Container

from pyspark_delta.errors import FileNotFoundInStoreError
from pyspark_delta.log.last_checkpoint import LastCheckpoint
from pyspark_delta.log.listing import LogListing, log_location
from pyspark_delta.log.names import (
    CheckpointName,
    ClassicCheckpointName,
    CommitName,
    MultiPartCheckpointName,
    VersionChecksumName,
)
from pyspark_delta.storage import FileStatus, ObjectStore
from pyspark_delta.storage.paths import join, split

NEAR = 64
"""The number of versions up to which one request per version is faster than one listing."""

_FARTHEST = 4096  # names after the latest version; commits there show that one is missing


def lists_everything(table_location: str) -> bool:
    """True if every listing of the log reads its whole directory."""
    return split(table_location)[0] == "file"


def later_commits(
    store: ObjectStore, table_location: str, first: int, last: int | None = None, known: Container[int] = ()
) -> dict[int, FileStatus] | None:
    """Return the published commits from `first` to `last`, or to the latest version, without those in `known`.

    None if a listing is required: if `first` or another version up to `last` is missing, if there are more than a few,
    or if a version is missing before later ones. A gap is found unless fewer commits follow it than are missing.
    """
    end = first + NEAR if last is None else last + 1
    if end - first > NEAR:
        return None
    found: dict[int, FileStatus] = {}
    for version in range(first, end):
        if version in known:
            continue
        file = commit_status(store, table_location, version)
        if file is None:
            break
        found[version] = file
    else:
        return None if last is None else found
    if last is not None or version == first or _is_hole(store, table_location, version):
        return None
    return found


def checkpoint_to(store: ObjectStore, table_location: str, hint: LastCheckpoint, last: int) -> LogListing | None:
    """Return the files of a version shortly after the checkpoint of the hint; None if something is missing.

    Ignores other checkpoints and compactions between, so if they exist, more files are read.
    """
    later = later_commits(store, table_location, hint.version + 1, last) if hint.version < last else {}
    if later is None or hint.version > last:
        return None
    listing = LogListing(commits=later)
    for name in _checkpoint_names(hint):
        file = _status(store, table_location, str(name))
        if file is None:
            return None
        listing.checkpoint_files[name] = file
    take_checksum(listing, store, table_location, last)
    return listing if listing.checkpoints() else None


def take_checksum(listing: LogListing, store: ObjectStore, table_location: str, version: int) -> None:
    """Add the checksum file of a version, if there is one."""
    file = _status(store, table_location, str(VersionChecksumName(version)))
    if file is not None:
        listing.checksums[version] = file


def _checkpoint_names(hint: LastCheckpoint) -> list[CheckpointName]:
    if hint.top_level is not None:
        return [hint.top_level]
    if hint.parts is None:
        return [ClassicCheckpointName(hint.version)]
    return [MultiPartCheckpointName(hint.version, part, hint.parts) for part in range(1, min(hint.parts, NEAR) + 1)]


def _is_hole(store: ObjectStore, table_location: str, version: int) -> bool:
    """True if some commit follows a missing version: it checks 1, 2, 4, 8 and so on versions after it."""
    distance = 1
    while distance <= _FARTHEST:
        if commit_status(store, table_location, version + distance) is not None:
            return True
        distance *= 2
    return False


def commit_status(store: ObjectStore, table_location: str, version: int) -> FileStatus | None:
    """Return the file of a published commit; None if it does not exist."""
    return _status(store, table_location, str(CommitName(version)))


def _status(store: ObjectStore, table_location: str, name: str) -> FileStatus | None:
    try:
        return store.status(join(log_location(table_location), name))
    except FileNotFoundInStoreError:
        return None
