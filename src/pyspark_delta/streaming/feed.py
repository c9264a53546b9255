"""Streams of changes: the change data feed, which begins with the rows of the initial snapshot as inserts.

The options that ignore changes do not apply: deleted and updated rows are part of the feed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import DELETION_VECTOR, SIZE
from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.changes.commits import INDEX, VERSION, FileActions, collect, commit_times, parse_files
from pyspark_delta.changes.configuration_ranges import (
    ConfigurationRange,
    Declared,
    check_enabled,
    configuration_ranges,
    evolved,
)
from pyspark_delta.changes.feed_columns import with_change_columns
from pyspark_delta.changes.files import RANGE, change_sources, changed_files, inserted_files, with_constants
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.errors import CorruptLogError, VersionNotFoundError
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.log.history import modification_times
from pyspark_delta.log.listing import LogListing
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.file_source import FileSource
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import ObjectStore
from pyspark_delta.streaming.admission import Sizes
from pyspark_delta.streaming.checks import check_configuration
from pyspark_delta.streaming.commit_filter import CommitFilter
from pyspark_delta.streaming.contents import BatchFiles, InitialPiece, Piece, without_excluded
from pyspark_delta.streaming.options import StreamOptions


@dataclass(frozen=True, slots=True)
class FeedCommit:
    """One commit, with the file actions that tell its changes."""

    declared: Declared
    file: CommitFile
    info: CommitInfo | None
    actions: FileActions

    @property
    def version(self) -> int:
        """The version."""
        return self.declared.version

    @property
    def sizes(self) -> Sizes:
        """The sizes of the files. A row that was updated is in one batch with its former values: a commit that has
        change data files or deletion vectors is not separated.
        """
        kinds = (self.actions.cdc, self.actions.adds, self.actions.removes)
        sizes = np.concatenate([pc.fill_null(kind[SIZE.name], 0).to_numpy() for kind in kinds])
        order = np.argsort(np.concatenate([kind[INDEX.name].to_numpy() for kind in kinds]))
        marked = any(kind[DELETION_VECTOR.name].null_count < kind.num_rows for kind in kinds[1:])
        return Sizes(pa.array(sizes[order], pa.int64()), self.actions.cdc.num_rows > 0 or marked)

    def between(self, first: int, end: int | None) -> FileActions:
        """Return the actions of some indexes."""
        kinds = (self.actions.cdc, self.actions.adds, self.actions.removes)
        return FileActions(*(_between(kind, first, end) for kind in kinds))


class FeedContents:
    """The change data feed of a table, with the schema of `start`."""

    def __init__(self, start: Snapshot, options: StreamOptions) -> None:
        self._start = start
        self._options = options
        self._skips = None if options.skip_commits_where is None else CommitFilter(options.skip_commits_where)
        self._configurations = _Configurations(start)

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows, with the columns of the feed."""
        return with_change_columns(self._start.schema)

    @property
    def where(self) -> Expression | None:
        """None: deleted rows may not have the statistics of a file."""
        return None

    def load(self, store: ObjectStore, files: Sequence[CommitFile]) -> list[FeedCommit]:
        """Read some commits. Raises CorruptLogError."""
        commits = collect(store, tuple(files), {})
        declared = {found.version: found for found in commits.declared}
        actions = parse_files(commits, self._start.partition_names, store)
        kinds = (actions.cdc, actions.adds, actions.removes)
        ends = [np.searchsorted(kind[VERSION.name].to_numpy(), [f.version for f in files], "right") for kind in kinds]
        starts, found = [0, 0, 0], []
        for number, file in enumerate(files):
            until = [int(end[number]) for end in ends]
            own = FileActions(*(k.slice(s, e - s) for k, s, e in zip(kinds, starts, until, strict=True)))
            changed = declared.get(file.version, Declared(file.version, None, None))
            found.append(FeedCommit(changed, file, commits.infos.get(file.version), own))
            starts = until
        return found

    def sizes(self, commit: FeedCommit) -> Sizes:
        """Return the files of a commit. Raises the errors of `check_configuration`, and InvalidOperationError if the
        feed was not enabled.
        """
        self._check(commit)
        return Sizes(pa.array([], pa.int64())) if self._is_skipped(commit) else commit.sizes

    def batch(self, initial: InitialPiece | None, pieces: Sequence[Piece[FeedCommit]]) -> list[BatchFiles]:
        """Return the files of a batch, in the order of versions. Raises the errors of `sizes`."""
        start = self._start
        pieces = [piece for piece in pieces if not self._is_skipped(piece.commit)]
        configurations = [self._check(piece.commit) for piece in pieces]
        times = self._times([piece.commit for piece in pieces], configurations)
        actions = [piece.commit.between(piece.first, piece.end) for piece in pieces]
        # The checks allow no other columns or partitioning than those of `start`.
        ranges = (ConfigurationRange(0, start.configuration),)
        found = [changed_files(_joined(actions), ranges, start)] if actions else []
        if initial is not None:
            times[initial.initial.version] = initial.initial.timestamp
            inserted = inserted_files(initial.files, initial.initial.version)
            found.insert(0, inserted.select(found[0].column_names) if found else inserted)
        if not found:
            return []
        files = without_excluded(pa.concat_tables(found), self._options.exclude).sort_by(VERSION.name)
        files = with_constants(files, ranges, times).drop_columns([RANGE])
        source = FileSource(start.location, start.configuration, start.storage_options, start.version)
        return [BatchFiles(own, of_kind) for own, of_kind in change_sources(source, files)]

    def _is_skipped(self, commit: FeedCommit) -> bool:
        return self._skips is not None and self._skips.matches(commit.version, commit.info)

    def _check(self, commit: FeedCommit) -> TableConfiguration:
        """Check that a commit can be read, and return its configuration."""
        check_configuration(commit.declared, self._start.configuration, self._start.version)
        found = self._configurations.of(commit.declared)
        version = commit.version
        check_enabled([ConfigurationRange(version, found)], VersionRange(version, version), self._start.location)
        return found

    def _times(self, commits: Sequence[FeedCommit], configurations: Sequence[TableConfiguration]) -> dict[int, int]:
        modified = modification_times(LogListing(commits=dict(commit.file for commit in commits)))
        ranges = [ConfigurationRange(c.version, found) for c, found in zip(commits, configurations, strict=True)]
        infos = {commit.version: commit.info for commit in commits if commit.info is not None}
        return commit_times([commit.file for commit in commits], modified, infos, ranges)


class _Configurations:
    """The protocol and metadata at each version that a stream passes, from a range of known versions."""

    def __init__(self, start: Snapshot) -> None:
        self._start = start
        self._ranges: list[ConfigurationRange] = [ConfigurationRange(start.version + 1, start.configuration)]
        self._next = start.version + 1  # the version after those that are known

    def of(self, commit: Declared) -> TableConfiguration:
        """Return the configuration at the version of a commit."""
        if not self._ranges[0].first <= commit.version <= self._next:
            self._ranges, self._next = [ConfigurationRange(commit.version, self._opened(commit))], commit.version + 1
        if commit.version == self._next:
            self._next += 1
            before = self._ranges[-1].configuration
            if commit.protocol is not None or commit.metadata is not None:
                self._ranges.append(ConfigurationRange(commit.version, evolved(before, commit)))
        return next(one.configuration for one in reversed(self._ranges) if one.first <= commit.version)

    def _opened(self, commit: Declared) -> TableConfiguration:
        declared = [commit] if commit.protocol is not None or commit.metadata is not None else []
        versions = VersionRange(commit.version, commit.version)
        try:
            return configuration_ranges(self._start, versions, declared)[-1].configuration
        except (VersionNotFoundError, CorruptLogError):  # earlier commits were removed by log clean-up
            return evolved(self._start.configuration, commit)


def _between(files: pa.Table, first: int, end: int | None) -> pa.Table:
    indexes = files[INDEX.name].to_numpy()
    chosen = indexes >= first
    return files.filter(pa.array(chosen if end is None else chosen & (indexes < end)))


def _joined(actions: Sequence[FileActions]) -> FileActions:
    return FileActions(
        pa.concat_tables([found.cdc for found in actions]),
        pa.concat_tables([found.adds for found in actions]),
        pa.concat_tables([found.removes for found in actions]),
    )
