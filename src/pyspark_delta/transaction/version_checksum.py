"""The version checksum of a new commit, computed from an earlier one (Version Checksum File; C105-C126)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.encode import action_to_json, metadata_to_json, protocol_to_json, transaction_to_json
from pyspark_delta.actions.model import DomainMetadata, SetTransaction
from pyspark_delta.commit import TakenVersion
from pyspark_delta.errors import CorruptLogError, FileAlreadyExistsError, FileNotFoundInStoreError
from pyspark_delta.features import Feature, is_active, is_supported
from pyspark_delta.log.file_totals import FileTotals, SizeHistogram
from pyspark_delta.log.names import LOG_DIRECTORY, CommitName, VersionChecksumName
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.version_checksum import VersionChecksum, parse_checksum
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import join
from pyspark_delta.transaction.winner import Winner

# Concurrent writers see each other's commits before the checksums: up to this many missing checksums are bridged.
_FURTHEST_BACK = 8
_MOST_TRANSACTIONS = 100  # more would make checksum files long; readers then use the log


@dataclass(frozen=True, slots=True)
class Totals:
    """A version checksum without protocol and metadata; transactions and domains are None if unknown."""

    files: FileTotals = field(default_factory=FileTotals)
    transactions: Mapping[str, SetTransaction] | None = field(default_factory=dict, hash=False)
    domains: Mapping[str, DomainMetadata] | None = field(default_factory=dict, hash=False)

    def with_small_actions(
        self, transactions: Iterable[SetTransaction], domains: Iterable[DomainMetadata], files: FileTotals
    ) -> Totals:
        """Return the contents after a commit with these actions and file totals."""
        own_transactions = {t.app_id: t for t in transactions}
        own_domains = {d.domain: d for d in domains}
        return Totals(
            files,
            None if self.transactions is None else {**self.transactions, **own_transactions},
            None if self.domains is None else _live({**self.domains, **own_domains}),
        )


def write_version_checksum(ready: ReadyCommit, location: str, store: ObjectStore, totals: Totals | None = None) -> bool:
    """Write the checksum of a committed version; return True if it could be computed.

    Reads only an earlier checksum and the few commits after it; it reads nothing if the totals of the version are
    given. Raises StorageError.
    """
    after = totals or _after(_before(ready, location, store), ready)
    if after is None:
        return False
    value = _checksum(after, ready.configuration, ready.draft.transaction_id, ready.in_commit_timestamp)
    _write(value, ready.version, location, store)
    return True


def write_counted_checksum(snapshot: Snapshot) -> None:
    """Write the checksum of a version that has none, by counting its live files. Raises StorageError."""
    files = FileTotals()
    for batch in snapshot.read_files(FileRequest(("path", "size", "deletion_vector"))):
        files = files.plus(batch.column("size"), pc.struct_field(batch.column("deletion_vector"), ["cardinality"]))
    info = snapshot.commit_info()
    has_times = is_active(snapshot.configuration, Feature.IN_COMMIT_TIMESTAMP)
    value = _checksum(
        Totals(files, snapshot.transactions(), snapshot.domains()),
        snapshot.configuration,
        None if info is None else info.txn_id,
        info.in_commit_timestamp if has_times and info is not None else None,
    )
    _write(value, snapshot.version, snapshot.location, snapshot.store)


def _write(value: Mapping[str, Any], version: int, location: str, store: ObjectStore) -> None:
    with suppress(FileAlreadyExistsError):  # never overwritten (C126)
        store.write_if_absent(_path(location, VersionChecksumName(version)), orjson.dumps(value))


def _checksum(
    totals: Totals, configuration: TableConfiguration, transaction_id: str | None, in_commit_timestamp: int | None
) -> dict[str, Any]:
    files = totals.files
    value: dict[str, Any] = {} if transaction_id is None else {"txnId": transaction_id}
    value |= {
        "tableSizeBytes": files.size,
        "numFiles": files.num_files,
        "numMetadata": 1,
        "numProtocol": 1,
    }
    if in_commit_timestamp is not None:
        value["inCommitTimestampOpt"] = in_commit_timestamp
    if totals.transactions is not None and len(totals.transactions) <= _MOST_TRANSACTIONS:
        value["setTransactions"] = [transaction_to_json(t) for t in totals.transactions.values()]
    if totals.domains is not None:
        value["domainMetadata"] = [action_to_json(d)["domainMetadata"] for d in totals.domains.values()]
    value["metadata"] = metadata_to_json(configuration.metadata)
    value["protocol"] = protocol_to_json(configuration.protocol)
    if files.histogram is not None:
        value["fileSizeHistogram"] = files.histogram.to_json()
    if is_supported(configuration, Feature.DELETION_VECTORS):
        if files.num_deleted_records is not None:
            value["numDeletedRecordsOpt"] = files.num_deleted_records
        if files.num_deletion_vectors is not None:
            value["numDeletionVectorsOpt"] = files.num_deletion_vectors
    return value


def _before(ready: ReadyCommit, location: str, store: ObjectStore) -> Totals | None:
    return Totals() if ready.version == 0 else _totals(ready.version - 1, location, store)


def _after(before: Totals | None, ready: ReadyCommit) -> Totals | None:
    if before is None:
        return None
    if ready.adds.num_rows and not ready.removes.num_rows and not ready.data_change:
        # Files added again with other fields are files of the table if the commit depends on them.
        files = before.files if _are_read(ready.adds, ready.draft.reads.paths) else None
    elif _removes_no_data_files(ready):
        files = before.files
    else:
        files = _changed(before.files, ready.adds, ready.removes)
    return None if files is None else before.with_small_actions(ready.transactions, ready.domains, files)


def _removes_no_data_files(ready: ReadyCommit) -> bool:
    """True for tombstones of other files, such as those of deletion vectors: they have no size, and no row changes."""
    removes = ready.removes
    if ready.data_change or ready.adds.num_rows or not removes.num_rows:
        return False
    return bool(removes.column("size").null_count == removes.num_rows)


def _are_read(files: pa.Table, paths: frozenset[str]) -> bool:
    """True if a commit would conflict with the removal of any of the files."""
    return paths.issuperset(files.column("path").to_pylist())


def _changed(files: FileTotals, adds: pa.Table, removes: pa.Table) -> FileTotals:
    added = files.plus(adds.column("size"), _cardinalities(adds))
    return added.minus(removes.column("size"), _cardinalities(removes))


def _cardinalities(files: pa.Table) -> pa.ChunkedArray | None:
    if "deletion_vector" not in files.column_names:
        return None
    return pc.struct_field(files.column("deletion_vector"), ["cardinality"])


def _totals(version: int, location: str, store: ObjectStore) -> Totals | None:
    """Return the totals of a version from the nearest checksum; None without one, or if a commit is ambiguous."""
    later: list[Winner] = []
    for number in range(version, max(-1, version - _FURTHEST_BACK), -1):
        path = _path(location, VersionChecksumName(number))
        if (content := _read(path, store)) is not None:
            return _advanced(_parsed(content, path), reversed(later))
        if (content := _read(_path(location, CommitName(number)), store)) is None:
            return None
        later.append(Winner.parse(TakenVersion(number, content)))
    return None


def _advanced(totals: Totals | None, commits: Iterable[Winner]) -> Totals | None:
    for commit in commits:
        if totals is None:
            return None
        added, removed = commit.added(), commit.removed
        if (
            pc.any(pc.is_in(added.column("path"), value_set=removed.column("path"))).as_py()
            or removed.column("size").null_count
            or not pc.all(pc.fill_null(added.column("data_change"), False)).as_py()
        ):
            return None  # a file added again, or changed in place: only reconciliation can decide
        files = _changed(totals.files, added, removed)
        totals = totals.with_small_actions(commit.transactions, commit.domains, files)
    return totals


def _parsed(content: bytes, path: str) -> Totals | None:
    try:
        checksum = parse_checksum(content, path)
    except CorruptLogError:
        return None
    return Totals(_file_totals(checksum), checksum.transactions, checksum.domains)


def _file_totals(checksum: VersionChecksum) -> FileTotals:
    histogram = checksum.file_size_histogram
    configuration = TableConfiguration(checksum.protocol, checksum.metadata)
    absent = None if is_supported(configuration, Feature.DELETION_VECTORS) else 0
    vectors, deleted = checksum.num_deletion_vectors, checksum.num_deleted_records
    return FileTotals(
        checksum.num_files,
        checksum.table_size_bytes,
        absent if vectors is None else vectors,
        absent if deleted is None else deleted,
        None if histogram is None else SizeHistogram.from_json(histogram),
    )


def _live(domains: Mapping[str, DomainMetadata]) -> dict[str, DomainMetadata]:
    return {name: domain for name, domain in domains.items() if not domain.removed}


def _path(location: str, name: object) -> str:
    return join(location, LOG_DIRECTORY, str(name))


def _read(path: str, store: ObjectStore) -> bytes | None:
    try:
        return store.read(path)
    except FileNotFoundInStoreError:
        return None
