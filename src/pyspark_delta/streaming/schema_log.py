"""Schema tracking: the log of the schemas with which a stream reads, in the form of delta-spark.

A stream with a schema log reads each version with the schema of that version. A commit that changes the schema ends the
batch before it, and the query: the new schema is written to the log, and used after a restart. The log is a directory
below the checkpoint, with a file for each schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from pyspark_delta.actions.decode import Fields, decode_protocol
from pyspark_delta.actions.encode import protocol_to_json
from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.errors import FileAlreadyExistsError, FileNotFoundInStoreError, StreamSchemaError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.column_ids import without_keys
from pyspark_delta.schema.column_mapping import mapping_mode
from pyspark_delta.schema.declaration_keys import IDENTITY_MARK
from pyspark_delta.schema.json import parse_schema, schema_to_json
from pyspark_delta.schema.types import StructType
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import join
from pyspark_delta.streaming.numbered_files import numbers_in

_FORMAT = "v1"
_TRACKED_PROPERTIES = "delta."

NO_ENTRY = -1
"""The number of the entry before one with which a stream begins."""


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    """The schema of a stream from `version` on.

    `previous` is the number of the entry from which it changed, `NO_ENTRY` if the stream had read nothing before; None
    is the number before its own.
    """

    table_id: str
    version: int
    schema_string: str
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    protocol: Protocol | None
    source_path: str = ""
    previous: int | None = None

    @classmethod
    def of(
        cls, configuration: TableConfiguration, version: int, source_path: str = "", previous: int | None = None
    ) -> SchemaEntry:
        """Return the entry of the configuration of a version. `source_path` names the source in its checkpoint."""
        metadata = configuration.metadata
        properties = {k: v for k, v in metadata.configuration.items() if k.startswith(_TRACKED_PROPERTIES)}
        columns = metadata.partition_columns
        protocol = configuration.protocol
        return cls(metadata.id, version, metadata.schema_string, columns, properties, protocol, source_path, previous)

    def configuration(self, table: TableConfiguration) -> TableConfiguration:
        """Return the configuration of a table with the schema, the properties and the protocol of this entry."""
        properties = {k: v for k, v in table.properties.items() if not k.startswith(_TRACKED_PROPERTIES)}
        metadata: Metadata = replace(
            table.metadata,
            schema_string=self.schema_string,
            partition_columns=self.partition_columns,
            configuration={**properties, **self.properties},
        )
        return TableConfiguration(self.protocol or table.protocol, metadata, table.location)

    def to_json(self) -> str:
        """Return the text of an entry as delta-spark writes it."""
        schema = parse_schema(self.schema_string)
        partitioning = StructType(tuple(f for name in self.partition_columns if (f := schema.find(name)) is not None))
        values: dict[str, Any] = {
            "tableId": self.table_id,
            "deltaCommitVersion": self.version,
            "dataSchemaJson": self.schema_string,
            "partitionSchemaJson": schema_to_json(partitioning),
            "sourceMetadataPath": self.source_path,
            "tableConfigurations": dict(self.properties),
        }
        if self.protocol is not None:
            values["protocolJson"] = orjson.dumps({"protocol": protocol_to_json(self.protocol)}).decode()
        if self.previous is not None:
            values["previousMetadataSeqNum"] = self.previous
        return orjson.dumps(values).decode()

    @classmethod
    def parse(cls, text: str, path: str) -> SchemaEntry:
        """Return the entry of the content of a file. Raises StreamSchemaError."""
        found, _, content = text.partition("\n")
        if found.strip() != _FORMAT:
            raise _malformed(path, f"its format is '{found.strip()}' instead of '{_FORMAT}'")
        try:
            values = orjson.loads(content)
            partitioning = parse_schema(values["partitionSchemaJson"])
            protocol = values.get("protocolJson")
            return cls(
                table_id=str(values["tableId"]),
                version=int(values["deltaCommitVersion"]),
                schema_string=str(values["dataSchemaJson"]),
                partition_columns=partitioning.names,
                properties=dict(values.get("tableConfigurations") or {}),
                protocol=None if protocol is None else _protocol(protocol, path),
                source_path=str(values.get("sourceMetadataPath") or ""),
                previous=values.get("previousMetadataSeqNum"),
            )
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise _malformed(path, f"{type(error).__name__}: {error}") from None


class SchemaLog:
    """The schema log of one source: a file for each entry, numbered from 0."""

    def __init__(
        self,
        location: str,
        table_id: str,
        tracking_id: str | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        name = f"_schema_log_{table_id}" if tracking_id is None else f"_schema_log_{table_id}_{tracking_id}"
        self.location = join(location, name)
        self._table_id = table_id
        self._store = store_for(location, dict(storage_options or {}))

    def latest(self) -> tuple[int, SchemaEntry] | None:
        """Return the newest entry and its number; None if the log is empty. Raises StreamSchemaError."""
        numbers = numbers_in(self._store, self.location)
        return None if not numbers else (numbers[-1], self.entry(numbers[-1]))

    def entry(self, number: int) -> SchemaEntry:
        """Return the entry of a number. Raises StreamSchemaError for one that is malformed, or of another table."""
        path = self._path(number)
        try:
            entry = SchemaEntry.parse(self._store.read(path).decode(), path)
        except FileNotFoundInStoreError:
            raise _malformed(path, "the file is missing") from None
        if entry.table_id != self._table_id:
            raise StreamSchemaError(
                f"The schema log '{self.location}' is that of the table with id {entry.table_id}, but the stream reads "
                f"the table with id {self._table_id}. Choose another schemaTrackingLocation.",
                error_class="DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
                sqlstate="22000",
                location=self.location,
            )
        return entry

    def append(self, number: int, entry: SchemaEntry) -> None:
        """Write an entry, if none has its number. Raises StreamSchemaError if another query has written it."""
        path = self._path(number)
        try:
            self._store.write_if_absent(path, f"{_FORMAT}\n{entry.to_json()}".encode())
        except FileAlreadyExistsError:
            if self.entry(number).schema_string == entry.schema_string:
                return  # the same query was started again before it had noticed
            raise StreamSchemaError(
                f"Another query writes the schema log '{self.location}'. Give each source of each query its own "
                "schemaTrackingLocation, or a streamingSourceTrackingId.",
                error_class="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
                sqlstate="22000",
                location=self.location,
            ) from None

    def _path(self, number: int) -> str:
        return join(self.location, str(number))


def source_path(root: str, number: int) -> str:
    """Return the path by which an entry names its source; `root` is the checkpoint of the query as Spark writes it.

    delta-spark refuses a schema log with another text.
    """
    return f"{root}/sources/{number}"


def outside_checkpoint(location: str, checkpoint: str | None) -> StreamSchemaError:
    """Return the error for a schema log at a location that is not below the checkpoint; None if this is unknown."""
    named = "the checkpoint" if checkpoint is None else f"the checkpoint '{checkpoint}'"
    return StreamSchemaError(
        f"The option schemaTrackingLocation is '{location}', which is not below {named} of the query. Choose a "
        "directory in the checkpoint, so that both are deleted together.",
        error_class="DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT",
        sqlstate="42K04",
        location=location,
        checkpoint=checkpoint or "",
    )


def is_tracked_change(before: TableConfiguration, after: TableConfiguration) -> bool:
    """Return True if files of two configurations are read with different schemas."""
    if mapping_mode(before) != mapping_mode(after) or before.partition_columns != after.partition_columns:
        return True
    if before.metadata.schema_string == after.metadata.schema_string:
        return False
    # The high-water mark of an identity column changes with every append.
    return without_keys(before.schema, (IDENTITY_MARK,)) != without_keys(after.schema, (IDENTITY_MARK,))


def _protocol(text: str, path: str) -> Protocol:
    return decode_protocol(Fields(orjson.loads(text)["protocol"], "protocolJson", path))


def _malformed(path: str, problem: str) -> StreamSchemaError:
    return StreamSchemaError(
        f"The file '{path}' of a schema log cannot be read: {problem}. Restore it, or use a new checkpoint.",
        error_class="DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
        sqlstate="22000",
        path=path,
    )
