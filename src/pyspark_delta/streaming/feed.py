"""Streams of changes: the change data feed, which begins with the rows of the initial snapshot as inserts.

The options that ignore changes do not apply: deleted and updated rows are part of the feed.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pyspark_delta.changes.commits import VERSION, commit_times
from pyspark_delta.changes.configuration_ranges import (
    ConfigurationRange,
    check_enabled,
)
from pyspark_delta.changes.feed_columns import with_change_columns
from pyspark_delta.changes.files import RANGE, change_sources, changed_files, inserted_files, with_constants
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.log.commits import read_commits
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
from pyspark_delta.streaming.configurations import Configurations
from pyspark_delta.streaming.contents import BatchFiles, InitialPiece, Piece, without_excluded
from pyspark_delta.streaming.feed_commits import FeedCommit, joined, load_changes
from pyspark_delta.streaming.options import StreamOptions


class FeedContents:
    """The change data feed of a table, with the schema of `start`."""

    def __init__(self, start: Snapshot, options: StreamOptions) -> None:
        self._start = start
        self._options = options
        self._skips = None if options.skip_commits_where is None else CommitFilter(options.skip_commits_where)
        self._configurations = Configurations(start)

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
        return load_changes(store, files, read_commits(store, files), self._start.partition_names)

    def sizes(self, commit: FeedCommit) -> Sizes:
        """Return the files of a commit. Raises the errors of `check_configuration`, and InvalidOperationError if the
        feed was not enabled.
        """
        self._check(commit)
        return Sizes(pa.array([], pa.int64())) if self._is_skipped(commit) else commit.sizes

    def batch(self, initial: InitialPiece | None, pieces: Sequence[Piece[FeedCommit]]) -> list[BatchFiles]:
        """Return the files of a batch, in the order of versions. Raises the errors of `sizes`."""
        start = self._start
        checked = [(piece, self._check(piece.commit)) for piece in pieces]  # also those that are skipped
        kept = [(piece, found) for piece, found in checked if not self._is_skipped(piece.commit)]
        pieces, configurations = [piece for piece, _ in kept], [found for _, found in kept]
        times = self._times([piece.commit for piece in pieces], configurations)
        actions = [piece.commit.between(piece.first, piece.end) for piece in pieces]
        # The checks allow no other columns or partitioning than those of `start`.
        ranges = (ConfigurationRange(0, start.configuration),)
        found = [changed_files(joined(actions), ranges, start)] if actions else []
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
