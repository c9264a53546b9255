"""Actions to JSON lines: fields in the order of the protocol's tables, absent fields left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from pyspark_delta.actions.model import (
    Action,
    AddCdcFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from pyspark_delta.schema.json import dump_json


def encode_actions(actions: Iterable[Action]) -> bytes:
    """Return the content of a commit file: one action on a line (C011), in the order given."""
    return b"".join(encode_action(action) + b"\n" for action in actions)


def encode_action(action: Action) -> bytes:
    """Return one action as one line of JSON, without the line end. Raises InvalidOperationError (`dump_json`)."""
    return dump_json(action_to_json(action))


def action_to_json(action: Action) -> dict[str, Any]:
    """Return one action as JSON-serializable Python values, under its wire name: `{"add": {...}}`."""
    match action:
        case AddFile():
            return {"add": _add(action)}
        case RemoveFile():
            return {"remove": _remove(action)}
        case AddCdcFile():
            return {"cdc": _cdc(action)}
        case Metadata():
            return {"metaData": metadata_to_json(action)}
        case Protocol():
            return {"protocol": protocol_to_json(action)}
        case SetTransaction():
            return {"txn": transaction_to_json(action)}
        case DomainMetadata(domain=domain, configuration=configuration, removed=removed):
            return {"domainMetadata": {"domain": domain, "configuration": configuration, "removed": removed}}
        case CommitInfo(values=values):
            return {"commitInfo": dict(values)}
        case CheckpointMetadata(version=version, tags=tags):
            return {"checkpointMetadata": _present(version=version, tags=_copy(tags))}
        case Sidecar():
            return {"sidecar": _sidecar(action)}
        case _:
            assert_never(action)


def transaction_to_json(transaction: SetTransaction) -> dict[str, Any]:
    """Return the members of a `txn` action."""
    return _present(appId=transaction.app_id, version=transaction.version, lastUpdated=transaction.last_updated)


def protocol_to_json(protocol: Protocol) -> dict[str, Any]:
    """Return the members of `protocol`; features in alphabetical order, only if the versions allow them (C002)."""
    return _present(
        minReaderVersion=protocol.min_reader_version,
        minWriterVersion=protocol.min_writer_version,
        readerFeatures=None if protocol.reader_features is None else sorted(protocol.reader_features),
        writerFeatures=None if protocol.writer_features is None else sorted(protocol.writer_features),
    )


def metadata_to_json(metadata: Metadata) -> dict[str, Any]:
    """Return the members of `metaData`, with every required field (C129)."""
    return _present(
        id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        format={"provider": metadata.format_provider, "options": dict(metadata.format_options)},
        schemaString=metadata.schema_string,
        partitionColumns=list(metadata.partition_columns),
        configuration=dict(metadata.configuration),
        createdTime=metadata.created_time,
    )


def deletion_vector_to_json(descriptor: DeletionVectorDescriptor) -> dict[str, Any]:
    """Return the members of `deletionVector` in an add or remove."""
    return _present(
        storageType=descriptor.storage_type,
        pathOrInlineDv=descriptor.path_or_inline_dv,
        offset=descriptor.offset,
        sizeInBytes=descriptor.size_in_bytes,
        cardinality=descriptor.cardinality,
    )


def _add(add: AddFile) -> dict[str, Any]:
    return _present(
        path=add.path,
        partitionValues=dict(add.partition_values),
        size=add.size,
        modificationTime=add.modification_time,
        dataChange=add.data_change,
        stats=add.stats,
        tags=_copy(add.tags),
        deletionVector=None if add.deletion_vector is None else deletion_vector_to_json(add.deletion_vector),
        baseRowId=add.base_row_id,
        defaultRowCommitVersion=add.default_row_commit_version,
        clusteringProvider=add.clustering_provider,
    )


def _remove(remove: RemoveFile) -> dict[str, Any]:
    return _present(
        path=remove.path,
        deletionTimestamp=remove.deletion_timestamp,
        dataChange=remove.data_change,
        extendedFileMetadata=remove.extended_file_metadata,
        partitionValues=_copy(remove.partition_values),
        size=remove.size,
        tags=_copy(remove.tags),
        deletionVector=None if remove.deletion_vector is None else deletion_vector_to_json(remove.deletion_vector),
        baseRowId=remove.base_row_id,
        defaultRowCommitVersion=remove.default_row_commit_version,
        stats=remove.stats,
    )


def _cdc(cdc: AddCdcFile) -> dict[str, Any]:
    return _present(
        path=cdc.path,
        partitionValues=dict(cdc.partition_values),
        size=cdc.size,
        tags=_copy(cdc.tags),
        dataChange=cdc.data_change,
    )


def _sidecar(sidecar: Sidecar) -> dict[str, Any]:
    return _present(
        path=sidecar.path,
        sizeInBytes=sidecar.size_in_bytes,
        modificationTime=sidecar.modification_time,
        tags=_copy(sidecar.tags),
    )


def _copy(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if values is None else dict(values)


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
