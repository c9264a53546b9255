"""Checks of checkpoints: their kinds, structure, and contents against the commits (K01 to K06, K11 to K13, S05)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_delta.actions.columns import DELETION_TIMESTAMP, DELETION_VECTOR, PATH
from pyspark_delta.actions.decode import (
    decode_checkpoint_metadata,
    decode_domain,
    decode_metadata,
    decode_protocol,
    decode_transaction,
)
from pyspark_delta.actions.model import Action, DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.errors import DeltaError
from pyspark_delta.features import Feature, is_supported
from pyspark_delta.log.checkpoint_scan import scan_parts
from pyspark_delta.log.checkpoints import CheckpointReader
from pyspark_delta.log.listing import Checkpoint
from pyspark_delta.log.names import MultiPartCheckpointName, UuidCheckpointName
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.checking.catalogue import Severity
from pyspark_delta.maintenance.checking.commit_contents import (
    ADDED,
    FileActions,
    described,
    keyed,
    read_contents,
)
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.kept_statistics import MOST_COMPARED, changed_statistics
from pyspark_delta.maintenance.checking.live_files import UNKNOWN, Array
from pyspark_delta.maintenance.checking.log_leftovers import incomplete_parts, unpublished_files
from pyspark_delta.maintenance.checking.state import TableState, comparable, partition_names, tombstones
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.maintenance.checking.typed_statistics import contradictory_statistics
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expiry import unexpired
from pyspark_delta.protocol.properties import CHECKPOINT_INTERVAL, CHECKPOINT_PROTECTION_VERSION, DELETED_FILE_RETENTION
from pyspark_delta.storage.paths import file_name

_KINDS = ("protocol", "metaData", "txn", "domainMetadata", "checkpointMetadata", "sidecar")
_REMOVED = (PATH, DELETION_TIMESTAMP, DELETION_VECTOR)
_COMPARED = {
    "size": "size",
    "records": "numRecords",
    "deleted": "cardinality of the deletion vector",
    "base": "baseRowId",
    "commit": "defaultRowCommitVersion",
}
_FEW = 3  # paths that a message names
_FAR = 10  # checkpoint intervals


# --------------------------------------------------------------------------------------------------- kinds and names
def check_kinds(log: TableLog, state: TableState, findings: Findings) -> None:
    """Check which kinds of checkpoints there are, against the protocol of the newest version (K05, K06, K11 to K13)."""
    for name, file in incomplete_parts(log):
        if not file.size:
            message = f"The checkpoint file '{file_name(file.path)}' is empty."
        else:
            message = f"A part of a checkpoint, '{file_name(file.path)}', lacks the other parts."
        findings.add("K05", message, version=name.version, file=file.path)
    configuration = state.configuration
    if configuration is None:
        return
    try:
        _check_protocol(log, configuration, findings)
        _check_distance(log, configuration, findings)
    except DeltaError:
        return  # an illegal property is a finding of its own
    for version, file in unpublished_files(log):
        findings.add(
            "K13",
            f"The commit of version {version} is not published, and '{file_name(file.path)}' holds it.",
            version=version,
            file=file.path,
        )


def _check_protocol(log: TableLog, configuration: TableConfiguration, findings: Findings) -> None:
    is_v2 = is_supported(configuration, Feature.V2_CHECKPOINT)
    protected = _protected_version(configuration)  # the feature may have been dropped there
    for checkpoint in log.checkpoints:
        file = checkpoint.files[0].path
        if isinstance(checkpoint.name, UuidCheckpointName) and not is_v2 and checkpoint.version >= protected:
            findings.add(
                "K06",
                f"The checkpoint '{file_name(file)}' is of the V2 specification, and the table does not support "
                "v2Checkpoint.",
                version=checkpoint.version,
                file=file,
            )


def _check_distance(log: TableLog, configuration: TableConfiguration, findings: Findings) -> None:
    newest = log.listing.latest_version
    last = log.checkpoints[0].version if log.checkpoints else -1
    interval = CHECKPOINT_INTERVAL.of(configuration.properties)
    if newest is not None and newest - last > max(_FAR * interval, 100):
        findings.add(
            "K12",
            f"The newest checkpoint is {newest - last} commits old, and the interval is {interval}.",
            version=newest,
        )
    protected, first = _protected_version(configuration), min(log.versions, default=0)
    # They may only go together with every version before.
    if 0 < first < protected and not any(c.version < protected for c in log.checkpoints):
        findings.add(
            "K11",
            f"Checkpoints before version {protected} must stay, and the log has none.",
            version=protected,
        )


def _protected_version(configuration: TableConfiguration) -> int:
    """Return the version before which checkpoints are protected; 0 without protection."""
    if not is_supported(configuration, Feature.CHECKPOINT_PROTECTION):
        return 0
    return CHECKPOINT_PROTECTION_VERSION.of(configuration.properties) or 0


# ---------------------------------------------------------------------------------------------------------- contents
@dataclass
class CheckpointContents:
    """The actions of a checkpoint that are not file actions, by kind."""

    reader: CheckpointReader
    protocols: list[Protocol] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)
    transactions: list[SetTransaction] = field(default_factory=list)
    domains: list[DomainMetadata] = field(default_factory=list)
    sidecars: int = 0
    metadata_versions: tuple[int, ...] = ()

    @property
    def others(self) -> list[Action]:
        """All actions."""
        return [*self.protocols, *self.metadata, *self.transactions, *self.domains]


def open_checkpoint(log: TableLog, checkpoint: Checkpoint, findings: Findings) -> CheckpointContents | None:
    """Open a checkpoint and check its structure (K03); None, with a finding, if it cannot be read."""
    reader = CheckpointReader(log.store, log.location, checkpoint)
    file = checkpoint.files[0].path
    try:
        found = reader.actions_of(*_KINDS)
        contents = CheckpointContents(reader, sidecars=len(found["sidecar"]))
        contents.protocols = list(map(decode_protocol, found["protocol"]))
        contents.metadata = list(map(decode_metadata, found["metaData"]))
        contents.transactions = list(map(decode_transaction, found["txn"]))
        contents.domains = list(map(decode_domain, found["domainMetadata"]))
        contents.metadata_versions = tuple(decode_checkpoint_metadata(f).version for f in found["checkpointMetadata"])
        reader.open()
        inline = _has_inline_files(reader)
    except (DeltaError, pa.ArrowException, ValueError) as error:
        _unreadable(checkpoint, error, findings)
        return None
    versions = contents.metadata_versions
    where: dict[str, Any] = {"version": checkpoint.version, "file": file}
    is_v2 = isinstance(checkpoint.name, UuidCheckpointName) or bool(contents.sidecars)
    if is_v2 and len(versions) != 1:
        findings.add("K03", f"The checkpoint has {len(versions)} checkpointMetadata actions instead of one.", **where)
    elif versions and versions[0] != checkpoint.version:
        findings.add("K03", f"The checkpoint says that it is of version {versions[0]}.", **where)
    if contents.sidecars and inline:
        findings.add("K03", "The checkpoint has files of its own and in sidecars, where only one is allowed.", **where)
    if versions and isinstance(checkpoint.name, MultiPartCheckpointName):
        findings.add("K06", "A checkpoint in parts is of the V2 specification, which does not allow parts.", **where)
    for name, actions in (("protocol", contents.protocols), ("metaData", contents.metadata)):
        if len(actions) != 1:
            findings.add("K01", f"The checkpoint has {len(actions)} {name} actions.", **where)
    return contents


def _unreadable(checkpoint: Checkpoint, error: Exception, findings: Findings) -> None:
    message = error.message if isinstance(error, DeltaError) else str(error).splitlines()[0]
    is_missing = isinstance(error, DeltaError) and error.error_class == "DELTA_MISSING_PART_FILES"
    findings.add(
        "K04" if is_missing else "K03",
        f"The checkpoint of version {checkpoint.version} cannot be read: {message}",
        version=checkpoint.version,
        file=checkpoint.files[0].path,
    )


def _has_inline_files(reader: CheckpointReader) -> bool:
    if reader.text is not None:
        return bool(reader.text.lines_of("add") or reader.text.lines_of("remove"))
    return any(
        part.row_groups_with(f"{action}.path", until_found=True)
        for part in reader.top_level
        for action in ("add", "remove")
    )


def load_checkpoint(log: TableLog, checkpoint: Checkpoint, findings: Findings) -> TableState | None:
    """Return the state that a checkpoint holds, to begin with; None if it cannot be read."""
    contents = open_checkpoint(log, checkpoint, findings)
    if contents is None:
        return None
    state = TableState(log.location, checkpoint.version)
    state.apply_others(contents.others)
    try:
        for _, files, _ in _files(contents.reader, log.location, state.configuration, findings):
            state.begin(files[np.unique(files["key"], return_index=True)[1]])
        for removes in _removes(contents.reader, log.location, findings):
            state.tombstones.add(tombstones(removes, np.unique(removes.files["key"], return_index=True)[1]))
        _check_typed_statistics(checkpoint, contents.reader, state.configuration, findings)
    except (DeltaError, pa.ArrowException, ValueError) as error:
        _unreadable(checkpoint, error, findings)
        return None
    return state


def compare_checkpoint(log: TableLog, checkpoint: Checkpoint, state: TableState, now: int, findings: Findings) -> None:
    """Check that a checkpoint holds what the commits up to its version leave (K01, K02)."""
    contents = open_checkpoint(log, checkpoint, findings)
    if contents is None:
        return
    comparison = _Comparison(log, checkpoint, contents, state, now, findings)
    try:
        comparison.compare_others()
        comparison.compare_files()
        comparison.compare_tombstones()
        _check_typed_statistics(checkpoint, contents.reader, state.configuration, findings)
    except (DeltaError, pa.ArrowException, ValueError) as error:
        _unreadable(checkpoint, error, findings)


def _check_typed_statistics(
    checkpoint: Checkpoint, reader: CheckpointReader, configuration: TableConfiguration | None, findings: Findings
) -> None:
    """Check that the statistics of a checkpoint are the same in both forms (S05). Raises CorruptLogError."""
    if not findings.wants("S05") or not _knows_types(configuration):
        return
    assert configuration is not None
    found = contradictory_statistics(reader, configuration)
    if found is not None:
        findings.add(
            "S05",
            f"The statistic {found[1]} of '{found[0]}' differs between stats and stats_parsed of the checkpoint.",
            version=checkpoint.version,
            file=checkpoint.files[0].path,
        )


class _Comparison:
    def __init__(
        self,
        log: TableLog,
        checkpoint: Checkpoint,
        contents: CheckpointContents,
        state: TableState,
        now: int,
        findings: Findings,
    ) -> None:
        self._log, self._contents, self._state, self._now, self._findings = log, contents, state, now, findings
        self._where: dict[str, Any] = {"version": checkpoint.version, "file": checkpoint.files[0].path}

    def _differs(self, message: str, id_: str = "K01", severity: Severity | None = None) -> None:
        self._findings.add(id_, message, severity=severity, **self._where)

    def compare_others(self) -> None:
        state, contents = self._state, self._contents
        if contents.protocols and comparable(contents.protocols[0]) != comparable(state.protocol):
            self._differs("The protocol of the checkpoint is not that of the commits.")
        if contents.metadata and comparable(contents.metadata[0]) != comparable(state.metadata):
            self._differs("The metaData of the checkpoint is not that of the commits.")
        properties = {} if state.metadata is None else state.metadata.configuration
        expected = unexpired(state.transactions, properties, self._now)
        found = {t.app_id: t.version for t in contents.transactions}
        wrong = [app for app, transaction in expected.items() if found.get(app) != transaction.version]
        if wrong:
            self._differs(f"The checkpoint lacks transactions of applications, such as '{wrong[0]}'.")
        domains = {d.domain: d for d in contents.domains if not d.removed}
        live = state.live_domains
        if domains != live:
            name = next(n for n in {**domains, **live} if domains.get(n) != live.get(n))
            self._differs(f"The metadata domain '{name}' of the checkpoint is not that of the commits.")

    def compare_files(self) -> None:
        live, configuration = self._state.live, self._state.configuration
        live.forget_marks()
        extra: list[str] = []
        additional = repeated = 0
        different: dict[str, list[str]] = {}
        texts: dict[int, tuple[str, str]] = {}
        for paths, files, stats in _files(self._contents.reader, self._log.location, configuration, self._findings):
            known, present, again = live.mark(files["key"])
            spelled = present & (known["stats"] != 0) & (files["stats"] != 0) & (known["stats"] != files["stats"])
            for at in np.flatnonzero(spelled)[: MOST_COMPARED - len(texts)].tolist():
                texts[int(files["key"][at])] = (paths[at].as_py(), stats[at].as_py())
            repeated += again
            absent = np.flatnonzero(~present)
            additional += len(absent)
            extra += [paths[int(at)].as_py() for at in absent[: _FEW - len(extra)]]
            compared = dict(_COMPARED)
            if not self._state.has_other_partitioning:
                compared["partition"] = "partitionValues"
            for column, name in compared.items():
                rows = present & (known[column] != files[column])
                if column == "records":  # a checkpoint may leave statistics out (C050, C051)
                    rows &= (files[column] != UNKNOWN) & (known[column] != UNKNOWN)
                rows = np.flatnonzero(rows)
                if len(rows) and not different.get(name):
                    different[name] = [paths[int(rows[0])].as_py()]
        missing = live.unmarked()
        if additional:
            self._differs(
                f"The checkpoint has {additional:,} files that the commits do not leave live, such as '{extra[0]}'."
            )
        if missing:
            self._differs(f"The checkpoint lacks {missing:,} of the {len(live):,} live files.")
        if repeated:
            self._differs(f"The checkpoint has {repeated:,} files more than once.")
        for name, found in different.items():
            self._differs(f"The {name} of '{found[0]}' in the checkpoint is not that of its commit.", "K02")

        changed = changed_statistics(self._log, self._state, texts)
        if changed is not None:
            self._differs(f"The statistic {changed[1]} of '{changed[0]}' is not that of its commit.", "K02")

    def compare_tombstones(self) -> None:
        state = self._state
        state.tombstones.forget_marks()
        revived: list[str] = []
        number = 0
        for removes in _removes(self._contents.reader, self._log.location, self._findings):
            _, is_live = state.live.find(removes.files["key"])
            number += int(is_live.sum())
            revived += [removes.paths[int(at)].as_py() for at in np.flatnonzero(is_live)[: _FEW - len(revived)]]
            state.tombstones.mark(removes.files["key"])
        if number:
            self._differs(f"The checkpoint removes {number:,} files that are live, such as '{revived[0]}'.")
        if state.metadata is None:
            return
        retention = DELETED_FILE_RETENTION.of(state.metadata.configuration) // timedelta(milliseconds=1)
        lost = state.tombstones.unmarked_since(self._now - retention)
        if lost:
            self._differs(
                f"The checkpoint lacks the tombstones of {lost:,} files that were removed within the retention, so a "
                "vacuum may delete them too early.",
                severity=Severity.WARNING,
            )


# ------------------------------------------------------------------------------------------------------ file actions
def _files(
    reader: CheckpointReader, location: str, configuration: TableConfiguration | None, findings: Findings
) -> Iterator[tuple[pa.Array, Array, pa.Array]]:
    """Yield paths, numbers and statistics of the live files of a checkpoint. Raises CorruptLogError."""
    names, knows_types = partition_names(configuration), _knows_types(configuration)
    if reader.text is not None:
        adds = read_contents(reader.text, location, names, findings, partition_check=False).adds
        unread = adds.files.copy()
        unread["stats"] = 0
        yield adds.paths, unread, pa.nulls(len(unread), pa.string())
    request = FileRequest(tuple(f.name for f in ADDED), makes_texts=knows_types)
    for batch in scan_parts(reader.parts(), "add", list(ADDED), request):
        yield batch.column("path"), described(batch, location, names), batch.column("stats")


def _knows_types(configuration: TableConfiguration | None) -> bool:
    """Return False for a schema with types that this client does not know: their statistics have no text."""
    try:
        return configuration is not None and bool(configuration.schema.fields)
    except DeltaError:
        return False


def _removes(reader: CheckpointReader, location: str, findings: Findings) -> Iterator[FileActions]:
    """Yield the tombstones of a checkpoint. Raises CorruptLogError."""
    if reader.text is not None:
        yield read_contents(reader.text, location, (), findings, partition_check=False).removes
    for batch in scan_parts(reader.parts(), "remove", list(_REMOVED)):
        times = np.asarray(batch.column("deletion_timestamp").fill_null(0))
        none = np.zeros(len(batch), np.int64)
        yield FileActions(batch.column("path"), keyed(batch, location), none.astype(np.bool_), none, times)
