"""The planner of a stream: where the next batch ends, and which files it contains.

Every way to stream uses it: Spark's native source, the Python Data Source, and `Table.stream`. A planner serves one run
of one query. The same offsets always give the same files, whatever was committed since.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from pyspark_delta.changes.configuration_ranges import ConfigurationRange, check_enabled
from pyspark_delta.changes.feed_columns import CHANGE_COLUMNS
from pyspark_delta.changes.versions import ChangeRequest, VersionRange, resolve_range
from pyspark_delta.errors import CorruptLogError, StreamDataLossError, VersionNotFoundError
from pyspark_delta.scan.file_source import FileSource, file_source
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.streaming.admission import Admission, Limits, Sizes
from pyspark_delta.streaming.backlog import Backlog, backlog, warns_of_cleanup
from pyspark_delta.streaming.commit_log import CommitLog, initial_snapshot_of
from pyspark_delta.streaming.contents import BatchFiles, Contents, InitialPiece, Piece, Versioned, without_excluded
from pyspark_delta.streaming.feed import FeedContents
from pyspark_delta.streaming.initial import InitialFiles
from pyspark_delta.streaming.new_rows import NewRowContents
from pyspark_delta.streaming.offset import (
    AFTER_SCHEMA_CHANGE_INDEX,
    BASE_INDEX,
    SCHEMA_CHANGE_INDEX,
    Offset,
    check_table,
)
from pyspark_delta.streaming.options import LATEST, OnDataLoss, StreamOptions
from pyspark_delta.streaming.rows import RowContents
from pyspark_delta.streaming.schema_changes import check_schema
from pyspark_delta.streaming.schema_tracking import SchemaTracking
from pyspark_delta.streaming.snapshot_difference import rows_since


class StreamPlanner:
    """Plans the batches of a stream over the table of `snapshot`, whose schema the rows have."""

    def __init__(self, snapshot: Snapshot, options: StreamOptions) -> None:
        """Raises StreamSchemaError if the schema log cannot be used, or a change in it needs the user's consent."""
        self._tracking = SchemaTracking.of(snapshot, options)
        start = snapshot if self._tracking is None else self._tracking.start(snapshot)
        self._contents = _contents(start, options)
        self._log = CommitLog(snapshot, self._contents.load)
        self._start = start
        self._options = options
        self._initial: InitialFiles | None = None
        self._checked_start = False
        self._has_warned = False

    @property
    def table_id(self) -> str:
        """The id of the table."""
        return self._start.metadata.id

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self._contents.schema

    @property
    def source(self) -> FileSource:
        """The table with the schema of the stream. In a change feed, the columns of the feed are constants."""
        source = file_source(self._start)
        return replace(source, constants=CHANGE_COLUMNS) if self._options.changes else source

    @property
    def known_end(self) -> Offset:
        """The offset after the latest version that is known, without a look at the log."""
        return self._at(self._log.latest_version + 1)

    def parse(self, text: str) -> Offset:
        """Return the offset of a text. Raises InvalidOffsetError, also for an offset of another table."""
        return self._own(Offset.parse(text))

    def end_of_table(self) -> Offset:
        """Return the offset after the latest version: the end of a run that reads all that is available now."""
        self._log.refresh()
        return self.known_end

    def backlog(self, position: Offset) -> Backlog:
        """Return what is known to be outstanding after a position. Nothing is read for it."""
        return backlog(self._log, self._contents, self._initial, position)

    # ------------------------------------------------------------------------------------------------- where it ends
    def latest(self, start: Offset | None, limits: Limits | None = None, bound: Offset | None = None) -> Offset | None:
        """Return the end of the batch that begins after `start`; `start` itself if nothing is new.

        None for `start` is the beginning of the stream, which the options choose. A batch ends at `limits` (by default
        those of the options), and at `bound`. Raises StreamError, CorruptLogError, and the errors of the options.
        """
        self._log.refresh()
        position = self._beginning(bound) if start is None else self._own(start)
        if (barrier := self._next_barrier(position)) is not None:
            return barrier
        self._check_position(position, is_first=start is None)
        admission = Admission(self._options.limits if limits is None else limits)
        end = self._admit(position, admission, bound)
        if not self._has_warned and not position.initial:
            self._has_warned = warns_of_cleanup(self._log, self._start.configuration, position)
        return end if start is None or end > start else start

    def _admit(self, position: Offset, admission: Admission, bound: Offset | None) -> Offset:
        """Return the offset after the last admitted file."""
        if position.initial:
            initial, first = self._initial_files(position.version), position.next_index
            taken = _take(admission, initial.sizes.slice(first))
            if first + taken < len(initial):
                return self._after(position, first + taken)
            position = self._at(position.version + 1)
        if self._is_behind(position.version, self._last(bound)):
            return self._at(self._last(bound) + 1)
        commits = self._commits(position.version, self._last(bound), admission.wants(1 << 20))
        # A commit at whose beginning the batch ends is not looked at.
        while not admission.is_full and (commit := next(commits, None)) is not None:
            if commit.version > position.version:  # commits were lost
                position = self._at(commit.version)
            if self._is_barrier(commit):
                return replace(position, index=SCHEMA_CHANGE_INDEX)
            first = position.next_index
            sizes = self._contents.sizes(commit)
            taken = _take(admission, sizes.slice(first))
            if first + taken < len(sizes.files):
                return self._after(position, first + taken)
            position = self._at(commit.version + 1)
        return position

    def _after(self, position: Offset, index: int) -> Offset:
        """Return the offset before the file of `index` in the version of `position`."""
        return Offset(self.table_id, position.version, index - 1 if index else BASE_INDEX, position.initial)

    def _last(self, bound: Offset | None) -> int:
        return self._log.latest_version if bound is None else min(self._log.latest_version, bound.version - 1)

    # ------------------------------------------------------------------------------------------------- what is in it
    def batch(self, start: Offset | None, end: Offset) -> list[BatchFiles]:
        """Return the files after `start`, up to `end`.

        None for `start` is the beginning of the stream. Raises the errors of `latest`.
        """
        self._own(end)
        if _last_version(end) > self._log.latest_version:
            self._log.refresh()
        position = self._beginning_before(end) if start is None else start
        self._check_position(position, end, is_first=start is None)
        self._check_end(end)
        initial = None
        if position.initial:
            files = self._initial_files(position.version)
            last = end.index + 1 if end.initial else len(files)
            initial = InitialPiece(files, position.next_index, last)
            position = self._at(position.version + 1)
        if end.initial:
            return self._contents.batch(initial, [])
        if self._is_behind(position.version, _last_version(end)):
            return [*self._contents.batch(initial, []), self._difference(position.version, _last_version(end))]
        return self._contents.batch(initial, list(self._pieces(position, end)))

    def _pieces(self, position: Offset, end: Offset) -> Iterator[Piece[Any]]:
        # A commit at whose beginning the batch ends is not read: it may not exist.
        last_version = _last_version(end)
        for commit in self._commits(position.version, last_version, last_version - position.version + 1):
            first = position.next_index if commit.version == position.version else 0
            yield Piece(commit, first, end.index + 1 if commit.version == end.version else None)

    def release(self, end: Offset) -> None:
        """Drop what was kept for batches up to `end`, which are complete.

        Raises StreamSchemaError at a barrier: the new schema is in the schema log, and the query has to start again.
        """
        if end.is_barrier and self._tracking is not None:
            commit = next(self._log.commits(end.version, end.version))
            if self._is_barrier(commit):
                raise self._tracking.evolve(commit.declared, self._start.configuration)
        self._log.forget(end.version)
        if self._initial is not None and not (end.initial and end.version == self._initial.version):
            self._initial = None

    # --------------------------------------------------------------------------------------------- schema tracking
    def track_source(self, path: str, *, is_known: bool = True) -> None:
        """Name the source in its checkpoint, for the schema log.

        A path that is not known but guessed does not replace the one in the log.
        """
        if self._tracking is not None and (is_known or not self._tracking.source_path):
            self._tracking.source_path = path

    def _is_barrier(self, commit: Versioned) -> bool:
        return self._tracking is not None and self._tracking.is_barrier(commit.declared, self._start.configuration)

    def _next_barrier(self, position: Offset) -> Offset | None:
        """Return the second barrier after the first one; None if the stream is not at a change of the schema.

        Nothing comes after the second one until the query starts again. Raises StreamSchemaError there: the query may
        have ended before it completed the first one, and Spark completes a batch only when there is a next one.
        """
        if self._tracking is None or not position.is_barrier:
            return None
        commit = next(self._log.commits(position.version, position.version))
        if not self._is_barrier(commit):
            return None
        if position.index == AFTER_SCHEMA_CHANGE_INDEX:
            raise self._tracking.evolve(commit.declared, self._start.configuration)
        return replace(position, index=AFTER_SCHEMA_CHANGE_INDEX)

    def _begin_tracking(self, tracking: SchemaTracking, version: int) -> None:
        """Write the first schema that the stream reads to the log: that of a version, or of the latest before it.

        It is that at the end of a batch that was planned without schema log, which may contain versions with columns
        that were added.
        """
        version = min(version, self._log.latest_version)
        tracking.begin(self._snapshot_at(version).configuration, version, self._start.configuration)

    # ------------------------------------------------------------------------------------------------- commits
    def _commits(self, first: int, last: int, expected: int) -> Iterator[Versioned]:
        """Yield the commits of some versions, from the first one that exists if lost commits are tolerated."""
        if first <= last and self._options.on_data_loss is OnDataLoss.SKIP:
            earliest = self._log.earliest_version(first)
            if earliest is not None and first < earliest <= last:
                self._check_schema_at(earliest)  # a lost commit may have declared another
            first = last + 1 if earliest is None else earliest
        yield from self._log.commits(first, last, expected)

    def _is_behind(self, first: int, last: int) -> bool:
        """True if log clean-up has removed the commit of a version, and the rows added since are to be returned."""
        if first > last or self._options.on_data_loss is not OnDataLoss.SNAPSHOT_DIFF:
            return False
        return self._log.is_cleaned_up(first)

    def _difference(self, first: int, last: int) -> BatchFiles:
        """Return the rows that the versions from `first` to `last` have added and not deleted."""
        snapshot = self._snapshot_at(last)
        self._check_schema(snapshot)
        found = rows_since(first, snapshot, file_source(self._start), self._contents.where)
        return replace(found, files=without_excluded(found.files, self._options.exclude))

    def _snapshot_at(self, version: int) -> Snapshot:
        """Return the version at which a batch ends. Raises StreamDataLossError if log clean-up has removed it."""
        latest = self._log.snapshot
        try:
            return latest if version == latest.version else latest.at_version(version)
        except VersionNotFoundError as error:
            raise StreamDataLossError(
                f"A batch of this query ends at version {version} of '{latest.location}', but log clean-up has removed "
                f"that version: the earliest is {error.earliest}. Use a new checkpoint, which reads all rows.",
                version=version,
                earliest=error.earliest,
                location=latest.location,
            ) from None

    def _initial_files(self, version: int) -> InitialFiles:
        if self._initial is None or self._initial.version != version:
            snapshot = initial_snapshot_of(self._log, version)
            self._check_schema(snapshot)
            if self._options.changes:
                found = [ConfigurationRange(version, snapshot.configuration)]
                check_enabled(found, VersionRange(version, version), self._start.location)
            self._initial = InitialFiles(snapshot, self._contents.where, self._options.time_zone)
        return self._initial

    # ------------------------------------------------------------------------------------------------- beginnings
    def _beginning(self, bound: Offset | None) -> Offset:
        """Return the position before the first file of the stream."""
        version = self._starting_version()
        if version is not None:
            return self._at(version)
        return Offset(self.table_id, self._last(bound), BASE_INDEX, initial=True)

    def _beginning_before(self, end: Offset) -> Offset:
        """Return the beginning of a stream whose first batch ends at `end`, when the batch is repeated."""
        if self._options.starting_version == LATEST:
            return end  # the first offset of such a stream is its beginning
        version = self._starting_version()
        if version is not None:
            return self._at(version)
        # The initial snapshot: the version of an offset within it, else the one before.
        return Offset(self.table_id, end.version if end.initial else end.version - 1, BASE_INDEX, initial=True)

    def _starting_version(self) -> int | None:
        version, timestamp = self._options.starting_version, self._options.starting_timestamp
        if isinstance(version, str):  # LATEST
            return self._log.latest_version + 1
        if version is None and timestamp is None:
            return None
        if version is not None and version <= self._log.latest_version:
            return version
        request = ChangeRequest(version, timestamp, only_readable=False)  # commits are read, not versions
        try:
            return resolve_range(self._log.snapshot.update(), request).first
        except VersionNotFoundError as error:  # with the error class of a range of changes
            location = self._start.location
            raise VersionNotFoundError(error.requested, error.earliest, error.latest, location) from None

    def _at(self, version: int) -> Offset:
        return Offset(self.table_id, version)

    def _own(self, offset: Offset) -> Offset:
        return check_table(offset, self.table_id, self._start.location)

    def _check_position(self, position: Offset, end: Offset | None = None, *, is_first: bool) -> None:
        """Check that the table still has the versions that were read, and that its columns can be read from there.

        `is_first` is True for the first batch of a query; `end` is that of a batch that was planned before.
        """
        latest = self._log.latest_version
        if position.version > latest + 1:
            raise StreamDataLossError(
                f"The stream has read '{self._start.location}' up to version {position.version - 1}, but its latest "
                f"version is {latest}: newer commits were deleted, or the table was restored from a copy. Restore the "
                "commits, or use a new checkpoint.",
                error_class="DELTA_STREAMING_TRAILING_COMMIT_MISSING",
                version=position.version - 1,
                latest=latest,
                location=self._start.location,
            )

        if self._checked_start or (position.initial and self._tracking is None):
            return  # an initial snapshot is checked when it is opened
        if self._tracking is None:
            self._check_earlier_schema(position, is_first=is_first)
        elif self._tracking.is_new or (is_first and end is None):
            self._begin_tracking(self._tracking, position.version if end is None else _last_version(end))
        self._checked_start = True

    def _check_earlier_schema(self, position: Offset, *, is_first: bool) -> None:
        """Check that the first files can be read: no later commit need declare their schema.

        A query that goes on between two versions has returned rows of the one before, whose columns it must not lose.
        """
        goes_on = not is_first and position.index < 0
        version = position.version - 1 if goes_on else min(position.version, self._log.latest_version)
        if version >= 0:
            self._check_schema_at(version)

    def _check_schema_at(self, version: int) -> None:
        if version != self._start.version:
            # Cleaned up, or a commit is missing, which is reported when it is read.
            with suppress(VersionNotFoundError, CorruptLogError):
                self._check_schema(self._start.at_version(version))

    def _check_schema(self, snapshot: Snapshot) -> None:
        later = snapshot.version > self._start.version
        check_schema(self._start.configuration, snapshot.configuration, snapshot.version, later=later)

    def _check_end(self, end: Offset) -> None:
        last = _last_version(end)
        if last > self._log.latest_version:
            raise StreamDataLossError(
                f"A batch of the stream ends at version {last} of '{self._start.location}', but the latest version is "
                f"{self._log.latest_version}: newer commits were deleted. Restore them, or use a new checkpoint.",
                error_class="DELTA_STREAMING_TRAILING_COMMIT_MISSING",
                version=last,
                latest=self._log.latest_version,
                location=self._start.location,
            )


def _contents(start: Snapshot, options: StreamOptions) -> Contents[Any]:
    if options.changes:
        return FeedContents(start, options)
    return RowContents(start, options) if options.new_rows is None else NewRowContents(start, options, options.new_rows)


def _last_version(end: Offset) -> int:
    """Return the last version whose files a batch that ends at `end` may contain."""
    return end.version if end.index >= 0 or end.initial else end.version - 1


def _take(admission: Admission, sizes: Sizes) -> int:
    """Return how many of the next files of a commit are admitted."""
    if not sizes.together:
        return admission.take(sizes.files, sizes.counted)
    count = len(sizes.files)
    return count if admission.take_together(count, pc.sum(sizes.files).as_py() or 0) else 0
