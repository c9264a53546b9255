"""Checks of the files that repeat what the log says: hint, log compactions, and version checksums (K07 to K09)."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.errors import CorruptLogError, DeltaError, FileNotFoundInStoreError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.log.commits import read_commit
from pyspark_delta.log.file_totals import FileTotals, SizeHistogram
from pyspark_delta.log.last_checkpoint import last_checkpoint_location, parse_last_checkpoint
from pyspark_delta.log.names import CompactionName
from pyspark_delta.log.reconciliation import file_keys
from pyspark_delta.log.version_checksum import VersionChecksum, parse_checksum
from pyspark_delta.maintenance.checking.commit_contents import read_contents
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live_files import Array, hashes
from pyspark_delta.maintenance.checking.state import TableState, comparable
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.protocol.expiry import unexpired
from pyspark_delta.storage import FileStatus


# -------------------------------------------------------------------------------------------------------------- hint
def check_hint(log: TableLog, findings: Findings) -> None:
    """Check that `_last_checkpoint` is readable and names a complete checkpoint (K07)."""
    location = last_checkpoint_location(log.location)
    try:
        content = log.store.read(location)
    except FileNotFoundInStoreError:
        return  # it is only a hint
    try:
        hint = parse_last_checkpoint(content)
    except (CorruptLogError, RecursionError) as error:
        reason = error.message if isinstance(error, CorruptLogError) else "it is nested too deeply"
        findings.add("K07", f"The hint of the last checkpoint cannot be used: {reason}", file=location)
        return
    newest = log.listing.latest_version
    named = log.checkpoints_at(hint.version)
    if newest is not None and hint.version > newest:
        findings.add(
            "K07", f"The hint names version {hint.version}, and the newest version is {newest}.", file=location
        )
    elif not named:
        findings.add("K07", f"The hint names version {hint.version}, which has no complete checkpoint.", file=location)
    elif hint.parts is not None and hint.parts > 1 and not any(len(one.files) == hint.parts for one in named):
        findings.add(
            "K07", f"The hint says that the checkpoint of version {hint.version} has {hint.parts} parts.", file=location
        )


# ------------------------------------------------------------------------------------------------------- compactions
def check_compaction(log: TableLog, name: CompactionName, file: FileStatus, findings: Findings) -> None:
    """Check that a log compaction holds the reconciliation of its commits (K08)."""
    where: dict[str, Any] = {"version": name.end, "file": file.path}
    try:
        text = read_commit(log.store, file, name.end, compacted=True)
    except DeltaError as error:
        findings.add("K08", f"The compaction cannot be read: {error.message}", **where)
        return
    silent = Findings(())
    if any(version not in log.versions for version in range(name.start, name.end + 1)):
        return  # its commits are gone, so that nothing can be compared
    expected: dict[int, bool] = {}
    state = TableState(log.location)
    for version in range(name.start, name.end + 1):
        try:
            contents = read_contents(log.read_commit(version), log.location, (), silent)
        except DeltaError:
            return  # a finding of the commit
        if not contents.is_complete:
            return
        expected.update(dict.fromkeys(contents.removes.files["key"].tolist(), False))
        expected.update(dict.fromkeys(contents.adds.files["key"].tolist(), True))
        state.apply_others(action for _, action in contents.others)
    held = read_contents(text, log.location, (), silent)
    found = dict.fromkeys(held.removes.files["key"].tolist(), False)
    found |= dict.fromkeys(held.adds.files["key"].tolist(), True)
    compacted = TableState(log.location)
    compacted.apply_others(action for _, action in held.others)
    problems = []
    if not held.is_complete:
        problems.append("some of its lines cannot be read")
    if found != expected:
        wrong = len({*found.items()} ^ {*expected.items()})
        problems.append(f"{wrong:,} file actions differ from those of its commits")
    if len(found) != len(held.adds) + len(held.removes):
        problems.append("it has several actions for one file")
    problems += [
        f"its {what} is not that of its commits"
        for what in ("protocol", "metadata")
        if comparable(getattr(state, what)) != comparable(getattr(compacted, what))
    ]
    if state.transactions != compacted.transactions:
        problems.append("its transactions are not those of its commits")
    if state.domains != compacted.domains:
        problems.append("its metadata domains are not those of its commits")
    if problems:
        findings.add("K08", f"The compaction '{name}' is wrong: {'; '.join(problems)}.", **where)


# --------------------------------------------------------------------------------------------------------- checksums
def check_checksum(log: TableLog, file: FileStatus, state: TableState, now: int, findings: Findings) -> None:
    """Check that a version checksum says what the log says (K09)."""
    where: dict[str, Any] = {"version": state.version, "file": file.path}
    try:
        content = log.store.read(file.path)
        checksum = parse_checksum(content, file.path)
    except FileNotFoundInStoreError:
        return
    except DeltaError as error:
        if not _is_early(content):
            findings.add("K09", f"The version checksum cannot be read: {error.message}", **where)
        return
    for difference in _differences(checksum, state, now):
        findings.add("K09", f"The version checksum is wrong: {difference}.", **where)
    listed = _listed_files(content)
    if listed is not None and not _holds(state, listed):
        findings.add("K09", "The version checksum lists other files (allFiles) than the log has.", **where)


def _is_early(content: bytes) -> bool:
    """Return True for checksums from before they were specified, which lack protocol and metadata."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and "numFiles" in value and not {"protocol", "metadata"} <= value.keys()


def _differences(checksum: VersionChecksum, state: TableState, now: int) -> list[str]:
    totals, found = state.totals, []
    pairs: list[tuple[str, Any, Any]] = [
        ("numFiles", checksum.num_files, totals.num_files),
        ("tableSizeBytes", checksum.table_size_bytes, totals.size),
        ("numDeletedRecordsOpt", checksum.num_deleted_records, totals.num_deleted_records),
        ("numDeletionVectorsOpt", checksum.num_deletion_vectors, totals.num_deletion_vectors),
    ]
    found += [
        f"{name} is {ours}, and the log has {theirs}" for name, ours, theirs in pairs if ours not in (None, theirs)
    ]
    if comparable(checksum.protocol) != comparable(state.protocol):
        found.append("its protocol is not that of the log")
    if comparable(checksum.metadata) != comparable(state.metadata):
        found.append("its metadata is not that of the log")
    properties = {} if state.metadata is None else state.metadata.configuration
    if checksum.transactions is not None:
        ours = unexpired(checksum.transactions, properties, now)
        theirs = unexpired(state.transactions, properties, now)
        if {t.app_id: t.version for t in ours.values()} != {t.app_id: t.version for t in theirs.values()}:
            found.append("its transactions are not those of the log")
    if checksum.domains is not None and dict(checksum.domains) != state.live_domains:
        found.append("its metadata domains are not those of the log")
    found += _time_difference(checksum, state)
    if checksum.file_size_histogram is not None and not _same_histogram(checksum, totals):
        found.append("its histogram of file sizes is not that of the log")
    return found


def _time_difference(checksum: VersionChecksum, state: TableState) -> list[str]:
    """Compare the in-commit timestamp (C110); a commit of an earlier version is not known."""
    info: CommitInfo | None = state.commit_info
    configuration = state.configuration
    if info is None or configuration is None or checksum.in_commit_timestamp is None:
        return []
    try:
        has_times = is_active(configuration, Feature.IN_COMMIT_TIMESTAMP)
    except DeltaError:
        return []
    if has_times and info.in_commit_timestamp not in (None, checksum.in_commit_timestamp):
        return [f"its in-commit timestamp is {checksum.in_commit_timestamp}, not {info.in_commit_timestamp}"]
    return []


def _same_histogram(checksum: VersionChecksum, totals: FileTotals) -> bool:
    assert checksum.file_size_histogram is not None
    histogram = SizeHistogram.from_json(checksum.file_size_histogram)
    if sum(histogram.counts) != totals.num_files or sum(histogram.sizes) != totals.size:
        return False
    ours = totals.histogram
    return ours is None or histogram.boundaries != ours.boundaries or histogram == ours


def _listed_files(content: bytes) -> list[dict[str, Any]] | None:
    """Return `allFiles` (C115); None if it is absent or has another form."""
    listed = orjson.loads(content).get("allFiles")
    if not isinstance(listed, list) or not all(isinstance(one, dict) and "path" in one for one in listed):
        return None
    return listed


def _holds(state: TableState, listed: list[dict[str, Any]]) -> bool:
    if len(listed) != len(state.live):
        return False
    paths = pa.array([str(one["path"]) for one in listed], pa.string())
    keys: Array = hashes(file_keys(paths, None, state.location))
    _, present = state.live.find_paths(np.asarray(keys))
    return bool(present.all())
