"""The version checksum file, `<version>.crc`: protocol, metadata and counts of a version in one object (C105-C126).

It is optional: a missing or malformed one is ignored (C123). `differences` checks its numbers against the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from pyspark_delta.actions.decode import (
    Fields,
    decode_domain,
    decode_metadata,
    decode_protocol,
    decode_transaction,
)
from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.errors import CorruptLogError, FileNotFoundInStoreError
from pyspark_delta.storage import FileStatus, ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChecksum:
    """The contents of a checksum file; None for absent values. Sizes in bytes, time in ms since the epoch."""

    protocol: Protocol
    metadata: Metadata
    num_files: int
    table_size_bytes: int
    num_metadata: int
    num_protocol: int
    txn_id: str | None = None
    in_commit_timestamp: int | None = None
    transactions: Mapping[str, SetTransaction] | None = field(default=None, hash=False)
    domains: Mapping[str, DomainMetadata] | None = field(default=None, hash=False)
    file_size_histogram: Mapping[str, Any] | None = field(default=None, hash=False)
    num_deleted_records: int | None = None
    num_deletion_vectors: int | None = None


def read_checksum(store: ObjectStore, file: FileStatus | None) -> VersionChecksum | None:
    """Return the contents of a checksum file; None if there is none, or it is malformed."""
    if file is None:
        return None
    try:
        return parse_checksum(store.read(file.path), file.path)
    except (CorruptLogError, FileNotFoundInStoreError):
        return None


def parse_checksum(content: bytes, path: str) -> VersionChecksum:
    """Parse a checksum file. Raises CorruptLogError if a required field is missing or of a wrong type."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise CorruptLogError(f"The version checksum '{path}' is not valid JSON: {error}.", path=path) from None
    fields = Fields(value, "the object", path)
    protocol, metadata = fields.child("protocol"), fields.child("metadata")
    if protocol is None or metadata is None:
        raise fields.error(f"the required field '{'protocol' if protocol is None else 'metadata'}' is missing")
    checksum = VersionChecksum(
        protocol=decode_protocol(protocol),
        metadata=decode_metadata(metadata),
        num_files=fields.integer("numFiles"),
        table_size_bytes=fields.integer("tableSizeBytes"),
        num_metadata=fields.integer("numMetadata"),
        num_protocol=fields.integer("numProtocol"),
        txn_id=fields.optional_string("txnId"),
        in_commit_timestamp=fields.optional_integer("inCommitTimestampOpt"),
        transactions=_transactions(fields),
        domains=_domains(fields),
        # Older delta-spark versions wrote the histogram under another name (C114).
        file_size_histogram=_histogram(fields.child("fileSizeHistogram") or fields.child("histogramOpt")),
        num_deleted_records=fields.optional_integer("numDeletedRecordsOpt"),
        num_deletion_vectors=fields.optional_integer("numDeletionVectorsOpt"),
    )
    if checksum.num_metadata != 1 or checksum.num_protocol != 1:
        raise fields.error("numMetadata and numProtocol must be 1")
    if checksum.num_files < 0 or checksum.table_size_bytes < 0:
        raise fields.error("numFiles and tableSizeBytes must not be negative")
    return checksum


def differences(
    checksum: VersionChecksum,
    *,
    protocol: Protocol,
    metadata: Metadata,
    num_files: int,
    size_in_bytes: int,
    transactions: Mapping[str, SetTransaction],
    domains: Mapping[str, DomainMetadata],
) -> tuple[str, ...]:
    """Return the differences between a checksum and the replayed state, one sentence each (C121, C122)."""
    pairs: list[tuple[str, Any, Any]] = [
        ("numFiles", checksum.num_files, num_files),
        ("tableSizeBytes", checksum.table_size_bytes, size_in_bytes),
        ("protocol", checksum.protocol, protocol),
        ("metadata", checksum.metadata, metadata),
    ]
    if checksum.transactions is not None:
        pairs.append(("setTransactions", dict(checksum.transactions), dict(transactions)))
    if checksum.domains is not None:
        pairs.append(("domainMetadata", dict(checksum.domains), dict(domains)))
    return tuple(
        f"{name} is {found} in the checksum, but {actual} in the log"
        for name, found, actual in pairs
        if found != actual
    )


def _transactions(fields: Fields) -> dict[str, SetTransaction] | None:
    members = fields.objects("setTransactions")
    return None if members is None else {t.app_id: t for t in map(decode_transaction, members)}


def _domains(fields: Fields) -> dict[str, DomainMetadata] | None:
    members = fields.objects("domainMetadata")
    return None if members is None else {d.domain: d for d in map(decode_domain, members) if not d.removed}


def _histogram(fields: Fields | None) -> dict[str, Any] | None:
    """Return the histogram if it is well-formed (C118), None otherwise: it is only informative."""
    if fields is None:
        return None
    parts = [fields.get(name) for name in ("sortedBinBoundaries", "fileCounts", "totalBytes")]
    if not all(isinstance(part, list) and all(isinstance(n, int) for n in part) for part in parts):
        return None
    bounds, counts, sizes = parts
    if not bounds or bounds[0] != 0 or sorted(bounds) != bounds or not len(bounds) == len(counts) == len(sizes):
        return None
    return {"sortedBinBoundaries": bounds, "fileCounts": counts, "totalBytes": sizes}
