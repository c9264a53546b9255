"""List `_delta_log`: the known files from one version on, grouped by kind, without reading them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from pyspark_delta.log.names import (
    LOG_DIRECTORY,
    CheckpointName,
    ClassicCheckpointName,
    CommitName,
    CompactionName,
    MultiPartCheckpointName,
    UuidCheckpointName,
    VersionChecksumName,
    parse_name,
    version_prefix,
)
from pyspark_delta.storage import FileStatus, ObjectStore
from pyspark_delta.storage.paths import file_name, join

_COMMIT_NAME_LENGTH = len("00000000000000000000.json")
_WINDOW = 1000  # versions that the first search for a checkpoint covers


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The files of one complete checkpoint: one, or all parts in order."""

    version: int
    name: CheckpointName
    files: tuple[FileStatus, ...]


@dataclass(slots=True)
class LogListing:
    """The files found: commits, checksums and compactions by version, checkpoint files by name."""

    commits: dict[int, FileStatus] = field(default_factory=dict)
    checksums: dict[int, FileStatus] = field(default_factory=dict)
    compactions: dict[CompactionName, FileStatus] = field(default_factory=dict)
    checkpoint_files: dict[CheckpointName, FileStatus] = field(default_factory=dict)

    def add(self, file: FileStatus, *, last_version: int | None = None) -> None:
        """Add one file; unknown names, and versions after `last_version`, are ignored."""
        text = file_name(file.path)
        if len(text) == _COMMIT_NAME_LENGTH and text.endswith(".json") and text[:20].isdecimal() and text.isascii():
            version = int(text[:20])  # a shortcut for most files
            if version < 2**63 and (last_version is None or version <= last_version):
                self.commits[version] = file
            return
        name = parse_name(text)
        match name:
            case None:
                return
            case CompactionName(_, end):
                if last_version is None or end <= last_version:
                    self.compactions[name] = file
            case _ if last_version is not None and name.version > last_version:
                return
            case CommitName(version, None):
                self.commits[version] = file
            case VersionChecksumName(version):
                self.checksums[version] = file
            case ClassicCheckpointName() | MultiPartCheckpointName() | UuidCheckpointName():
                self.checkpoint_files[name] = file
            case _:
                return  # a staged commit is valid only if a catalog names it

    def checkpoints(self) -> list[Checkpoint]:
        """Return the complete checkpoints, newest first (C023, C030). Empty files are not complete."""
        whole = {name: file for name, file in self.checkpoint_files.items() if file.size > 0}
        found = []
        for name, file in whole.items():
            if not isinstance(name, MultiPartCheckpointName):
                found.append(Checkpoint(name.version, name, (file,)))
            elif name.part == 1:
                parts = tuple(self._parts(name))
                if len(parts) == name.parts:
                    found.append(Checkpoint(name.version, name, parts))
        # Of several checkpoints of a version, those without a second level come first.
        return sorted(found, key=lambda c: (-c.version, _preference(c.name), c.files[0].path))

    def _parts(self, first: MultiPartCheckpointName) -> Iterator[FileStatus]:
        """Yield the files of a checkpoint up to its first missing part: a name may claim ten billion parts."""
        for number in range(1, first.parts + 1):
            file = self.checkpoint_files.get(MultiPartCheckpointName(first.version, number, first.parts))
            if file is None or not file.size:
                return
            yield file

    @property
    def latest_version(self) -> int | None:
        """Return the newest version with a commit or a complete checkpoint; None if there is none."""
        versions = [*self.commits, *(c.version for c in self.checkpoints())]
        return max(versions, default=None)


def _preference(name: CheckpointName) -> int:
    match name:
        case UuidCheckpointName():
            return 0
        case ClassicCheckpointName():
            return 1
        case _:
            return 2


def first_gap(versions: Container[int], first: int, last: int) -> int | None:
    """Return the first version of a range that is not in `versions`; None if all are.

    The loop takes at most as many steps as there are versions.
    """
    version = first
    while version <= last and version in versions:
        version += 1
    return None if version > last else version


def log_location(table_location: str) -> str:
    """Return the location of the log directory of a table."""
    return join(table_location, LOG_DIRECTORY)


def list_log(
    store: ObjectStore, table_location: str, first_version: int = 0, last_version: int | None = None
) -> LogListing:
    """List the files of the versions `first_version` to `last_version` (the end if None)."""
    listing = LogListing()
    end = None if last_version is None else last_version + 1
    _take_in(listing, store, table_location, first_version, end, last_version)
    return listing


def list_back(store: ObjectStore, table_location: str, last_version: int) -> LogListing:
    """List backwards from `last_version` until a complete checkpoint, or the start of the log, is included."""
    listing = LogListing()
    window, end = _WINDOW, last_version + 1
    while True:
        first = max(0, last_version - window)
        _take_in(listing, store, table_location, first, end, last_version)
        if first == 0 or listing.checkpoints():
            return listing
        window, end = window * 4, first


def _take_in(
    listing: LogListing,
    store: ObjectStore,
    table_location: str,
    first_version: int,
    end_version: int | None,
    last_version: int | None,
) -> None:
    """Add the files whose names begin with a version from `first_version` on and before `end_version`.

    A directory is not listed at one moment: of two commits that are made meanwhile, the listing may have only the
    second. Since the first is older, a listing that begins later has it. So a gap is listed once more.
    """
    for _ in range(2):
        end = None if end_version is None else version_prefix(end_version)
        for file in store.list_from(join(log_location(table_location), version_prefix(first_version))):
            if end is not None and file_name(file.path) >= end:
                break
            listing.add(file, last_version=last_version)
        newest = max(listing.commits, default=None)
        if newest is None or not _has_gap(listing, newest):
            return
        end_version, last_version = newest + 1, newest  # what follows may have gaps of its own


def _has_gap(listing: LogListing, newest: int) -> bool:
    """Return True if a commit is missing before the newest one: after the oldest, or after the newest checkpoint."""
    after_checkpoint = max((name.version + 1 for name in listing.checkpoint_files), default=newest)
    return first_gap(listing.commits, min(min(listing.commits), after_checkpoint), newest) is not None


def extend(listing: LogListing, log_tail: Iterable[FileStatus], last_version: int | None) -> None:
    """Add the commits from a catalog, which replace published commits of the same versions."""
    for file in log_tail:
        name = parse_name(file_name(file.path))
        if isinstance(name, CommitName) and (last_version is None or name.version <= last_version):
            listing.commits[name.version] = file
