"""Streams of rows: the files that commits add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

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
        return Sizes(self._files_of(commit)["size"])

    def batch(self, initial: InitialPiece | None, pieces: Sequence[Piece[StreamCommit]]) -> list[BatchFiles]:
        """Return the files of a batch, in order. Raises the errors of `sizes`."""
        schema = pa.schema(FILE_COLUMNS)
        found = [table.select(schema.names) for table in self._tables(initial, pieces)]
        files = pa.concat_tables([schema.empty_table(), *found])
        return [BatchFiles(file_source(self._start), without_excluded(files, self._options.exclude))]

    def _tables(self, initial: InitialPiece | None, pieces: Sequence[Piece[StreamCommit]]) -> Iterator[pa.Table]:
        if initial is not None:
            yield initial.files
        for piece in pieces:
            length = None if piece.end is None else max(0, piece.end - piece.first)
            yield self._files_of(piece.commit).slice(piece.first, length)

    def _files_of(self, commit: StreamCommit) -> pa.Table:
        if reads_files(commit, self._start.configuration, self._start.version, self._options):
            return commit.files
        return commit.files.slice(0, 0)
