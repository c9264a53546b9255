"""Log replay: the state of one version from the files of its log segment, each part of it only when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import pyarrow as pa

from pyspark_delta.actions.columns import DELETION_VECTOR, FILE_FIELDS, PARTITION_VALUES, PATH, STATS, TOMBSTONE_FIELDS
from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.errors import CorruptLogError, InvalidOperationError
from pyspark_delta.log import reconciliation
from pyspark_delta.log.checkpoint_scan import ScanCounters, scan_part
from pyspark_delta.log.checkpoints import CheckpointReader
from pyspark_delta.log.commits import CommitText, read_commits, read_entry
from pyspark_delta.log.file_lines import FileLines, UnreconciledCompaction
from pyspark_delta.log.line_columns import parse_lines
from pyspark_delta.log.listing import log_location
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.segment import CommitFile, Compaction, LogSegment
from pyspark_delta.log.skipping import keep_files
from pyspark_delta.storage import ObjectStore

_KEPT_BYTES = 64 << 20  # of commit text; more is read again when it is asked for again

_FIELDS = {
    "add": {f.name: f for f in FILE_FIELDS},
    "remove": {f.name: f for f in TOMBSTONE_FIELDS},
}


class LogReplay:
    """The actions of one version, reconciled. Immutable to its users; what was read is kept within bounds."""

    def __init__(self, store: ObjectStore, segment: LogSegment) -> None:
        self.store = store
        self.segment = segment
        self._files: tuple[CommitFile | Compaction, ...] = segment.replay_files()
        self._texts: dict[str, CommitText] = {}
        self._kept = 0
        self.counters = ScanCounters()

    @cached_property
    def checkpoint(self) -> CheckpointReader | None:
        """The reader of the checkpoint, None without one."""
        if self.segment.checkpoint is None:
            return None
        return CheckpointReader(self.store, self.segment.table_location, self.segment.checkpoint)

    # ------------------------------------------------------------------------------------ everything but files
    def protocol_and_metadata(self) -> tuple[Protocol, Metadata]:
        """The newest of both, newest commit first, then the checkpoint. Raises CorruptLogError without one."""
        protocol, metadata = self._from_commits()
        if self.checkpoint is not None and (protocol is None or metadata is None):
            if protocol is None:
                protocol = next((reconciliation.decode_protocol(f) for f in self.checkpoint.actions("protocol")), None)
            if metadata is None:
                metadata = next((reconciliation.decode_metadata(f) for f in self.checkpoint.actions("metaData")), None)
        if protocol is None:
            raise self._missing("protocol")
        if metadata is None:
            raise self._missing("metaData")
        return protocol, metadata

    def _from_commits(self) -> tuple[Protocol | None, Metadata | None]:
        protocol: Protocol | None = None
        metadata: Metadata | None = None
        for text in self.newest_first():
            protocol = protocol or reconciliation.latest_protocol([text])
            metadata = metadata or reconciliation.latest_metadata([text])
            if protocol is not None and metadata is not None:
                break
        return protocol, metadata

    def _missing(self, name: str) -> CorruptLogError:
        location = log_location(self.segment.table_location)
        return CorruptLogError(
            f"The log '{location}' has no {name} action up to version {self.segment.end_version}, so the table "
            "cannot be read. The file that held it was lost or is incomplete.",
            path=location,
            error_class="DELTA_STATE_RECOVER_ERROR",
        )

    def transactions(self) -> dict[str, SetTransaction]:
        """The latest transaction of each application."""
        return reconciliation.transactions(self._checkpoint_actions("txn"), self.oldest_first())

    def domains(self) -> dict[str, DomainMetadata]:
        """The live metadata domains."""
        return reconciliation.domains(self._checkpoint_actions("domainMetadata"), self.oldest_first())

    def _checkpoint_actions(self, name: str) -> Sequence[reconciliation.Fields]:
        return [] if self.checkpoint is None else self.checkpoint.actions(name)

    # ------------------------------------------------------------------------------------------------- commits
    def newest_first(self) -> Iterator[CommitText]:
        """The commits after the checkpoint, newest first."""
        return self._read(tuple(reversed(self._files)))

    def oldest_first(self) -> Iterator[CommitText]:
        """The commits after the checkpoint in ascending order."""
        return self._read(self._files)

    def _read(self, files: Sequence[CommitFile | Compaction]) -> Iterator[CommitText]:
        known = dict(self._texts)
        fresh = read_commits(self.store, [f for f in files if f.file.path not in known])
        for entry in files:
            text = known.get(entry.file.path)
            if text is None:
                text = next(fresh)
                self._keep(text)
            yield text

    def _keep(self, text: CommitText) -> None:
        if self._kept + len(text.data) <= _KEPT_BYTES and text.path not in self._texts:
            self._texts[text.path] = text
            self._kept += len(text.data)

    # --------------------------------------------------------------------------------------------------- files
    @cached_property
    def lines(self) -> FileLines:
        """The file actions of the commits after the checkpoint."""
        try:
            return FileLines().apply(self.oldest_first(), self.segment.table_location)
        except UnreconciledCompaction:
            self._files = self.segment.commits
            return FileLines().apply(self.oldest_first(), self.segment.table_location)

    @cached_property
    def checkpoint_lines(self) -> FileLines:
        """The file actions in a JSON top level of the checkpoint."""
        if self.checkpoint is None or self.checkpoint.text is None:
            return FileLines()
        return FileLines().apply([self.checkpoint.text], self.segment.table_location)

    @cached_property
    def keys(self) -> reconciliation.Keys:
        """The keys that the commits after the checkpoint name."""
        return reconciliation.Keys(self.lines.by_key, self.segment.table_location)

    def files(
        self,
        action: str,
        columns: Sequence[str],
        partition_names: Sequence[str],
        request: FileRequest | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Live files (`add`) or tombstones (`remove`) with some columns, in no order.

        Files that the predicates of `request` rule out are left out, as far as that can be told cheaply.
        """
        fields = [field_of(action, name) for name in columns]
        for batch in self._batches(action, fields, partition_names, request):
            if len(batch):
                yield batch.select(list(columns))

    def _batches(
        self, action: str, fields: list[pa.Field], partition_names: Sequence[str], request: FileRequest | None
    ) -> Iterator[pa.RecordBatch]:
        chosen = self.lines.adds() if action == "add" else self.lines.removes()
        yield from self._of_lines(chosen, action, fields, partition_names, request)
        if self.checkpoint is None:
            return
        prefix = b'{"' + action.encode() + b'"'
        earlier = [
            line
            for key, line in self.checkpoint_lines.by_key.items()
            if line.startswith(prefix) and key not in self.lines.by_key
        ]
        yield from self._of_lines(earlier, action, fields, partition_names, request)
        names = [f.name for f in fields]
        internal = fields + [f for f in (PATH, DELETION_VECTOR) if f.name not in names]
        self.checkpoint.open()
        for part in self.checkpoint.parts():
            for batch in scan_part(part, action, internal, request, self.counters):
                yield self.keys.unnamed(batch)

    def _of_lines(
        self,
        lines: list[bytes],
        action: str,
        fields: list[pa.Field],
        partition_names: Sequence[str],
        request: FileRequest | None,
    ) -> Iterator[pa.RecordBatch]:
        if not lines:
            return
        names = {f.name for f in fields}
        wanted = list(fields)
        if request is not None and request.partition_predicate is not None and "partition_values" not in names:
            wanted.append(PARTITION_VALUES)
        if request is not None and request.stats_predicate is not None and "stats" not in names:
            wanted.append(STATS)
        for batch in parse_lines(lines, action, wanted, partition_names, self.locate):
            yield batch if request is None else keep_files(batch, request)

    def locate(self, line: bytes) -> tuple[str, int]:
        """Which file and which line of it a line of `lines` stems from, for messages."""
        for entry in reversed(self._files):
            text = self._texts.get(entry.file.path) or read_entry(self.store, entry)
            for number, candidate in enumerate(text.lines(), 1):
                if candidate == line:
                    return text.path, number
        return log_location(self.segment.table_location), 0


def field_of(action: str, name: str) -> pa.Field:
    """The field of that name among those of `add` or `remove`. Raises InvalidOperationError."""
    field = _FIELDS[action].get(name)
    if field is None:
        raise InvalidOperationError(f"There is no column '{name}' of files; there are {', '.join(_FIELDS[action])}.")
    return field
