"""The actions of the log as frozen values (section Actions; C127-C221).

Names are the wire names in snake_case; None means absent. Values of single actions only: sets of files are columnar
(`columns.py`), never lists of `AddFile`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """`protocol`: the versions and features a client must support (C184-C191). Features are None if not listed."""

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None

    @property
    def listed_features(self) -> frozenset[str]:
        """The names in either feature list, unknown ones too."""
        return (self.reader_features or frozenset()) | (self.writer_features or frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """`metaData`: schema, partitioning and properties (C127-C137). `created_time` in ms since the epoch."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict, hash=False)
    name: str | None = None
    description: str | None = None
    format_provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict, hash=False)
    created_time: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorDescriptor:
    """The location of the deletion vector of a file (C257-C263). `size_in_bytes` is the bitmap's size, magic
    included.
    """

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """The id that, with the path, is the key of a logical file (C266)."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFile:
    """`add`: a data file becomes part of the table (C138-C152). `path` is as in the log: URI-encoded."""

    path: str
    partition_values: Mapping[str, str | None] = field(hash=False)
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str | None] | None = field(default=None, hash=False)
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFile:
    """`remove`: a data file leaves the table and becomes a tombstone (C153-C161)."""

    path: str
    data_change: bool
    deletion_timestamp: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = field(default=None, hash=False)
    size: int | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = field(default=None, hash=False)
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddCdcFile:
    """`cdc`: a file of changed rows (C164-C174)."""

    path: str
    partition_values: Mapping[str, str | None] = field(hash=False)
    size: int
    data_change: bool = False
    tags: Mapping[str, str | None] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTransaction:
    """`txn`: the newest version an application has committed (C177-C183). `last_updated` in ms since the epoch."""

    app_id: str
    version: int
    last_updated: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainMetadata:
    """`domainMetadata`: a named configuration that features and users keep in the log (C198-C210)."""

    domain: str
    configuration: str
    removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """`commitInfo`: provenance of a commit, any JSON object (C192-C197). `values` is the complete object, in wire
    names.
    """

    values: Mapping[str, Any] = field(hash=False)

    @property
    def in_commit_timestamp(self) -> int | None:
        """`inCommitTimestamp` in ms since the epoch, None if absent."""
        value = self.values.get("inCommitTimestamp")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def txn_id(self) -> str | None:
        """`txnId`, None if absent."""
        value = self.values.get("txnId")
        return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMetadata:
    """`checkpointMetadata` of a V2 checkpoint (C074)."""

    version: int
    tags: Mapping[str, str] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """`sidecar` of a V2 checkpoint (C071): `path` as in the log, size in bytes, time in ms since the epoch."""

    path: str
    size_in_bytes: int
    modification_time: int
    tags: Mapping[str, str] | None = field(default=None, hash=False)


Action: TypeAlias = (
    AddFile
    | RemoveFile
    | AddCdcFile
    | Metadata
    | Protocol
    | SetTransaction
    | DomainMetadata
    | CommitInfo
    | CheckpointMetadata
    | Sidecar
)
