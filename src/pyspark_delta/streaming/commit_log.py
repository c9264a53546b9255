"""The log that a stream follows: which commits exist, and the commits themselves, each read once."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_delta.catalog.tail_store import with_tail
from pyspark_delta.errors import StreamDataLossError, VersionNotFoundError
from pyspark_delta.log.history import readable_versions
from pyspark_delta.log.listing import first_gap, list_log
from pyspark_delta.log.segment import CommitFile, later_segment
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.access import catalog_tail
from pyspark_delta.storage import FileStatus
from pyspark_delta.streaming.commits import StreamCommit, load_commits
from pyspark_delta.streaming.offset import different_table

_LISTED_AT_ONCE = 4096  # versions
_FEWEST_READ, _MOST_READ = 16, 256  # commits that are read and parsed together


class CommitLog:
    """The commits of one table from the position of a stream on. Keeps the commits that were read until `forget`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot  # the newest that was opened
        self.latest_version = snapshot.version
        self._segment = snapshot.segment
        self._store = snapshot.store
        self._found: dict[int, FileStatus] = {}
        self._read: dict[int, StreamCommit] = {}
        self._add_segment()

    def refresh(self) -> None:
        """Look for new commits with one listing. Raises InvalidOffsetError if the table was replaced."""
        snapshot = self.snapshot
        tail = catalog_tail(snapshot.location, snapshot.catalog_table)
        self._store = with_tail(snapshot.store, tail)
        known = () if tail is None else tail.files
        later = later_segment(
            self._store, self._segment, log_tail=known, max_version=None if tail is None else tail.latest_version
        )
        if later is None:
            self._reopen()
        elif later is not self._segment:
            self._segment = later
            self._add_segment()
        self.latest_version = self._segment.end_version

    def commits(self, first: int, last: int, expected: int = _FEWEST_READ) -> Iterator[StreamCommit]:
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

    def known(self) -> list[StreamCommit]:
        """Return the commits that were read and not forgotten, in order."""
        return [self._read[version] for version in sorted(self._read)]

    def modified(self, version: int) -> int | None:
        """Return the modification time of a commit that is known, in ms since the epoch."""
        return self._found[version].modification_time if version in self._found else None

    def forget(self, before: int) -> None:
        """Drop the commits before a version."""
        for held in (self._read, self._found):
            for version in [v for v in held if v < before]:
                del held[version]

    def earliest_version(self, first: int) -> int | None:
        """Return the first version from `first` on whose commit exists; None if there is none."""
        self._list(first, self.latest_version)
        return min((version for version in self._found if version >= first), default=None)

    # ------------------------------------------------------------------------------------------------- the log
    def _add_segment(self) -> None:
        self._found.update((commit.version, commit.file) for commit in self._segment.commits)

    def _reopen(self) -> None:
        before = self.snapshot.metadata.id
        snapshot = self.snapshot.update()
        if snapshot.metadata.id != before:
            raise different_table(before, snapshot.metadata.id, snapshot.location)
        self.snapshot, self._segment, self._store = snapshot, snapshot.segment, snapshot.store
        self._found.clear()
        self._add_segment()

    def _load(self, first: int, last: int) -> None:
        self._list(first, last)
        end = first
        while end <= last and end in self._found and end not in self._read:
            end += 1
        if end == first:
            raise self._missing(first)
        files = [CommitFile(version, self._found[version]) for version in range(first, end)]
        for commit in load_commits(self._store, files, self.snapshot.partition_names):
            self._read[commit.version] = commit

    def _list(self, first: int, last: int) -> None:
        """List the versions of a range if some are unknown."""
        gap = first_gap(self._found, first, last)
        if gap is not None:
            end = min(self.latest_version, max(last, gap + _LISTED_AT_ONCE))
            listing = list_log(self._store, self.snapshot.location, gap, end)
            self._found = {**listing.commits, **self._found}

    def _missing(self, version: int) -> StreamDataLossError:
        """Return the error for a commit that the stream needs and that is missing."""
        location = self.snapshot.location
        whole = list_log(self._store, location, 0, self.latest_version)
        later = [found for found in readable_versions(whole) if found > version]
        if later and not any(found < version for found in whole.commits):
            return StreamDataLossError(
                f"The stream needs version {version} of '{location}', but the earliest commit in its log is "
                f"{later[0]}: the others were removed by log clean-up. To go on from version {later[0]}, and lose the "
                "rows of the missing versions, set the option failOnDataLoss to false. To read all current rows, use a "
                "new checkpoint. To keep commits longer, set the table property delta.logRetentionDuration.",
                version=version,
                earliest=later[0],
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


def initial_snapshot_of(log: CommitLog, version: int) -> Snapshot:
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
