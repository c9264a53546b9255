"""The commits between two versions of a table, and the files that one version has and the other lacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from pyspark_delta.actions.columns import field_of
from pyspark_delta.log.file_lines import FileLines
from pyspark_delta.log.listing import LogListing, list_log
from pyspark_delta.log.reconciliation import Keys
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.snapshot.snapshot import Snapshot

_KEY = ("path", "deletion_vector")


def commits_between(snapshot: Snapshot, first: int, last: int) -> list[CommitFile]:
    """Return the commits of the log from a version to another, both included, that exist."""
    listing = list_log(snapshot.store, snapshot.location, first, last) if first <= last else LogListing()
    files = dict(listing.commits)
    if snapshot.catalog_table is not None:  # some commits may not be published yet
        own = (commit for commit in snapshot.segment.commits if first <= commit.version <= last)
        files.update((commit.version, commit.file) for commit in own)
    return [CommitFile(version, files[version]) for version in sorted(files)]


def exclusive_files(
    one: Snapshot, other: Snapshot, columns: Sequence[str], other_columns: Sequence[str]
) -> tuple[pa.Table, pa.Table]:
    """Return the live files that only `one` has, and those that only `other` has, two versions of a table.

    Files differ by path or deletion vector (C144). The columns are names of `actions.columns`, `path` and
    `deletion_vector` among them. Each version is read once, and memory grows with the files that the commits between
    the versions name. If the log lacks one of these commits, each is read twice, and memory grows with all files.
    Raises CorruptLogError.
    """
    sides = ((one, columns), (other, other_columns))
    files: list[Iterable[pa.RecordBatch]]
    changed = _changed_keys(one, other)
    if changed is None:
        files = [side.read_files(FileRequest(tuple(names))) for side, names in sides]
        keys = [Keys.of_files(side.read_files(FileRequest(_KEY)), side.location) for side, _ in sides]
    else:
        files = [list(side.read_files(FileRequest(tuple(names)), changed)) for side, names in sides]
        keys = [Keys.of_files(batches, side.location) for batches, (side, _) in zip(files, sides, strict=True)]
    ours, theirs = files
    of_ours, of_theirs = keys
    return _table(of_theirs.unnamed(ours), columns), _table(of_ours.unnamed(theirs), other_columns)


def _changed_keys(one: Snapshot, other: Snapshot) -> Keys | None:
    """Return the keys of the files that the commits between two versions name; None if one of them is gone."""
    older, newer = sorted((one, other), key=lambda snapshot: snapshot.version)
    first, last = older.version + 1, newer.version
    commits = commits_between(newer, first, last)
    if [commit.version for commit in commits] != list(range(first, last + 1)):
        return None
    lines = FileLines().apply(newer.read_commits(commits), newer.location)
    return Keys(lines.by_key, newer.location)


def _table(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> pa.Table:
    schema = pa.schema([field_of("add", name) for name in columns])
    return pa.Table.from_batches([batch.cast(schema) for batch in batches], schema)
