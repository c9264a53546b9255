"""Files of a log that are asked for by name, where the versions looked for are few and known.

A local directory can only be listed as a whole, and sorted afterwards: after ten thousand commits that takes longer
than a commit does. An object store begins a listing at any name, so there one listing is as good.
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
"""How many versions are worth a question each; for more, one listing takes less."""

_FARTHEST = 4096  # names behind the latest version; commits there show that one is missing


def lists_everything(table_location: str) -> bool:
    """Whether each listing of the log costs as much as all files of its directory."""
    return split(table_location)[0] == "file"


def later_commits(
    store: ObjectStore, table_location: str, first: int, last: int | None = None, known: Container[int] = ()
) -> dict[int, FileStatus] | None:
    """The published commits from `first` on, up to `last`, or to the latest version; none that are `known` already.

    None where only a listing tells: where `first` or another version up to `last` is not there, where there are more
    than a few, and where a version is missing before later ones. A hole shows unless what lies behind it is shorter.
    """
    end = first + NEAR if last is None else last + 1
    if end - first > NEAR:
        return None
    found: dict[int, FileStatus] = {}
    for version in range(first, end):
        if version in known:
            continue
        file = _commit(store, table_location, version)
        if file is None:
            break
        found[version] = file
    else:
        return None if last is None else found
    if last is not None or version == first or _is_hole(store, table_location, version):
        return None
    return found


def checkpoint_to(store: ObjectStore, table_location: str, hint: LastCheckpoint, last: int) -> LogListing | None:
    """What a version is read from that is not far after the checkpoint of the hint; None where something is missing.

    Of other checkpoints and of compactions in between nothing is said, so it takes more reading where they are.
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
    """Whether some commit lies behind a version that is missing: at 1, 2, 4, 8 and so on versions after it."""
    distance = 1
    while distance <= _FARTHEST:
        if _commit(store, table_location, version + distance) is not None:
            return True
        distance *= 2
    return False


def _commit(store: ObjectStore, table_location: str, version: int) -> FileStatus | None:
    return _status(store, table_location, str(CommitName(version)))


def _status(store: ObjectStore, table_location: str, name: str) -> FileStatus | None:
    try:
        return store.status(join(log_location(table_location), name))
    except FileNotFoundInStoreError:
        return None
