"""The log that a stream follows: which commits exist, and the commits themselves, each read once.

What is kept does not depend on the length of the log: the newest commit, a window of commit files ahead of the stream,
and the commits that were read since `forget`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

from pyspark_delta.catalog.tail_store import with_tail
from pyspark_delta.errors import CorruptLogError, FileNotFoundInStoreError, StreamDataLossError, VersionNotFoundError
from pyspark_delta.log.following import commits_after, find_commits
from pyspark_delta.log.listing import LogListing, extend, list_log
from pyspark_delta.log.segment import CommitFile, is_staged
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.access import catalog_tail
from pyspark_delta.storage import FileStatus, ObjectStore
from pyspark_delta.streaming.offset import different_table

C = TypeVar("C")
Load: TypeAlias = Callable[[ObjectStore, Sequence[CommitFile]], Sequence[C]]

_WINDOW = 4096  # commit files that are known ahead
_FEWEST_READ, _MOST_READ = 16, 256  # commits that are read and parsed together


class CommitLog(Generic[C]):
    """The commits of one table from the position of a stream on, as `load` makes them from commit files."""

    def __init__(self, snapshot: Snapshot, load: Load[C]) -> None:
        self._load_files = load
        self._reset(snapshot)

    def _reset(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot  # the newest that was opened
        self.latest_version = snapshot.version
        self._store = snapshot.store
        commits = snapshot.segment.commits[-_WINDOW:]
        self._last = commits[-1] if commits and commits[-1].version == snapshot.version else None
        # The newest commits of a managed table are known to its catalog alone; all others are found in the log.
        self._tail = {commit.version: commit.file for commit in commits if is_staged(commit.file)}
        self._found: dict[int, FileStatus] = {}
        self._read: dict[int, C] = {}

    def refresh(self) -> None:
        """Look for new commits with at most one listing. Raises InvalidOffsetError if the table was replaced."""
        snapshot = self.snapshot
        tail = catalog_tail(snapshot.location, snapshot.catalog_table)
        if tail is not None:
            listing = LogListing()
            extend(listing, tail.files, None)
            self._store, self._tail = with_tail(self._store, tail), listing.commits
        if self._last is None:
            self._reopen()
            return
        later = commits_after(
            self._store,
            snapshot.location,
            self._last,
            log_tail=() if tail is None else tail.files,
            max_version=None if tail is None else tail.latest_version,
        )
        if later is None:
            self._reopen()
        elif later:
            self._add(later)

    def commits(self, first: int, last: int, expected: int = _FEWEST_READ) -> Iterator[C]:
        """Yield the commits of some versions that exist, in order. `expected` is how many will probably be consumed.

        Raises StreamDataLossError if a commit is missing.
        """
        version = first
        while version <= last:
            if version not in self._read:
                count = min(max(expected, _FEWEST_READ), _MOST_READ)
                self._load(version, min(last, version + count - 1))
            yield self._read[version]
            version += 1

    def known(self) -> dict[int, C]:
        """Return the commits that were read and not forgotten, by version."""
        return self._read

    def modified(self, version: int) -> int | None:
        """Return the modification time of a commit in ms since the epoch; None if its file is not known."""
        known = self._last.file if self._last is not None and self._last.version == version else self._file(version)
        return None if known is None else known.modification_time

    def forget(self, before: int) -> None:
        """Drop the commits before a version."""
        for held in (self._read, self._found, self._tail):
            for version in [v for v in held if v < before]:
                del held[version]

    def earliest_version(self, first: int) -> int | None:
        """Return the first version from `first` on whose commit exists; None if there is none."""
        if first in self._read or first > self.latest_version:
            return first if first in self._read else None
        self._find(first, first)
        if self._file(first) is not None:
            return first
        return min((version for version in self._listed(first) if version >= first), default=None)

    def is_cleaned_up(self, version: int) -> bool:
        """Return True if a version is earlier than all commits of the log."""
        earliest = self.earliest_version(version)
        return earliest is not None and earliest > version and min(self._listed(0)) > version

    # ------------------------------------------------------------------------------------------------- the log
    def _add(self, later: list[CommitFile]) -> None:
        if len(self._found) < _WINDOW:
            self._found.update(later[:_WINDOW])
        self._last = later[-1]
        self.latest_version = self._last.version

    def _reopen(self) -> None:
        before = self.snapshot.metadata.id
        snapshot = self.snapshot.update()
        if snapshot.metadata.id != before:
            raise different_table(before, snapshot.metadata.id, snapshot.location)
        if snapshot is not self.snapshot:
            self._reset(snapshot)

    def _load(self, first: int, last: int) -> None:
        try:
            loaded = self._load_known(first, last)
        except CorruptLogError as error:
            if not isinstance(error.__cause__, FileNotFoundInStoreError):
                raise
            self._found.clear()  # log clean-up removed some that were found before
            loaded = self._load_known(first, last)
        self._read.update(loaded)

    def _load_known(self, first: int, last: int) -> dict[int, C]:
        """Read the commits of a range, up to one that is missing or was read already."""
        self._find(first, last)
        files: list[CommitFile] = []
        for version in range(first, last + 1):
            file = self._file(version)
            if file is None or version in self._read:
                break
            files.append(CommitFile(version, file))
        if not files:
            raise self._missing(first)
        loaded = self._load_files(self._store, files)
        return {file.version: commit for file, commit in zip(files, loaded, strict=True)}

    def _file(self, version: int) -> FileStatus | None:
        return self._tail.get(version) or self._found.get(version)

    def _find(self, first: int, last: int) -> None:
        """Look up the versions of a range that are unknown."""
        version = first
        while version <= last and self._file(version) is not None:
            version += 1
        if version <= last:
            listed_to = min(self.latest_version, max(last, version + _WINDOW - 1))
            at_once = last - version + 1
            self._found.update(find_commits(self._store, self.snapshot.location, version, listed_to, at_once))

    def _listed(self, first: int) -> dict[int, FileStatus]:
        """List all commits from a version on."""
        listing = list_log(self._store, self.snapshot.location, first, self.latest_version)
        return {**listing.commits, **self._tail}

    def _missing(self, version: int) -> StreamDataLossError:
        """Return the error for a commit that the stream needs and that is missing."""
        location = self.snapshot.location
        known = self._listed(0)
        later = min((found for found in known if found > version), default=None)
        if later is not None and not any(found < version for found in known):
            return StreamDataLossError(
                f"The stream needs version {version} of '{location}', but the earliest commit in its log is "
                f"{later}: the others were removed by log clean-up. To go on from version {later}, and lose the "
                "rows of the missing versions, set the option failOnDataLoss to false. If the table tracks "
                "rows, onDataLoss=snapshotDiff returns those that were added since. To read all current rows, use a "
                "new checkpoint. To keep commits longer, set the table property delta.logRetentionDuration.",
                version=version,
                earliest=later,
                location=location,
            )
        return StreamDataLossError(
            f"The commit of version {version} is missing from the log of '{location}', between others. Restore the "
            "file; the stream does not skip it.",
            error_class="DELTA_VERSIONS_NOT_CONTIGUOUS",
            sqlstate="KD00C",
            version=version,
            location=location,
        )


def initial_snapshot_of(log: CommitLog[C], version: int) -> Snapshot:
    """Return the snapshot with which a stream began. Raises StreamDataLossError if its log was cleaned up."""
    latest = log.snapshot
    if version == latest.version:
        return latest
    try:
        return latest.at_version(version)
    except VersionNotFoundError as error:
        raise StreamDataLossError(
            f"The stream has not read all rows of version {version} of '{latest.location}', with which it began, and "
            f"the log no longer has that version: its earliest is {error.earliest}. Use a new checkpoint, and raise "
            "maxFilesPerTrigger or the table property delta.logRetentionDuration.",
            error_class="DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
            sqlstate="42K03",
            version=version,
            earliest=error.earliest,
            location=latest.location,
        ) from None
