"""A snapshot: the state of a table at one version. Opening reads protocol and metadata; files are read on request."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import field_of
from pyspark_delta.actions.model import CommitInfo, DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.log_tail import TailFiles, staged_path
from pyspark_delta.catalog.tail_store import TailStore, with_tail
from pyspark_delta.display import html_facts
from pyspark_delta.errors import ChecksumMismatchError
from pyspark_delta.expressions.tree import Column
from pyspark_delta.features.support import check_readable
from pyspark_delta.log import reconciliation
from pyspark_delta.log.checkpoint_writer import TopLevelFormat, WrittenCheckpoint, check_published, write_checkpoint
from pyspark_delta.log.commits import CommitText
from pyspark_delta.log.history import commit_info_of, commit_timestamp, version_at
from pyspark_delta.log.names import CommitName
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.segment import CommitFile, LogSegment, later_segment, list_whole, load_segment, segment_of
from pyspark_delta.log.version_checksum import VersionChecksum, differences
from pyspark_delta.logs import logger
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.expiry import unexpired
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot.access import catalog_tail, check_access, require_catalog
from pyspark_delta.snapshot.record_count import NUM_RECORDS, RecordCount, count_records
from pyspark_delta.storage import FileStatus, ObjectStore, store_for

_log = logger(__name__)


class Snapshot:
    """One version of a table: immutable, lazy, thread-safe to read from."""

    def __init__(
        self,
        replay: LogReplay,
        configuration: TableConfiguration,
        storage_options: Mapping[str, str],
        catalog_table: CatalogTable | None = None,
    ) -> None:
        self._replay = replay
        self.configuration = configuration
        self.storage_options = storage_options
        self.catalog_table = catalog_table
        self._committed: Snapshot | None = None

    @classmethod
    def load(
        cls,
        location: str,
        *,
        version: int | None = None,
        timestamp_ms: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        catalog_table: CatalogTable | None = None,
        tail: TailFiles | None = None,
    ) -> Snapshot:
        """Open the latest version of the table at `location`, or `version`, or the one current at `timestamp_ms`.

        `catalog_table` is the table in its catalog; None opens it by its path. `tail` is the state of the log in the
        catalog, which by default is asked for it. Raises TableNotFoundError, VersionNotFoundError,
        TimestampOutOfRangeError, CorruptLogError, CatalogError, and UnsupportedTableError if this client may not read
        the table.
        """
        options = dict(storage_options or {})
        start = time.perf_counter()
        tail = catalog_tail(location, catalog_table) if tail is None else tail
        store, known = with_tail(store_for(location, options), tail), _known(tail)
        if timestamp_ms is not None:
            listing = list_whole(store, location, **known)
            replay = LogReplay(store, segment_of(listing, store, location))
            latest = cls(replay, TableConfiguration(*replay.protocol_and_metadata(), location), options, catalog_table)
            version = version_at(latest, timestamp_ms, listing)
            replay = replay.predecessor(segment_of(listing, store, location, version))
        else:
            replay = LogReplay(store, load_segment(store, location, version, **known))
        opened = cls.from_replay(replay, options, catalog_table)
        _log.info("Opened version %d of %s in %.3f s", opened.version, location, time.perf_counter() - start)
        return opened

    @classmethod
    def from_replay(
        cls, replay: LogReplay, storage_options: Mapping[str, str], catalog_table: CatalogTable | None = None
    ) -> Snapshot:
        """Return the snapshot of a log segment. Raises the errors of `load`."""
        location = replay.segment.table_location
        configuration = TableConfiguration(*replay.protocol_and_metadata(), location)
        check_access(configuration, location, catalog_table, storage_options)
        check_readable(configuration, location)
        return cls(replay, configuration, storage_options, catalog_table)

    def __repr__(self) -> str:
        return f"Snapshot({self.location!r}, version={self.version})"

    def _repr_html_(self) -> str:
        return html_facts("Snapshot", self.configuration.shown(self.version))

    # ------------------------------------------------------------------------------------------------ identity
    @property
    def location(self) -> str:
        """The location of the table."""
        return self.segment.table_location

    @property
    def version(self) -> int:
        """The version of the table."""
        return self.segment.end_version

    @property
    def segment(self) -> LogSegment:
        """The log files from which this version is read."""
        return self._replay.segment

    @property
    def store(self) -> ObjectStore:
        """The store from which the log is read."""
        return self._replay.store

    @cached_property
    def timestamp(self) -> int:
        """The commit time in milliseconds since the epoch: the in-commit timestamp, or the file's modification time."""
        return commit_timestamp(self)

    @property
    def protocol(self) -> Protocol:
        """The reader and writer versions and the table features."""
        return self.configuration.protocol

    @property
    def metadata(self) -> Metadata:
        """The `metaData` action: id, schema, partitioning, properties."""
        return self.configuration.metadata

    @property
    def schema(self) -> StructType:
        """The schema of the table, with logical column names."""
        return self.configuration.schema

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties, `metaData.configuration`."""
        return self.configuration.properties

    # ---------------------------------------------------------------------------------------- small state
    @cached_property
    def _transactions(self) -> dict[str, SetTransaction]:
        return self._replay.transactions()

    @cached_property
    def _domains(self) -> dict[str, DomainMetadata]:
        return self._replay.domains()

    def transactions(self) -> dict[str, SetTransaction]:
        """The latest transaction of each application, by application id.

        Expired ones are included as long as a file of the log contains them; checkpoints drop them.
        """
        return dict(self._transactions)

    def holds_transaction(self, transaction: SetTransaction | None) -> bool:
        """Return True if the table already holds this write of an application, or a later one (C180)."""
        if transaction is None:
            return False
        known = self._transactions.get(transaction.app_id)
        return known is not None and known.version >= transaction.version

    def _unexpired(self, transactions: Mapping[str, SetTransaction]) -> dict[str, SetTransaction]:
        return unexpired(transactions, self.properties, int(time.time() * 1000))

    def domains(self) -> dict[str, DomainMetadata]:
        """The live metadata domains by name, including unknown ones."""
        return dict(self._domains)

    def checksum(self) -> VersionChecksum | None:
        """The version checksum file of this version, if there is one and it is well-formed."""
        return self._replay.checksum

    def commit_info(self) -> CommitInfo | None:
        """The `commitInfo` of this version's commit; None if it has none, or if the commit is missing."""
        return commit_info_of(self)

    def clustering_columns(self) -> list[str]:
        """The logical names of the clustering columns, nested ones joined by dots; empty if there are none."""
        return [".".join(path) for path in self.clustering_paths()]

    def clustering_paths(self) -> list[tuple[str, ...]]:
        """The clustering columns as paths of logical names; empty if there are none."""
        return [tuple(self._logical_path(path)) for path in clustering_paths(self._domains)]

    def _logical_path(self, physical: Sequence[str]) -> list[str]:
        mode, names, current = mapping_mode(self.configuration), [], self.schema
        for part in physical:
            found = next((f for f in current if physical_field(f, mode).name == part), None)
            names.append(part if found is None else found.name)
            inner = None if found is None else found.type
            current = inner if isinstance(inner, StructType) else StructType()
        return names

    # --------------------------------------------------------------------------------------------------- files
    @cached_property
    def partition_names(self) -> tuple[str, ...]:
        """The physical names of the partition columns: the keys of `partition_values`."""
        mode = mapping_mode(self.configuration)
        names = []
        for name in self.configuration.partition_columns:
            field = self.schema.find(name)
            names.append(name if field is None else physical_field(field, mode).name)
        return tuple(names)

    def read_commits(self, commits: Sequence[CommitFile]) -> Iterator[CommitText]:
        """Yield the content of commits of the table, in their order. Those read before may still be in memory.

        Raises CorruptLogError.
        """
        return self._replay.read(commits)

    def read_files(self, request: FileRequest, among: reconciliation.Keys | None = None) -> Iterator[pa.RecordBatch]:
        """The live files that the request's predicates do not exclude, with its columns. Raises CorruptLogError.

        With `among`, only those with one of these keys; `path` and `deletion_vector` have to be among the columns then.
        """
        yield from self._replay.files("add", request.columns, self.partition_names, request, among)

    @property
    def has_typed_statistics(self) -> bool:
        """True if a checkpoint stores statistics as columns; files may then have no statistics text."""
        checkpoint = self._replay.sources().checkpoint
        return checkpoint is not None and checkpoint.has_typed_statistics

    def files(self, columns: tuple[str, ...] = ("path", "partition_values", "size", "modification_time")) -> pa.Table:
        """Return all live files, with the given columns of `actions.columns`."""
        return _table(self._replay.files("add", columns, self.partition_names), "add", columns)

    def statistics(self, leaves: tuple[Column, ...], columns: tuple[str, ...] = ("path",)) -> Iterator[pa.RecordBatch]:
        """Yield all live files, unordered: the given columns, then the typed statistics at each leaf, named by its
        number.

        Leaves are as in `stats.parse`. If the `stats_parsed` of a checkpoint has numRecords, it is assumed to have all
        the statistics; otherwise they come from JSON. Raises CorruptLogError.
        """
        yield from self._replay.statistics(leaves, columns, self.partition_names, (NUM_RECORDS,))

    def read_tombstones(self, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the removed files that are still in the log, expired or not (C217), with some columns."""
        yield from self._replay.files("remove", columns, self.partition_names)

    def tombstones(
        self, columns: tuple[str, ...] = ("path", "deletion_timestamp", "size", "deletion_vector")
    ) -> pa.Table:
        """Return the files of `read_tombstones` as a table."""
        return _table(self.read_tombstones(columns), "remove", columns)

    @cached_property
    def _totals(self) -> tuple[int, int]:
        checksum = self._replay.checksum
        if checksum is not None:
            return checksum.num_files, checksum.table_size_bytes
        return self._counted

    @cached_property
    def _counted(self) -> tuple[int, int]:
        number = size = 0
        for batch in self._replay.files("add", ("size",), self.partition_names):
            number += len(batch)
            size += pc.sum(batch.column("size")).as_py() or 0
        return number, size

    def checkpoint(self, top_level: TopLevelFormat | None = None) -> WrittenCheckpoint:
        """Write a checkpoint of this version, of the kind that the table requires (C020).

        A managed table's pending commits are published first (C476). `top_level` and errors as in `write_checkpoint`,
        PathAccessError, and CatalogError.
        """
        require_catalog(self.configuration, self.location, self.catalog_table)
        managed = managed_table(self.catalog_table)
        if managed is None:
            check_published(self.segment)
        else:
            managed.publish(self.store)
        # The segment of an updated snapshot may begin before the newest checkpoint, whose sidecars can be reused.
        replay = LogReplay(self.store, load_segment(self.store, self.location, self.version))
        return write_checkpoint(replay, self.configuration, top_level=top_level)

    def num_files(self) -> int:
        """Return the number of live files."""
        return self._totals[0]

    def size_in_bytes(self) -> int:
        """Return the sum of the sizes of the live files, in bytes."""
        return self._totals[1]

    @cached_property
    def record_count(self) -> RecordCount:
        """Return the number of rows, from the statistics and the deletion vectors of all live files."""
        return count_records(self.statistics((NUM_RECORDS,), ("path", "deletion_vector")))

    def update(self, *, tail: TailFiles | None = None) -> Snapshot:
        """Return the latest version of the table: this snapshot itself if it is the latest.

        Only the log from this version on is listed, and only new commits are read. `tail` and errors are as in `load`.
        """
        tail = catalog_tail(self.location, self.catalog_table) if tail is None else tail
        later = later_segment(self.store, self.segment, **_known(tail))
        if later is self.segment:
            return self
        if later is None:
            return self._load(tail=tail)
        replay = self._replay.successor(later, with_tail(self.store, tail))
        protocol, metadata = self._changes(replay)
        configuration = TableConfiguration(protocol or self.protocol, metadata or self.metadata, self.location)
        if protocol is None and metadata is None:
            configuration = self.configuration
        else:
            check_access(configuration, self.location, self.catalog_table, self.storage_options)
            check_readable(configuration, self.location)
        updated = Snapshot(replay, configuration, self.storage_options, self.catalog_table)
        if replay.checksum is None:
            updated._inherit(self)
        _log.info("Updated %s from version %d to %d", self.location, self.version, updated.version)
        return updated

    def with_configuration(
        self, configuration: TableConfiguration, domains: Mapping[str, DomainMetadata] | None = None
    ) -> Snapshot:
        """Return the same version with another protocol and other metadata, such as an earlier schema.

        `domains` are the metadata domains if they differ too.
        """
        changed = Snapshot(self._replay, configuration, self.storage_options, self.catalog_table)
        changed._committed = self.as_committed
        if domains is not None:
            changed.__dict__["_domains"] = dict(domains)
        return changed

    def with_commit(self, content: bytes, configuration: TableConfiguration) -> Snapshot:
        """Return the table as the next commit would leave it, which is not in the log; `content` is that of its file.

        `configuration` is the protocol and metadata after the commit.
        """
        segment, version = self.segment, self.version + 1
        path = staged_path(self.location, str(CommitName(version, str(uuid.uuid4()))))
        file = FileStatus(path, len(content), int(time.time() * 1000))
        commits = (*segment.commits, CommitFile(version, file))
        later = replace(segment, end_version=version, commits=commits, checksum=None, last_commit=file)
        replay = self._replay.successor(later, TailStore(self.store, {path: content}))
        staged = Snapshot(replay, configuration, self.storage_options, self.catalog_table)
        staged._committed = self.as_committed
        return staged

    @property
    def as_committed(self) -> Snapshot:
        """The version in the log on which this one is based: another one after `with_configuration`, `with_commit`."""
        return self._committed or self

    def at_version(self, version: int) -> Snapshot:
        """Return another version of the same table. Raises as `load`."""
        return self._load(version=version)

    def _load(self, *, version: int | None = None, tail: TailFiles | None = None) -> Snapshot:
        return Snapshot.load(
            self.location,
            version=version,
            storage_options=self.storage_options,
            catalog_table=self.catalog_table,
            tail=tail,
        )

    def _changes(self, replay: LogReplay) -> tuple[Protocol | None, Metadata | None]:
        if replay.checksum is not None:
            return replay.checksum.protocol, replay.checksum.metadata
        return replay.changed_protocol_and_metadata(replay.newest_first(self.version))

    def _inherit(self, before: Snapshot) -> None:
        """Copy the small state that an earlier snapshot has loaded, updated with the commits since."""
        if "_transactions" in before.__dict__:
            commits = self._replay.oldest_first(before.version)
            self.__dict__["_transactions"] = reconciliation.transactions(before._transactions.values(), commits)
        if "_domains" in before.__dict__:
            commits = self._replay.oldest_first(before.version)
            self.__dict__["_domains"] = reconciliation.domains(before._domains.values(), commits)

    # -------------------------------------------------------------------------------------------- validation
    def checksum_differences(self) -> tuple[str, ...]:
        """Return the differences between version checksum and replayed log, one sentence each; empty without a
        checksum.

        Reads the complete state. A difference means that one of the two is corrupt (C121, C122).
        """
        checksum = self._replay.checksum
        if checksum is None:
            return ()
        protocol, metadata = self._replay.replayed_protocol_and_metadata()
        number, size = self._counted
        if checksum.transactions is not None:  # checkpoints drop expired transactions, checksums do not
            checksum = replace(checksum, transactions=self._unexpired(checksum.transactions))
        return differences(
            checksum,
            protocol=protocol,
            metadata=metadata,
            num_files=number,
            size_in_bytes=size,
            transactions=self._unexpired(self._replay.replayed_transactions()),
            domains=self._replay.replayed_domains(),
        )


def validate_checksum(snapshot: Snapshot) -> None:
    """Compare the version checksum with the log. Raises ChecksumMismatchError that lists every difference."""
    found = snapshot.checksum_differences()
    if found:
        file = snapshot.segment.checksum
        path = "" if file is None else file.path
        raise ChecksumMismatchError(
            f"The version checksum '{path}' does not match the log: {'; '.join(found)}. One of them is corrupt.",
            path=path,
            differences=found,
        )


class _Known(TypedDict):
    """The state of a log in a catalog, in the form that `load_segment` accepts."""

    log_tail: tuple[FileStatus, ...]
    max_version: int | None


def _known(tail: TailFiles | None) -> _Known:
    return _Known(
        log_tail=() if tail is None else tail.files, max_version=None if tail is None else tail.latest_version
    )


def _table(batches: Iterable[pa.RecordBatch], action: str, columns: tuple[str, ...]) -> pa.Table:
    return pa.Table.from_batches(list(batches), schema=pa.schema([field_of(action, name) for name in columns]))
