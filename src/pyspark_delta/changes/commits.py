"""The commits of a range as columns: their file actions, commit times, and changes of protocol and metadata.

Reads only the commits of the range, and only the relevant actions: the change data files of a commit that has any
(C169), else the files that it adds and removes with `dataChange` (C170, C173).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import DATA_CHANGE, DELETION_VECTOR, PARTITION_VALUES, PATH, SIZE
from pyspark_delta.actions.decode import decode_commit_info, decode_metadata, decode_protocol
from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.changes.configuration_ranges import ConfigurationRange, Declared
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.errors import CorruptLogError, VersionNotFoundError
from pyspark_delta.log.commits import CommitText, read_commit, read_commits, single
from pyspark_delta.log.history import carries_time, in_commit_timestamp, modification_times, readable_versions
from pyspark_delta.log.line_columns import parse_lines
from pyspark_delta.log.listing import LogListing, first_gap, list_log
from pyspark_delta.log.names import CommitName
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import ObjectStore

VERSION = pa.field("version", pa.int64())
INDEX = pa.field("index", pa.int64())
HAS_PARTITION_VALUES = pa.field("has_partition_values", pa.bool_())

_CDC = (PATH, PARTITION_VALUES, SIZE)
_FILES = (PATH, PARTITION_VALUES, SIZE, DELETION_VECTOR, DATA_CHANGE)
_PARTITION_VALUES = re.compile(rb'"partitionValues"\s*:\s*\{')
_ROW_COUNTS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(slots=True)
class _Lines:
    """The lines of one kind of action, and the number of them in each commit."""

    lines: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # of the lines in their commits
    versions: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def extend(self, version: int, lines: list[tuple[int, bytes]]) -> None:
        self.lines += [line for _, line in lines]
        self.numbers += [number for number, _ in lines]
        self.versions.append(version)
        self.counts.append(len(lines))

    def version_column(self) -> pa.Array:
        return pa.array(np.repeat(np.array(self.versions, np.int64), np.array(self.counts, np.int64)))


@dataclass(frozen=True, slots=True)
class Commits:
    """The contents of the commits of a range; `parse_files` parses the lines of their file actions."""

    files: tuple[CommitFile, ...]
    declared: tuple[Declared, ...]
    modified: Mapping[int, int]
    infos: Mapping[int, CommitInfo]
    cdc: _Lines
    adds: _Lines
    removes: _Lines

    def times(self, ranges: Sequence[ConfigurationRange]) -> dict[int, int]:
        """The commit time of each version in ms since the epoch: the in-commit timestamp if there is one (C362)."""
        return commit_times(self.files, self.modified, self.infos, ranges)


def commit_times(
    files: Iterable[CommitFile],
    modified: Mapping[int, int],
    infos: Mapping[int, CommitInfo],
    ranges: Sequence[ConfigurationRange],
) -> dict[int, int]:
    """Return the commit time of each version in ms since the epoch: the in-commit timestamp if there is one (C362),
    otherwise the time in `modified`.
    """
    times, number = {}, 0
    for commit in files:
        while number + 1 < len(ranges) and ranges[number + 1].first <= commit.version:
            number += 1
        if carries_time(ranges[number].configuration, commit.version):
            times[commit.version] = in_commit_timestamp(infos.get(commit.version), commit.file.path)
        else:
            times[commit.version] = modified[commit.version]
    return times


@dataclass(frozen=True, slots=True)
class FileActions:
    """The relevant file actions, one row each: the fields of the action, and "version".

    For removes, "has_partition_values" is true if the action contains them. "index" is the position of the action in
    its commit: among change data files if there are any, otherwise among the files added and removed with `dataChange`.
    """

    cdc: pa.Table
    adds: pa.Table
    removes: pa.Table


def read_range(latest: Snapshot, versions: VersionRange) -> Commits:
    """Read the commits of a range that is not empty.

    Raises VersionNotFoundError, naming the earliest available version, if a commit of the range is missing, and
    CorruptLogError for one that is damaged or missing among others.
    """
    listing = list_log(latest.store, latest.location, versions.first, versions.last)
    for commit in latest.segment.commits:  # commits that only the catalog has
        if versions.first <= commit.version <= versions.last:
            listing.commits[commit.version] = commit.file
    _check_present(latest, listing, versions)
    files = tuple(CommitFile(v, listing.commits[v]) for v in range(versions.first, versions.last + 1))
    return collect(read_commits(latest.store, files), files, modification_times(listing))


def collect(texts: Iterable[CommitText], files: tuple[CommitFile, ...], modified: Mapping[int, int]) -> Commits:
    """Return what some commits contain, with their `modified` times. Raises CorruptLogError."""
    cdc, adds, removes = _Lines(), _Lines(), _Lines()
    declared: list[Declared] = []
    infos: dict[int, CommitInfo] = {}
    for text in texts:
        found = declared_in(text)
        if found.protocol is not None or found.metadata is not None:
            declared.append(found)
        info = commit_info(text)
        if info is not None:
            infos[text.version] = info
        changed = text.numbered_lines_of("cdc")
        if changed:
            cdc.extend(text.version, changed)
        elif not _changed_nothing(info):
            adds.extend(text.version, text.numbered_lines_of("add"))
            removes.extend(text.version, text.numbered_lines_of("remove"))
    return Commits(files, tuple(declared), modified, infos, cdc, adds, removes)


def parse_files(commits: Commits, names: Sequence[str], store: ObjectStore) -> FileActions:
    """Return the file actions of the commits, as columns. `names` are the possible keys of partition values.

    Raises CorruptLogError for a malformed action.
    """

    def parse(found: _Lines, action: str, fields: Sequence[pa.Field]) -> pa.Table:
        def locate(line: bytes) -> tuple[str, int]:
            return _locate(store, commits, found, line)

        schema = pa.schema(fields)
        parsed = list(parse_lines(found.lines, action, fields, names, locate)) if found.lines else []
        table = pa.Table.from_batches(parsed, schema).append_column(VERSION, found.version_column())
        return table.append_column(INDEX, pa.array(found.numbers, pa.int64()))

    removes = parse(commits.removes, "remove", _FILES)
    told = pa.array(
        [not names or _PARTITION_VALUES.search(line) is not None for line in commits.removes.lines], pa.bool_()
    )
    cdc, adds = parse(commits.cdc, "cdc", _CDC), _changing_data(parse(commits.adds, "add", _FILES))
    removes = _changing_data(removes.append_column(HAS_PARTITION_VALUES, told))
    (cdc,) = _with_indexes(cdc)
    return FileActions(cdc, *_with_indexes(adds, removes))


def _with_indexes(*kinds: pa.Table) -> list[pa.Table]:
    """Replace the line numbers of actions by their positions among all that are given of the same commit."""
    versions = np.concatenate([np.asarray(table[VERSION.name]) for table in kinds])
    order = np.lexsort((np.concatenate([np.asarray(table[INDEX.name]) for table in kinds]), versions))
    ordered = versions[order]
    indexes = np.empty(len(order), np.int64)
    indexes[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    found, start = [], 0
    for table in kinds:
        own = pa.array(indexes[start : start + table.num_rows])
        found.append(table.set_column(table.column_names.index(INDEX.name), INDEX, own))
        start += table.num_rows
    return found


def _changing_data(files: pa.Table) -> pa.Table:
    """Return the files whose action declares a change of data (C173)."""
    return files.filter(pc.fill_null(files[DATA_CHANGE.name], True)).drop_columns([DATA_CHANGE.name])


def declared_in(text: CommitText) -> Declared:
    """Return the protocol and metadata that a commit declares. Raises CorruptLogError."""
    metadata = single(text.fields("metaData"), text.path, "metaData")
    protocol = single(text.fields("protocol"), text.path, "protocol")
    return Declared(
        text.version,
        None if protocol is None else decode_protocol(protocol),
        None if metadata is None else decode_metadata(metadata),
    )


def commit_info(text: CommitText) -> CommitInfo | None:
    """Return the provenance of a commit, None if it has none."""
    fields = text.fields("commitInfo")
    return decode_commit_info(fields[0]) if fields else None


def _changed_nothing(info: CommitInfo | None) -> bool:
    """True if a MERGE rewrote files and changed no row, by its own metrics; delta-spark commits such rewrites."""
    if info is None or info.values.get("operation") != "MERGE":
        return False
    metrics = info.values.get("operationMetrics")
    return isinstance(metrics, Mapping) and all(metrics.get(name) == "0" for name in _ROW_COUNTS)


def _check_present(latest: Snapshot, listing: LogListing, versions: VersionRange) -> None:
    missing = first_gap(listing.commits, versions.first, versions.last)
    if missing is None:
        return
    last = versions.last
    while last in listing.commits:
        last -= 1
    whole = list_log(latest.store, latest.location, 0, latest.version)
    earliest = min((v for v in readable_versions(whole) if v > last), default=None)
    if missing == versions.first and earliest is not None:
        raise VersionNotFoundError(versions.first, earliest, latest.version, latest.location)
    raise CorruptLogError(
        f"The changes of '{latest.location}' from version {versions.first} to {versions.last} cannot be read: the file "
        f"{CommitName(missing)} of its log is missing. Restore it, or read other versions.",
        path=str(CommitName(missing)),
        error_class="DELTA_VERSIONS_NOT_CONTIGUOUS",
        version=missing,
    )


def _locate(store: ObjectStore, commits: Commits, found: _Lines, line: bytes) -> tuple[str, int]:
    """Return the commit file and line number of a line, for messages."""
    version = found.version_column()[found.lines.index(line)].as_py()
    file = next(commit.file for commit in commits.files if commit.version == version)
    lines = read_commit(store, file, version).lines()
    return file.path, lines.index(line) + 1 if line in lines else 0
