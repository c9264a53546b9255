"""Checks of the log: names and versions of its files, and the actions of each commit (L01 to L12)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from pyspark_delta.actions.model import CheckpointMetadata, DomainMetadata, Metadata, Protocol, SetTransaction, Sidecar
from pyspark_delta.errors import DeltaError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.log.names import CommitName, parse_name
from pyspark_delta.maintenance.checking.catalogue import Severity
from pyspark_delta.maintenance.checking.commit_contents import Contents, FileActions
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live_files import UNKNOWN, Array
from pyspark_delta.maintenance.checking.log_leftovers import unknown_files
from pyspark_delta.maintenance.checking.state import Change, TableState
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import DELETED_FILE_RETENTION, LOG_RETENTION
from pyspark_delta.schema.types import DOUBLE, FLOAT, TIMESTAMP, TIMESTAMP_NTZ, DataType, DecimalType
from pyspark_delta.storage.paths import file_name

_MOST_DECREASES = 3


# ---------------------------------------------------------------------------------------------- names and versions
def check_versions(log: TableLog, findings: Findings) -> None:
    """Check that every version can be read from the commits and the checkpoints before it (L01)."""
    commits, listing = log.versions, log.listing
    starts = {checkpoint.version for checkpoint in log.checkpoints}
    newest = listing.latest_version
    if newest is None:
        return
    edges = sorted({*commits, *starts})
    if edges[0] > 0 and edges[0] not in starts:
        covered = next((version for version in edges if version in starts), None)
        if covered is None:
            findings.add(
                "L01",
                f"The log begins at version {edges[0]}, and no complete checkpoint covers the versions before.",
                version=edges[0],
                file=str(CommitName(edges[0] - 1)),
            )
        else:
            findings.add(
                "L01",
                f"Versions {edges[0]} to {covered - 1} have commits, but no checkpoint to begin with.",
                version=edges[0],
                severity=Severity.INFO,
                advice="They cannot be read; the log clean-up deletes them.",
            )
    for before, after in pairwise(edges):
        if after > before + 1:
            _report_gap(log, findings, before, after, starts)


def _report_gap(log: TableLog, findings: Findings, before: int, after: int, starts: set[int]) -> None:
    first, last = before + 1, after - 1
    later = [version for version in starts if version >= after]
    named = f"Version {first} is" if first == last else f"Versions {first} to {last} are"
    compacted = [str(name) for name in log.listing.compactions if name.start <= first and last <= name.end]
    covered = f"; the compaction {compacted[0]} holds their actions" if compacted else ""
    if after in starts:
        findings.add(
            "L01",
            f"{named} missing before the checkpoint of version {after}{covered}.",
            version=after,
            severity=Severity.INFO,
            advice="These versions cannot be read; later ones can.",
        )
        return
    findings.add(
        "L01",
        f"{named} missing before version {after}{covered}.",
        version=after,
        file=str(CommitName(first)),
        severity=Severity.WARNING if later else Severity.ERROR,
        advice="Later versions can be read from a checkpoint; restore the file to read these." if later else None,
    )


def check_names(log: TableLog, findings: Findings) -> None:
    """Report files whose names the protocol does not define, and compactions that end before they begin (L08)."""
    for file in unknown_files(log):
        name = file_name(file.path)
        if parse_name(name) is None:
            findings.add("L08", f"The log has a file with an unknown name, '{name}'.", file=file.path)
        else:
            findings.add("L08", f"The name of the compaction '{name}' covers no range of versions.", file=file.path)


def check_times(log: TableLog, configuration: TableConfiguration | None, findings: Findings) -> None:
    """Check that later commits have later times, where their files tell the time (L09); and the retentions (L10)."""
    if configuration is None:
        return
    try:
        if not is_active(configuration, Feature.IN_COMMIT_TIMESTAMP):
            _check_order(log, findings)
        kept, removed = LOG_RETENTION.of(configuration.properties), DELETED_FILE_RETENTION.of(configuration.properties)
    except DeltaError:
        return  # an illegal property is a finding of its own
    if kept < removed:
        findings.add(
            "L10",
            f"The log is kept for {kept} and removed files for {removed}: files stay that no version in the log needs.",
        )


def _check_order(log: TableLog, findings: Findings) -> None:
    versions = sorted(log.listing.commits)
    found = 0
    for before, after in pairwise(versions):
        older, newer = log.listing.commits[before], log.listing.commits[after]
        if newer.modification_time < older.modification_time:
            found += 1
            if found <= _MOST_DECREASES:
                findings.add(
                    "L09",
                    f"The commit of version {after} is {older.modification_time - newer.modification_time} ms older "
                    f"than that of version {before}: its time is not that of its commit.",
                    version=after,
                    file=newer.path,
                )


# ------------------------------------------------------------------------------------------------------ each commit
def check_commit(contents: Contents, state: TableState, change: Change, findings: Findings) -> None:
    """Check the actions of a commit against each other and against the state before it (L04 to L07, L11, L12)."""
    _check_repeated(contents, findings)
    _check_small(contents, findings)
    _check_vectors(contents, state, findings)
    _check_append_only(contents, state, findings)
    _check_rearranged(contents, state, change, findings)


def _check_repeated(contents: Contents, findings: Findings) -> None:
    for actions, name in ((contents.adds, "add"), (contents.removes, "remove")):
        if len(actions) < 2:
            continue
        for at in _repeats(actions.files["key"])[:1]:
            findings.add(
                "L04",
                f"The commit has several {name} actions for '{actions.paths[int(at)].as_py()}'.",
                severity=Severity.ERROR if name == "add" else Severity.WARNING,
                **_where(contents, actions, at),
            )
        if name == "add":
            once = _without_repeats(actions.files)
            for at in _repeats(actions.files["path"][once])[:1]:
                findings.add(
                    "L05",
                    f"The commit adds '{actions.paths[int(once[at])].as_py()}' with two deletion vectors.",
                    **_where(contents, actions, int(once[at])),
                )


def _check_small(contents: Contents, findings: Findings) -> None:
    for kind, name in ((Metadata, "metaData"), (Protocol, "protocol")):
        found = contents.of(kind)
        if len(found) > 1:
            findings.add(
                "L04",
                f"The commit has {len(found)} {name} actions where one is allowed.",
                version=contents.version,
                line=found[1][0],
                file=contents.path,
            )
    keyed: tuple[tuple[type, str, str], ...] = (
        (SetTransaction, "application", "app_id"),
        (DomainMetadata, "domain", "domain"),
    )
    for own_kind, name, key in keyed:
        seen: set[str] = set()
        for line, action in contents.of(own_kind):
            value = getattr(action, key)
            if value in seen:
                findings.add(
                    "L04",
                    f"The commit has two actions for the {name} '{value}'.",
                    version=contents.version,
                    line=line,
                    file=contents.path,
                )
            seen.add(value)
    for line, action in contents.of(Sidecar, CheckpointMetadata):
        name = "sidecar" if isinstance(action, Sidecar) else "checkpointMetadata"
        findings.add(
            "L07",
            f"The commit has the action {name}, which only checkpoints may have.",
            version=contents.version,
            line=line,
            file=contents.path,
        )


def _check_vectors(contents: Contents, state: TableState, findings: Findings) -> None:
    """Check that a live file gets another vector only if its old one is removed in the same commit (L06)."""
    adds = contents.adds
    if not len(adds) or not len(state.live):
        return
    other, present = state.live.find_paths(adds.files["path"])
    present &= other["key"] != adds.files["key"]
    if not present.any():
        return
    present &= ~np.isin(other["key"], contents.removes.files["key"])
    rows = np.flatnonzero(present)
    for at in rows[:1]:
        findings.add(
            "L06",
            f"The commit adds {len(rows)} files that are live already with another deletion vector, such as "
            f"'{adds.paths[int(at)].as_py()}', and does not remove them: their rows occur twice.",
            **_where(contents, adds, at),
        )


def _check_append_only(contents: Contents, state: TableState, findings: Findings) -> None:
    removes = contents.removes
    if not removes.data_change.any():
        return
    before = state.configuration
    unset = any(not _is_append_only(before, action) for _, action in contents.of(Metadata))
    if before is None or unset or not _is_append_only(before, before.metadata):
        return
    rows = np.flatnonzero(removes.data_change)
    findings.add(
        "L11",
        f"The commit removes rows with {len(rows)} files, although the table is append-only.",
        **_where(contents, removes, rows[0]),
    )


def _is_append_only(before: TableConfiguration | None, metadata: Metadata) -> bool:
    if before is None:
        return False
    try:
        return is_active(TableConfiguration(before.protocol, metadata), Feature.APPEND_ONLY)
    except DeltaError:
        return False


def _check_rearranged(contents: Contents, state: TableState, change: Change, findings: Findings) -> None:
    """Check that a commit that claims to change no rows adds as many as it removes, in each partition (L12)."""
    if change.data_change or not (len(change.added) or len(change.gone)):
        return
    before, gone, new = np.concatenate([change.gone, change.replaced]), _rows(change.gone), _rows(change.added)
    if (gone < 0).any() or (new < 0).any():
        return  # some numbers are not known
    # The same file with the same vector has the same rows, though the log may have said otherwise.
    numbers = [np.concatenate([gone, new[change.was_live]]), new]
    removed, added = (int(rows.sum()) for rows in numbers)
    if removed != added:
        findings.add(
            "L12",
            f"The commit claims to change no rows, but it replaces {removed:,} rows by {added:,}.",
            version=contents.version,
            file=contents.path,
        )
    elif _has_one_spelling(state) and _by_partition(before, numbers[0]) != _by_partition(change.added, numbers[1]):
        findings.add(
            "L12",
            "The commit claims to change no rows, but it moves rows between partitions.",
            version=contents.version,
            file=contents.path,
        )


def _has_one_spelling(state: TableState) -> bool:
    """True if equal partition values have equal texts: OPTIMIZE may spell a time or a fraction in another way."""
    before = state.configuration
    if before is None or state.has_other_partitioning:
        return False
    try:
        columns = [before.schema.find(name) for name in before.partition_columns]
    except DeltaError:
        return False
    return all(column is not None and _is_spelled_once(column.type) for column in columns)


def _is_spelled_once(data_type: DataType) -> bool:
    return not isinstance(data_type, DecimalType) and data_type not in (FLOAT, DOUBLE, TIMESTAMP, TIMESTAMP_NTZ)


def _rows(files: Array) -> Array:
    """Return the live rows of files; negative where their number is not known."""
    deleted = np.where(files["deleted"] == UNKNOWN, 0, files["deleted"])
    return np.where(files["records"] == UNKNOWN, -1, np.maximum(files["records"] - deleted, 0))


def _by_partition(files: Array, rows: Array) -> dict[int, int]:
    partitions, inverse = np.unique(files["partition"], return_inverse=True)
    sums = np.bincount(inverse, weights=rows, minlength=len(partitions)) if len(partitions) else ()
    return {int(key): int(number) for key, number in zip(partitions, sums, strict=True) if number}


def _where(contents: Contents, actions: FileActions, at: int) -> dict[str, Any]:
    return {"version": contents.version, "line": int(actions.lines[at]), "file": contents.path}


def _repeats(values: Array) -> Array:
    """Return the positions of values that occurred before."""
    return np.setdiff1d(np.arange(len(values)), _first(values))


def _first(values: Array) -> Array:
    return np.sort(np.unique(values, return_index=True)[1])


def _without_repeats(files: Array) -> Array:
    return _first(files["key"])
