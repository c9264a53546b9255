"""Streams of rows: the files that commits add."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pyspark_delta.actions.columns import SIZE
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import ObjectStore
from pyspark_delta.streaming.checks import reads_files
from pyspark_delta.streaming.commits import FILE_COLUMNS, StreamCommit, load_commits
from pyspark_delta.streaming.contents import BatchFiles, InitialPiece, Piece, Sizes, without_excluded
from pyspark_delta.streaming.options import StreamOptions


class RowContents:
    """The rows of a table, with the schema of `start`."""

    def __init__(self, start: Snapshot, options: StreamOptions) -> None:
        self._start = start
        self._options = options

    @property
    def schema(self) -> StructType:
        """The logical schema of the rows."""
        return self._start.schema

    def load(self, store: ObjectStore, files: Sequence[CommitFile]) -> list[StreamCommit]:
        """Read some commits. Raises CorruptLogError."""
        return load_commits(store, files, self._start.partition_names)

    def sizes(self, commit: StreamCommit) -> Sizes:
        """Return the files of a commit. Raises the errors of `checks.reads_files`."""
        return Sizes(commit.parsed[SIZE.name].slice(commit.start, self._count(commit)))

    def batch(self, initial: InitialPiece | None, pieces: Sequence[Piece[StreamCommit]]) -> list[BatchFiles]:
        """Return the files of a batch, in order. Raises the errors of `sizes`."""
        schema = pa.schema(FILE_COLUMNS)
        found = [] if initial is None else [initial.files.select(schema.names)]
        found += [table.slice(start, end - start) for table, start, end in self._ranges(pieces)]
        files = pa.concat_tables([schema.empty_table(), *found])
        return [BatchFiles(file_source(self._start), without_excluded(files, self._options.exclude))]

    def _ranges(self, pieces: Sequence[Piece[StreamCommit]]) -> list[tuple[pa.Table, int, int]]:
        """Return the rows of the files of pieces; files that were parsed together and follow each other are one."""
        ranges: list[tuple[pa.Table, int, int]] = []
        for piece in pieces:
            commit, count = piece.commit, self._count(piece.commit)
            start = commit.start + min(piece.first, count)
            end = commit.start + (count if piece.end is None else min(piece.end, count))
            if end <= start:
                continue
            if ranges and ranges[-1][0] is commit.parsed and ranges[-1][2] == start:
                start = ranges.pop()[1]
            ranges.append((commit.parsed, start, end))
        return ranges

    def _count(self, commit: StreamCommit) -> int:
        reads = reads_files(commit, self._start.configuration, self._start.version, self._options)
        return commit.num_files if reads else 0
