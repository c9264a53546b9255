"""The commits between two versions of a table, and the files that one version has and the other lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from pyspark_delta.actions.columns import field_of
from pyspark_delta.log.commits import read_commits
from pyspark_delta.log.file_lines import FileLines
from pyspark_delta.log.listing import LogListing, list_log
from pyspark_delta.log.reconciliation import Keys
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.snapshot.snapshot import Snapshot


def commits_between(snapshot: Snapshot, first: int, last: int) -> list[CommitFile]:
    """Return the commits of the log from a version to another, both included, that exist."""
    listing = list_log(snapshot.store, snapshot.location, first, last) if first <= last else LogListing()
    files = dict(listing.commits)
    if snapshot.catalog_table is not None:  # some commits may not be published yet
        own = (commit for commit in snapshot.segment.commits if first <= commit.version <= last)
        files.update((commit.version, commit.file) for commit in own)
    return [CommitFile(version, files[version]) for version in sorted(files)]


@dataclass(frozen=True)
class ChangedFiles:
    """How the live files of two versions of a table differ, by path and deletion vector (C279).

    `changed` are the keys of the files that the commits between them name; None if the log lacks one of these commits.
    """

    one: Snapshot
    other: Snapshot
    changed: Keys | None

    @classmethod
    def between(cls, one: Snapshot, other: Snapshot) -> ChangedFiles:
        """Return the difference of two versions. Reads the commits between them. Raises CorruptLogError."""
        older, newer = sorted((one, other), key=lambda snapshot: snapshot.version)
        first, last = older.version + 1, newer.version
        commits = commits_between(newer, first, last)
        if [commit.version for commit in commits] != list(range(first, last + 1)):
            return cls(one, other, None)
        lines = FileLines().apply(read_commits(newer.store, commits), newer.location)
        return cls(one, other, Keys(lines.by_key, newer.location))

    def only_in_one(self, columns: tuple[str, ...]) -> pa.Table:
        """Return the live files of the first version that the other one lacks.

        `columns` are names of `actions.columns`, `path` and `deletion_vector` among them. Memory grows with the number
        of files in `changed`, or with all files if it is None. Raises CorruptLogError.
        """
        return self._only_in(self.one, self.other, columns)

    def only_in_other(self, columns: tuple[str, ...]) -> pa.Table:
        """Return the live files of the other version that the first one lacks, as `only_in_one` does."""
        return self._only_in(self.other, self.one, columns)

    def _only_in(self, one: Snapshot, other: Snapshot, columns: tuple[str, ...]) -> pa.Table:
        known = Keys.of_files(self._files(other, ("path", "deletion_vector")), other.location)
        schema = pa.schema([field_of("add", name) for name in columns])
        found = known.unnamed(self._files(one, columns))
        return pa.Table.from_batches([batch.cast(schema) for batch in found], schema)

    def _files(self, snapshot: Snapshot, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the live files, only changed ones if these are known."""
        files = snapshot.read_files(FileRequest(columns))
        yield from files if self.changed is None else self.changed.only_named(files)
