"""The state of a table while its log is replayed commit by commit: what checkpoints and checksums must agree with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson
import pyarrow as pa

from pyspark_delta.actions.model import CommitInfo, DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.errors import DeltaError
from pyspark_delta.log.file_totals import FileTotals
from pyspark_delta.maintenance.checking.commit_contents import Contents, FileActions
from pyspark_delta.maintenance.checking.live_files import FILE, UNKNOWN, Array, LiveFiles
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field

_NONE = np.zeros(0, FILE)


@dataclass
class Change:
    """What one commit does to the live files: `replaced` are those that it adds again, or with another vector.

    `added` are new numbers of files, `gone` files that leave, `before` the files at the same keys as `added`, with the
    mask `was_live`.
    """

    added: Array
    gone: Array
    before: Array
    was_live: Array
    data_change: bool

    @property
    def replaced(self) -> Array:
        """The files that the commit adds again."""
        return self.before[self.was_live]


@dataclass
class TableState:
    """The reconciled actions up to a version. The size of a tombstone is the time of its removal."""

    location: str
    version: int = -1
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    live: LiveFiles = field(default_factory=LiveFiles)
    tombstones: LiveFiles = field(default_factory=LiveFiles)
    totals: FileTotals = field(default_factory=FileTotals)
    commit_info: CommitInfo | None = None
    has_other_partitioning: bool = False

    @property
    def configuration(self) -> TableConfiguration | None:
        """Protocol and metadata; None if the log has not named both."""
        if self.protocol is None or self.metadata is None:
            return None
        return TableConfiguration(self.protocol, self.metadata, self.location)

    @property
    def live_domains(self) -> dict[str, DomainMetadata]:
        """The domains that are not removed."""
        return {name: domain for name, domain in self.domains.items() if not domain.removed}

    def plan(self, contents: Contents) -> Change:
        """Return what a commit does to the live files; if it removes and adds a key, the file stays (C219)."""
        adds, removes = contents.adds, contents.removes
        _, first = np.unique(adds.files["key"][::-1], return_index=True)
        added = adds.files[len(adds.files) - 1 - first] if len(adds) else _NONE
        before, was_live = self.live.find(added["key"])
        wanted = np.setdiff1d(removes.files["key"], added["key"])
        found, present = self.live.find(wanted)
        changes = bool(adds.data_change.any() or removes.data_change.any())
        return Change(added, found[present], before, was_live, changes)

    def apply(self, contents: Contents, change: Change) -> None:
        """Take in a commit."""
        self.version = contents.version
        before = self.metadata
        self.apply_others(action for _, action in contents.others)
        if before is not None and self.metadata is not None:
            self.has_other_partitioning |= before.partition_columns != self.metadata.partition_columns
        leaving = np.concatenate([change.gone["key"], change.replaced["key"]])
        if len(leaving):
            self._count(self.live.remove(leaving), -1)
        self.live.add(change.added)
        self._count(change.added, 1)
        if len(self.tombstones):
            self.tombstones.remove(np.concatenate([change.added["key"], contents.removes.files["key"]]))
        keys, first = np.unique(contents.removes.files["key"], return_index=True)
        stays_removed = ~np.isin(keys, change.added["key"])
        self.tombstones.add(tombstones(contents.removes, first[stays_removed]))

    def apply_others(self, actions: Iterable[object]) -> None:
        """Take in the actions that are not about files."""
        self.commit_info = None
        for action in actions:
            match action:
                case Protocol():
                    self.protocol = action
                case Metadata():
                    self.metadata = action
                case SetTransaction():
                    self.transactions[action.app_id] = action
                case DomainMetadata():
                    self.domains[action.domain] = action
                case CommitInfo():
                    self.commit_info = action

    def begin(self, files: Array) -> None:
        """Take in the files of a checkpoint, at the beginning."""
        self.live.add(files)
        self._count(files, 1)

    def _count(self, files: Array, sign: int) -> None:
        if not len(files):
            return
        has_vector = files["deleted"] != UNKNOWN
        vectors = pa.array(files["deleted"], mask=~has_vector) if has_vector.any() else None
        sizes = pa.array(np.where(files["size"] == UNKNOWN, 0, files["size"]))
        totals = self.totals.plus(sizes, vectors) if sign > 0 else self.totals.minus(sizes, vectors)
        self.totals = totals


def comparable(action: Protocol | Metadata | None) -> object:
    """Return what must be equal in two spellings of protocol or metadata: an empty list may stand for none."""
    match action:
        case Protocol():
            return (
                action.min_reader_version,
                action.min_writer_version,
                action.reader_features or frozenset(),
                action.writer_features or frozenset(),
            )
        case Metadata():
            return action.id, _parsed(action.schema_string), action.partition_columns, dict(action.configuration)
    return None


def _parsed(text: str) -> object:
    """Return JSON as a value: spaces have no meaning."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def tombstones(removes: FileActions, at: Array) -> Array:
    """Return some removes as files: their keys, paths, and the times of the removals."""
    files = removes.files[at]
    files["size"] = removes.times[at]
    return files


def partition_names(configuration: TableConfiguration | None) -> tuple[str, ...]:
    """Return the physical names of the partition columns; the logical ones where the schema cannot be used."""
    if configuration is None:
        return ()
    names: Sequence[str] = configuration.partition_columns
    try:
        mode = mapping_mode(configuration)
        if mode == "none":
            return tuple(names)
        schema = configuration.schema
        fields = [schema.find(name) for name in names]
        return tuple(name if f is None else physical_field(f, mode).name for name, f in zip(names, fields, strict=True))
    except DeltaError:
        return tuple(names)
