"""Streams of rows: the files that commits add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pyspark_delta.actions.columns import SIZE
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.log.commits import CommitText, read_commits
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.scan.matches import keep_possible
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import ObjectStore
from pyspark_delta.streaming.admission import Sizes
from pyspark_delta.streaming.checks import check_configuration, reads_files
from pyspark_delta.streaming.commit_filter import CommitFilter
from pyspark_delta.streaming.commits import FILE_COLUMNS, StreamCommit, load_commits
from pyspark_delta.streaming.contents import BatchFiles, InitialPiece, Piece, without_excluded
from pyspark_delta.streaming.options import StreamOptions


class RowContents:
    """The rows of a table, with the schema of `start`."""

    def __init__(self, start: Snapshot, options: StreamOptions) -> None:
        """Raises InvalidPredicateError for a condition of the options."""
        self._start = start
        self._options = options
        self._skips = None if options.skip_commits_where is None else CommitFilter(options.skip_commits_where)
        where, zone = options.where, options.time_zone
        self._where = None if where is None else parse_predicate(where, start.schema, time_zone=zone)

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self._start.schema

    @property
    def where(self) -> Expression | None:
        """A condition on the rows by which files are skipped."""
        return self._where

    def load(self, store: ObjectStore, files: Sequence[CommitFile]) -> list[StreamCommit]:
        """Read some commits. Raises CorruptLogError."""
        return self.parse(list(read_commits(store, files)))

    def parse(self, texts: Sequence[CommitText]) -> list[StreamCommit]:
        """Parse some commits. Raises CorruptLogError."""
        commits = load_commits(texts, self._start.partition_names)
        if self._where is None or not commits:
            return commits
        possible = self._possible(commits[0].parsed, self._where)  # all of them were parsed together
        return [replace(commit, possible=possible) for commit in commits]

    def sizes(self, commit: StreamCommit) -> Sizes:
        """Return the files of a commit. Raises the errors of `checks.reads_files`."""
        start, count = commit.start, self._count(commit)
        counted = None if commit.possible is None else commit.possible.slice(start, count)
        return Sizes(commit.parsed[SIZE.name].slice(start, count), counted=counted)

    def batch(self, initial: InitialPiece | None, pieces: Sequence[Piece[StreamCommit]]) -> list[BatchFiles]:
        """Return the files of a batch, in order. Raises the errors of `sizes`."""
        schema = pa.schema(FILE_COLUMNS)
        found = [] if initial is None else [initial.files.select(schema.names)]
        found += [_files(commit, start, end - start) for commit, start, end in self._ranges(pieces)]
        files = pa.concat_tables([schema.empty_table(), *found])
        return [BatchFiles(file_source(self._start), without_excluded(files, self._options.exclude))]

    def _ranges(self, pieces: Sequence[Piece[StreamCommit]]) -> list[tuple[StreamCommit, int, int]]:
        """Return the rows of `parsed` of pieces. Files that were parsed together and adjoin are one range."""
        ranges: list[tuple[StreamCommit, int, int]] = []
        for piece in pieces:
            commit, count = piece.commit, self._count(piece.commit)
            start = commit.start + min(piece.first, count)
            end = commit.start + (count if piece.end is None else min(piece.end, count))
            if end <= start:
                continue
            if ranges and ranges[-1][0].parsed is commit.parsed and ranges[-1][2] == start:
                start = ranges.pop()[1]
            ranges.append((commit, start, end))
        return ranges

    def _possible(self, files: pa.Table, where: Expression) -> pa.BooleanArray:
        """Return True for each file that may have a row for which the condition is true."""
        numbered = files.append_column("number", pa.array(np.arange(files.num_rows)))
        kept = keep_possible(numbered, self._start.configuration, where, time_zone=self._options.time_zone)
        mask = np.zeros(files.num_rows, np.bool_)
        mask[kept["number"].to_numpy()] = True
        return pa.array(mask)

    def skips(self, commit: StreamCommit) -> bool:
        """Return True if the options skip a commit. Raises the errors of `checks.check_configuration`."""
        check_configuration(commit.declared, self._start.configuration, self._start.version)
        return self._skips is not None and self._skips.matches(commit.version, commit.info)

    def files_of(self, commit: StreamCommit) -> pa.Table:
        """Return the files of a commit, without those that a condition rules out."""
        return _files(commit, commit.start, commit.num_files)

    def _count(self, commit: StreamCommit) -> int:
        """Return how many files of a commit the stream returns: all or none."""
        if self.skips(commit):
            return 0
        reads = reads_files(commit, self._start.configuration, self._start.version, self._options)
        return commit.num_files if reads else 0


def _files(commit: StreamCommit, start: int, count: int) -> pa.Table:
    """Return some files that were parsed with a commit, without those that a condition rules out."""
    files = commit.parsed.slice(start, count)
    return files if commit.possible is None else files.filter(commit.possible.slice(start, count))
