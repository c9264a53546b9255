"""Log replay: the state of one version from the files of its log segment, each part read on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

import pyarrow as pa

from pyspark_delta.actions.columns import (
    DELETION_VECTOR,
    PARTITION_VALUES,
    PATH,
    STATS,
    field_of,
)
from pyspark_delta.actions.decode import decode_domain, decode_metadata, decode_protocol, decode_transaction
from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.errors import CorruptLogError
from pyspark_delta.expressions.tree import Column
from pyspark_delta.log import reconciliation
from pyspark_delta.log.checkpoint_scan import scan_parts, scan_stats
from pyspark_delta.log.checkpoints import CheckpointReader
from pyspark_delta.log.commits import CommitText, read_commits, read_entry
from pyspark_delta.log.file_lines import FileLines, UnreconciledCompaction
from pyspark_delta.log.line_columns import parse_lines
from pyspark_delta.log.listing import log_location
from pyspark_delta.log.part_scan import ScanCounters
from pyspark_delta.log.recovery import is_missing, other_segment
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.segment import CommitFile, Compaction, LogSegment
from pyspark_delta.log.skipping import keep_files, leaf_columns_of
from pyspark_delta.log.version_checksum import VersionChecksum, read_checksum
from pyspark_delta.parallel import map_ordered_eagerly, worker_count
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.storage import ObjectStore

T = TypeVar("T")

_KEPT_BYTES = 64 << 20  # bytes of commit text kept in memory; more is read again on the next use


class FileSources(NamedTuple):
    """Where the file actions of a version are. They are read together, so that a concurrent reload of the segment
    cannot mix two states.
    """

    checkpoint: CheckpointReader | None
    lines: FileLines
    checkpoint_lines: FileLines
    keys: reconciliation.Keys


class LogReplay:
    """The reconciled actions of one version. Immutable for callers; its caches are bounded.

    If files of the segment are missing or unreadable, and others lead to the same version, those are used instead
    (`recovery`).
    """

    def __init__(self, store: ObjectStore, segment: LogSegment) -> None:
        self.store = store
        self.segment = segment
        self.counters = ScanCounters()
        self._lock = threading.RLock()  # protects the segment and the caches
        self._files: tuple[CommitFile | Compaction, ...] = segment.replay_files()
        self._texts: dict[str, CommitText] = {}
        self._kept = 0
        self._base: tuple[int, FileLines] | None = None
        self._live: tuple[pa.BooleanArray | None] | None = None

    def successor(self, segment: LogSegment, store: ObjectStore | None = None) -> LogReplay:
        """Return the replay of a later version that begins with the same files; it keeps what was read."""
        later = LogReplay(store or self.store, segment)
        with self._lock:
            later._texts, later._kept = dict(self._texts), self._kept
            if segment.checkpoint == self.segment.checkpoint:
                if "checkpoint" in self.__dict__:
                    later.__dict__["checkpoint"] = self.checkpoint
                if "checkpoint_lines" in self.__dict__:
                    later.__dict__["checkpoint_lines"] = self.checkpoint_lines
                later._base = (self.segment.end_version, self.lines) if "lines" in self.__dict__ else self._base
        return later

    def predecessor(self, segment: LogSegment) -> LogReplay:
        """Return the replay of an earlier version; it keeps what was read of its files."""
        earlier = LogReplay(self.store, segment)
        for entry in earlier._files:
            if (text := self._texts.get(entry.file.path)) is not None:
                earlier._keep(text)
        if segment.checkpoint == self.segment.checkpoint and "checkpoint" in self.__dict__:
            earlier.__dict__["checkpoint"] = self.checkpoint
        return earlier

    @cached_property
    def checkpoint(self) -> CheckpointReader | None:
        """The reader of the checkpoint, None without one."""
        if self.segment.checkpoint is None:
            return None
        return CheckpointReader(self.store, self.segment.table_location, self.segment.checkpoint)

    @cached_property
    def checksum(self) -> VersionChecksum | None:
        """The checksum file of the version, if there is one and it is well-formed."""
        return read_checksum(self.store, self.segment.checksum)

    # ------------------------------------------------------------------------------------ everything but files
    def protocol_and_metadata(self) -> tuple[Protocol, Metadata]:
        """The newest protocol and metadata. Raises CorruptLogError if one is missing.

        The version checksum has them; otherwise they are searched from the newest commit back to the checkpoint.
        """
        if self.checksum is not None:
            return self.checksum.protocol, self.checksum.metadata
        return self._guarded(self._replayed_protocol_and_metadata)

    def replayed_protocol_and_metadata(self) -> tuple[Protocol, Metadata]:
        """The newest protocol and metadata, ignoring the version checksum. Raises CorruptLogError if one is missing."""
        return self._guarded(self._replayed_protocol_and_metadata)

    def _replayed_protocol_and_metadata(self) -> tuple[Protocol, Metadata]:
        protocol, metadata = self.changed_protocol_and_metadata(self.newest_first())
        missing = [name for name, known in (("protocol", protocol), ("metaData", metadata)) if known is None]
        if self.checkpoint is not None and missing:
            found = self.checkpoint.actions_of(*missing)
            protocol = protocol or next(map(decode_protocol, found.get("protocol", ())), None)
            metadata = metadata or next(map(decode_metadata, found.get("metaData", ())), None)
        if protocol is None:
            raise self._missing("protocol")
        if metadata is None:
            raise self._missing("metaData")
        return protocol, metadata

    def changed_protocol_and_metadata(self, texts: Iterator[CommitText]) -> tuple[Protocol | None, Metadata | None]:
        """Return the newest protocol and metadata in some commits, given newest first; reads no more than needed."""
        protocol: Protocol | None = None
        metadata: Metadata | None = None
        for text in texts:
            if text.is_about_files():
                continue
            protocol = protocol or reconciliation.latest_protocol([text])
            metadata = metadata or reconciliation.latest_metadata([text])
            if protocol is not None and metadata is not None:
                break
        return protocol, metadata

    def _missing(self, name: str) -> CorruptLogError:
        location = log_location(self.segment.table_location)
        return CorruptLogError(
            f"The log '{location}' has no {name} action up to version {self.segment.end_version}, so the table "
            "cannot be read. The file that contained it is missing or incomplete.",
            path=location,
            error_class="DELTA_STATE_RECOVER_ERROR",
        )

    def transactions(self) -> dict[str, SetTransaction]:
        """The latest transaction of each application."""
        if self.checksum is not None and self.checksum.transactions is not None:
            return dict(self.checksum.transactions)
        return self.replayed_transactions()

    def replayed_transactions(self) -> dict[str, SetTransaction]:
        """The latest transaction of each application, ignoring the version checksum."""
        return self._guarded(lambda: reconciliation.transactions(self._checkpoint_transactions(), self.oldest_first()))

    def _checkpoint_transactions(self) -> list[SetTransaction]:
        return [] if self.checkpoint is None else [decode_transaction(f) for f in self.checkpoint.actions("txn")]

    def domains(self) -> dict[str, DomainMetadata]:
        """The live metadata domains."""
        if self.checksum is not None and self.checksum.domains is not None:
            return dict(self.checksum.domains)
        return self.replayed_domains()

    def replayed_domains(self) -> dict[str, DomainMetadata]:
        """The live metadata domains, ignoring the version checksum."""
        return self._guarded(lambda: reconciliation.domains(self._checkpoint_domains(), self.oldest_first()))

    def _checkpoint_domains(self) -> list[DomainMetadata]:
        return [] if self.checkpoint is None else [decode_domain(f) for f in self.checkpoint.actions("domainMetadata")]

    # ------------------------------------------------------------------------------------------------- commits
    def newest_first(self, after: int = -1) -> Iterator[CommitText]:
        """Yield the commits after the checkpoint (and after a version), newest first."""
        return self.read(tuple(reversed(self._after(after))))

    def oldest_first(self, after: int = -1) -> Iterator[CommitText]:
        """Yield the commits after the checkpoint (and after a version) in ascending order."""
        return self.read(self._after(after))

    def _after(self, version: int) -> tuple[CommitFile | Compaction, ...]:
        if version < 0:
            return self._files
        return tuple(commit for commit in self.segment.commits if commit.version > version)

    def read(self, files: Sequence[CommitFile | Compaction]) -> Iterator[CommitText]:
        """Yield the content of files of the log, in their order. Some may be in memory. Raises CorruptLogError."""
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
        """Return the file actions of the commits after the checkpoint."""
        after, base = self._base or (-1, FileLines())
        try:
            return base.apply(self.oldest_first(after), self.segment.table_location)
        except UnreconciledCompaction:
            self._files = self.segment.commits
            return base.apply(self.oldest_first(after), self.segment.table_location)

    @cached_property
    def checkpoint_lines(self) -> FileLines:
        """Return the file actions in a JSON top level of the checkpoint."""
        if self.checkpoint is None or self.checkpoint.text is None:
            return FileLines()
        return FileLines().apply([self.checkpoint.text], self.segment.table_location)

    @cached_property
    def keys(self) -> reconciliation.Keys:
        """Return the keys that the commits after the checkpoint name."""
        return reconciliation.Keys(self.lines.by_key, self.segment.table_location)

    def files(
        self,
        action: str,
        columns: Sequence[str],
        partition_names: Sequence[str],
        request: FileRequest | None = None,
        among: reconciliation.Keys | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield live files (`add`) or tombstones (`remove`) with some columns, in no order.

        Files that the predicates of `request` exclude are left out, if that can be decided cheaply; so are files whose
        key is not `among` some keys. The columns then have to be `path`, `deletion_vector` and others.
        """
        fields = [field_of(action, name) for name in columns]
        stored, sources = self._guarded(lambda: self._begin(action, fields, request, among))
        lines = self._line_batches(sources, action, fields, partition_names, request)
        for batches in (lines if among is None else among.only_named(lines), stored):
            for batch in batches:
                if len(batch):
                    yield batch.select(list(columns))

    def sources(self) -> FileSources:
        """Return the file actions, with the footers of the checkpoint read. Raises CorruptLogError."""
        return self._guarded(self._sources)

    def _sources(self) -> FileSources:
        if self.checkpoint is not None:
            self.checkpoint.open()
        return FileSources(self.checkpoint, self.lines, self.checkpoint_lines, self.keys)

    def _begin(
        self, action: str, fields: list[pa.Field], request: FileRequest | None, among: reconciliation.Keys | None
    ) -> tuple[Iterator[pa.RecordBatch], FileSources]:
        """Return the file actions in Parquet files, which threads begin to decode, and where the others are."""
        checkpoint = self.checkpoint
        stored: Iterator[pa.RecordBatch] = iter(())
        if checkpoint is not None and action == "add" and checkpoint.loaded.serves(fields):
            stored = iter((checkpoint.loaded.select(fields, request, self._live_mask),))
            stored = stored if among is None else among.only_named(stored)
        elif checkpoint is not None:
            checkpoint.open()
            names = [f.name for f in fields]
            internal = fields + [f for f in (PATH, DELETION_VECTOR) if f.name not in names]
            # Threads decode the checkpoint while the lines of the commits are parsed.
            stored = scan_parts(checkpoint.parts(), action, internal, request, self.counters)
            # Of a few keys first: what is left is then looked up among those of the commits.
            stored = self.keys.unnamed(stored if among is None else among.only_named(stored))
        return stored, FileSources(checkpoint, self.lines, self.checkpoint_lines, self.keys)

    def line_files(
        self, sources: FileSources, action: str, columns: Sequence[str], partition_names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the part of `files` that is not in Parquet files of a checkpoint: from commits and JSON checkpoints."""
        fields = [field_of(action, name) for name in columns]
        return self._line_batches(sources, action, fields, partition_names, None)

    def _line_batches(
        self,
        sources: FileSources,
        action: str,
        fields: list[pa.Field],
        partition_names: Sequence[str],
        request: FileRequest | None,
    ) -> Iterator[pa.RecordBatch]:
        chosen = sources.lines.adds() if action == "add" else sources.lines.removes()
        yield from self._of_lines(chosen, action, fields, partition_names, request)
        prefix = b'{"' + action.encode() + b'"'
        earlier = [
            line
            for key, line in sources.checkpoint_lines.by_key.items()
            if line.startswith(prefix) and key not in sources.lines.by_key
        ]
        yield from self._of_lines(earlier, action, fields, partition_names, request)

    def statistics(
        self,
        leaves: tuple[Column, ...],
        columns: Sequence[str],
        partition_names: Sequence[str],
        required: tuple[Column, ...] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield all live files, unordered: the given columns, then the typed statistics at each leaf, named by its
        number.

        `required` as in `scan_stats`. Raises CorruptLogError.
        """
        fields = [field_of("add", name) for name in columns]

        def parse(batch: pa.RecordBatch) -> pa.RecordBatch:
            stats = leaf_columns_of(parse_stats(batch.column(len(fields)), leaves), leaves)
            stats.validate(full=True)  # Arrow's parser does not validate UTF-8
            return pa.RecordBatch.from_arrays(
                [*batch.columns[: len(fields)], *stats.columns], names=[*columns, *stats.schema.names]
            )

        sources = self.sources()
        # Threads parse these while the checkpoint is decoded.
        lines = self.line_files(sources, "add", [*columns, "stats"], partition_names)
        of_lines = map_ordered_eagerly(parse, lines, in_flight=worker_count())
        if sources.checkpoint is not None:
            internal = fields + [f for f in (PATH, DELETION_VECTOR) if f.name not in columns]
            for batch in sources.keys.unnamed(scan_stats(sources.checkpoint.parts(), leaves, internal, required)):
                yield batch.select([*columns, *map(str, range(len(leaves)))])
        yield from of_lines

    def _live_mask(self, files: pa.RecordBatch) -> pa.BooleanArray | None:
        """Return which of all files of the checkpoint are live; None for all."""
        if self._live is None:
            self._live = (self.keys.unnamed_mask(files),)
        return self._live[0]

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
        by_partition = request is not None and (request.partition_predicate is not None or request.mixed_columns())
        if by_partition and "partition_values" not in names:
            wanted.append(PARTITION_VALUES)
        if request is not None and request.stats_predicate is not None and "stats" not in names:
            wanted.append(STATS)
        for batch in parse_lines(lines, action, wanted, partition_names, self.locate):
            yield batch if request is None else keep_files(batch, request)

    def locate(self, line: bytes) -> tuple[str, int]:
        """Return the file and line number of a line of `lines`, for messages."""
        for entry in reversed(self.segment.commits):
            text = self._texts.get(entry.file.path) or read_entry(self.store, entry)
            for number, candidate in enumerate(text.lines(), 1):
                if candidate == line:
                    return text.path, number
        return log_location(self.segment.table_location), 0

    # ------------------------------------------------------------------------------- missing and unreadable files
    def _guarded(self, compute: Callable[[], T]) -> T:
        """The result; if files are missing (once) or unreadable, that of other files that lead to the same version."""
        listed_again = False
        with self._lock:
            while True:
                try:
                    return compute()
                except CorruptLogError as error:
                    if is_missing(error) and listed_again:
                        raise
                    listed_again |= is_missing(error)
                    other = other_segment(self.store, self.segment, error)
                    if other is None:
                        raise
                    self._restart(other)

    def _restart(self, segment: LogSegment) -> None:
        self.segment, self._files, self._base = segment, segment.replay_files(), None
        self._live = None
        for name in ("checkpoint", "checkpoint_lines", "lines", "keys"):
            self.__dict__.pop(name, None)
