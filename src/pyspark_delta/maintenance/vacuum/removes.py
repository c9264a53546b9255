"""The files that commits remove, and their change data files, from the log alone: what a lite vacuum deletes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from pyspark_delta.actions.columns import DELETION_VECTOR, PATH, SIZE
from pyspark_delta.errors import InvalidOperationError, TimestampOutOfRangeError
from pyspark_delta.log.commits import CommitText
from pyspark_delta.log.history import readable_versions, version_at
from pyspark_delta.log.line_columns import parse_lines
from pyspark_delta.log.listing import list_log
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.maintenance.vacuum.references import below, paths_below
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.difference import commits_between
from pyspark_delta.storage.percent import resolve_column

_REMOVED = (PATH, SIZE, DELETION_VECTOR)
_CHANGES = (PATH, SIZE)
_ADDED = (PATH, DELETION_VECTOR)
_PARSED_TOGETHER = 16 << 20  # bytes of commits


def lite_commits(snapshot: Snapshot, bookmark: int | None, last: int | None) -> list[CommitFile]:
    """Return the commits whose removed files a lite vacuum deletes: after the bookmark, up to the version `last`.

    Raises InvalidOperationError if the log no longer has one of them: some removed files would never be found.
    """
    if last is None or (bookmark is not None and bookmark >= last):
        return []
    first = 0 if bookmark is None else bookmark + 1
    commits = commits_between(snapshot, first, last)
    if [commit.version for commit in commits] != list(range(first, last + 1)):
        since = "its first version" if bookmark is None else f"version {bookmark}, where the last vacuum ended"
        raise InvalidOperationError(
            f"The log of '{snapshot.location}' does not reach back to {since}, so a lite vacuum would leave files "
            "behind for ever. Run a full vacuum once; lite ones can follow.",
            error_class="DELTA_CANNOT_VACUUM_LITE",
            sqlstate="55000",
        )
    return commits


def last_version_before(snapshot: Snapshot, time_ms: int) -> int | None:
    """Return the newest version that was committed at or before a time; None if all versions are younger."""
    if snapshot.timestamp <= time_ms:
        return snapshot.version
    try:
        return version_at(snapshot, time_ms)
    except TimestampOutOfRangeError:
        return None


def first_readable_version(snapshot: Snapshot) -> int:
    """Return the first version that the log can still show."""
    return min(readable_versions(list_log(snapshot.store, snapshot.location, 0, snapshot.version)), default=0)


def removed_files(snapshot: Snapshot, commits: Sequence[CommitFile]) -> Iterator[pa.RecordBatch]:
    """Yield the files that commits remove, with their vectors and change data files: columns path and size.

    Paths are below the table. The size of a file with vectors is null, because several tables rows may share one.
    """
    location = snapshot.location
    for texts in _groups(snapshot.read_commits(commits)):
        for batch in _files(texts, "remove", _REMOVED):
            yield _sized(batch, location)
            for path in list(paths_below(batch.select(["path", "deletion_vector"]), location, location))[1:]:
                yield pa.RecordBatch.from_arrays([path, pa.nulls(len(path), pa.int64())], ["path", "size"])
        for batch in _files([text for text in texts if b'"cdc"' in text.data], "cdc", _CHANGES):
            yield _sized(batch, location)


def named_paths(snapshot: Snapshot, commits: Sequence[CommitFile], action: str) -> Iterator[pa.Array]:
    """Yield the paths below the table, with those of deletion vectors, that commits add or remove."""
    fields = _ADDED if action == "add" else (PATH, DELETION_VECTOR)
    for texts in _groups(snapshot.read_commits(commits)):
        for batch in _files(texts, action, fields):
            yield from paths_below(batch, snapshot.location, snapshot.location)


def _groups(texts: Iterable[CommitText]) -> Iterator[list[CommitText]]:
    """Yield commits in groups: parsing the lines of many small ones together takes a tenth of the time."""
    group: list[CommitText] = []
    size = 0
    for text in texts:
        group.append(text)
        size += len(text.data)
        if size >= _PARSED_TOGETHER:
            yield group
            group, size = [], 0
    if group:
        yield group


def _files(texts: Sequence[CommitText], action: str, fields: Sequence[pa.Field]) -> Iterator[pa.RecordBatch]:
    def locate(line: bytes) -> tuple[str, int]:
        places = ((text.path, text.lines().index(line) + 1) for text in texts if line in text.lines())
        return next(places, (texts[0].path, 1))

    lines = [line for text in texts for line in text.lines_of(action)]
    if lines:
        yield from parse_lines(lines, action, fields, (), locate)


def _sized(files: pa.RecordBatch, location: str) -> pa.RecordBatch:
    """Return path and size of the files that lie below the table."""
    paths = resolve_column(location, files.column("path"))
    inside = pa.compute.starts_with(paths, location.rstrip("/") + "/")
    return pa.RecordBatch.from_arrays(
        [below(paths.filter(inside), location), files.column("size").filter(inside)], ["path", "size"]
    )
