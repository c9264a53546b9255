"""JSON to actions: every field has the type that the protocol gives it, or the error names file, line and field.

Unknown actions and unknown fields are ignored (C186). Null and absent mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import orjson

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
from pyspark_delta.errors import CorruptLogError

T = TypeVar("T")
JsonObject: TypeAlias = Mapping[str, Any]

_MAX_LONG = 2**63 - 1
_MAX_INT = 2**31 - 1


class Fields:
    """The members of one JSON object of the log, read with their required types.

    `where` names the object and its file, for messages.
    """

    __slots__ = ("_values", "path", "where")

    def __init__(self, values: Any, where: str, path: str) -> None:
        self.where, self.path = where, path
        if not isinstance(values, Mapping):
            raise self.error(f"expected an object, found {shortened(values)}")
        self._values: JsonObject = values

    def error(self, problem: str) -> CorruptLogError:
        """Return the error for a problem in this object."""
        return CorruptLogError(
            f"'{self.path}' is not a valid file of a Delta log: {self.where}: {problem}. "
            "It was damaged or written by a faulty writer; restore it from a copy.",
            path=self.path,
        )

    def get(self, name: str) -> Any:
        """Return the unconverted value, None if absent."""
        return self._values.get(name)

    def string(self, name: str) -> str:
        """Return a required string."""
        return self._required(name, self.optional_string(name))

    def optional_string(self, name: str) -> str | None:
        """Return a string, or None."""
        value = self._values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self._mistyped(name, "a string", value)

    def integer(self, name: str, maximum: int = _MAX_LONG) -> int:
        """Return a required integer of 64 bits, or up to `maximum`."""
        return self._required(name, self.optional_integer(name, maximum))

    def optional_integer(self, name: str, maximum: int = _MAX_LONG) -> int | None:
        """Return an integer, or None."""
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._mistyped(name, "a whole number", value)
        if not -maximum - 1 <= value <= maximum:
            raise self._mistyped(name, "a number of 64 bits" if maximum == _MAX_LONG else "a number of 32 bits", value)
        return value

    def boolean(self, name: str) -> bool:
        """Return a required boolean."""
        return self._required(name, self.optional_boolean(name))

    def optional_boolean(self, name: str) -> bool | None:
        """Return a boolean, or None."""
        value = self._values.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise self._mistyped(name, "true or false", value)

    def map(self, name: str) -> dict[str, str | None]:
        """Return a required object of strings and nulls."""
        return self._required(name, self.optional_map(name))

    def optional_map(self, name: str) -> dict[str, str | None] | None:
        """Return an object of strings and nulls, or None. Numbers and booleans become strings, as in other readers."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self._mistyped(name, "an object", value)
        if all(member is None or isinstance(member, str) for member in value.values()):
            return dict(value)
        return {key: self._text(f"{name}.{key}", member) for key, member in value.items()}

    def _text(self, name: str, value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)):
            return orjson.dumps(value).decode()
        raise self._mistyped(name, "a string", value)

    def strings(self, name: str) -> tuple[str, ...]:
        """Return a required array of strings."""
        return self._required(name, self.optional_strings(name))

    def optional_strings(self, name: str) -> tuple[str, ...] | None:
        """Return an array of strings, or None."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or not all(isinstance(member, str) for member in value):
            raise self._mistyped(name, "an array of strings", value)
        return tuple(value)

    def child(self, name: str) -> Fields | None:
        """Return a member object, or None."""
        value = self._values.get(name)
        return None if value is None else Fields(value, f"{self.where}.{name}", self.path)

    def objects(self, name: str) -> list[Fields] | None:
        """Return the members of an array of objects, or None."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self._mistyped(name, "an array of objects", value)
        return [Fields(member, f"{self.where}.{name}[{i}]", self.path) for i, member in enumerate(value)]

    @property
    def values(self) -> JsonObject:
        """The complete JSON object, as a dict."""
        return self._values

    def _required(self, name: str, value: T | None) -> T:
        if value is None:
            raise self.error(f"the required field '{name}' is missing")
        return value

    def _mistyped(self, name: str, expected: str, value: Any) -> CorruptLogError:
        return self.error(f"the field '{name}' must be {expected}, found {shortened(value)}")


def decode_action(value: JsonObject, *, path: str, line: int) -> Action | None:
    """Return the action on one line of the file `path`; None for an unknown action. Raises CorruptLogError."""
    where = f"line {line}"
    if not isinstance(value, Mapping):
        raise Fields({}, where, path).error(f"expected an object with one action, found {shortened(value)}")
    for name, decode in _DECODERS.items():
        content = value.get(name)
        if content is not None:
            return decode(Fields(content, f"{where}, {name}", path))
    return None


def decode_protocol(fields: Fields) -> Protocol:
    """Return a `protocol` action (C184). The keys of the specification's samples, readerVersion, are ignored (C188)."""
    reader_features, writer_features = (
        fields.optional_strings("readerFeatures"),
        fields.optional_strings("writerFeatures"),
    )
    return Protocol(
        min_reader_version=fields.integer("minReaderVersion", _MAX_INT),
        min_writer_version=fields.integer("minWriterVersion", _MAX_INT),
        reader_features=None if reader_features is None else frozenset(reader_features),
        writer_features=None if writer_features is None else frozenset(writer_features),
    )


def decode_metadata(fields: Fields) -> Metadata:
    """Return a `metaData` action (C130-C136)."""
    format_ = fields.child("format")
    return Metadata(
        id=fields.string("id"),
        name=fields.optional_string("name"),
        description=fields.optional_string("description"),
        format_provider="parquet" if format_ is None else format_.optional_string("provider") or "parquet",
        format_options={} if format_ is None else _without_nulls(format_.optional_map("options")),
        schema_string=fields.string("schemaString"),
        partition_columns=fields.optional_strings("partitionColumns") or (),
        configuration=_without_nulls(fields.optional_map("configuration")),
        created_time=fields.optional_integer("createdTime"),
    )


def decode_add(fields: Fields) -> AddFile:
    """Return an `add` action (C138-C142)."""
    return AddFile(
        path=fields.string("path"),
        partition_values=fields.optional_map("partitionValues") or {},
        size=fields.integer("size"),
        modification_time=fields.integer("modificationTime"),
        data_change=fields.optional_boolean("dataChange") is not False,
        stats=fields.optional_string("stats"),
        tags=fields.optional_map("tags"),
        deletion_vector=_deletion_vector(fields.child("deletionVector")),
        base_row_id=fields.optional_integer("baseRowId"),
        default_row_commit_version=fields.optional_integer("defaultRowCommitVersion"),
        clustering_provider=fields.optional_string("clusteringProvider"),
    )


def decode_remove(fields: Fields) -> RemoveFile:
    """Return a `remove` action (C153-C157)."""
    return RemoveFile(
        path=fields.string("path"),
        data_change=fields.optional_boolean("dataChange") is not False,
        deletion_timestamp=fields.optional_integer("deletionTimestamp"),
        extended_file_metadata=fields.optional_boolean("extendedFileMetadata"),
        partition_values=fields.optional_map("partitionValues"),
        size=fields.optional_integer("size"),
        stats=fields.optional_string("stats"),
        tags=fields.optional_map("tags"),
        deletion_vector=_deletion_vector(fields.child("deletionVector")),
        base_row_id=fields.optional_integer("baseRowId"),
        default_row_commit_version=fields.optional_integer("defaultRowCommitVersion"),
    )


def decode_cdc(fields: Fields) -> AddCdcFile:
    """Return a `cdc` action (C164-C174)."""
    return AddCdcFile(
        path=fields.string("path"),
        partition_values=fields.optional_map("partitionValues") or {},
        size=fields.integer("size"),
        data_change=fields.optional_boolean("dataChange") is True,
        tags=fields.optional_map("tags"),
    )


def decode_transaction(fields: Fields) -> SetTransaction:
    """Return a `txn` action (C177)."""
    return SetTransaction(
        app_id=fields.string("appId"),
        version=fields.integer("version"),
        last_updated=fields.optional_integer("lastUpdated"),
    )


def decode_domain(fields: Fields) -> DomainMetadata:
    """Return a `domainMetadata` action (C198)."""
    return DomainMetadata(
        domain=fields.string("domain"),
        configuration=fields.optional_string("configuration") or "",
        removed=fields.optional_boolean("removed") is True,
    )


def decode_commit_info(fields: Fields) -> CommitInfo:
    """Return a `commitInfo` action (C192): any JSON object, with all its members."""
    return CommitInfo(values=fields.values)


def decode_checkpoint_metadata(fields: Fields) -> CheckpointMetadata:
    """Return a `checkpointMetadata` action (C074)."""
    return CheckpointMetadata(version=fields.integer("version"), tags=_without_nulls(fields.optional_map("tags")))


def decode_sidecar(fields: Fields) -> Sidecar:
    """Return a `sidecar` action (C071)."""
    return Sidecar(
        path=fields.string("path"),
        size_in_bytes=fields.integer("sizeInBytes"),
        modification_time=fields.integer("modificationTime"),
        tags=_without_nulls(fields.optional_map("tags")),
    )


def shortened(value: Any) -> str:
    """Return the value for a message: at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _deletion_vector(fields: Fields | None) -> DeletionVectorDescriptor | None:
    if fields is None:
        return None
    return DeletionVectorDescriptor(
        storage_type=fields.string("storageType"),
        path_or_inline_dv=fields.string("pathOrInlineDv"),
        offset=fields.optional_integer("offset", _MAX_INT),
        size_in_bytes=fields.integer("sizeInBytes", _MAX_INT),
        cardinality=fields.integer("cardinality"),
    )


def _without_nulls(values: Mapping[str, str | None] | None) -> dict[str, str]:
    return {key: value for key, value in (values or {}).items() if value is not None}


_DECODERS: dict[str, Callable[[Fields], Action]] = {
    "add": decode_add,
    "remove": decode_remove,
    "commitInfo": decode_commit_info,
    "metaData": decode_metadata,
    "protocol": decode_protocol,
    "txn": decode_transaction,
    "domainMetadata": decode_domain,
    "cdc": decode_cdc,
    "checkpointMetadata": decode_checkpoint_metadata,
    "sidecar": decode_sidecar,
}
