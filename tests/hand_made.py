"""Tables made by hand, an action at a time: for logs that no engine writes, or writes no more."""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Json = dict[str, Any]

PLAIN = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
_TEXT_MAP = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
CHECKPOINT = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _TEXT_MAP),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    ("tags", _TEXT_MAP),
                    ("deletionVector", _VECTOR),
                ]
            ),
        ),
        (
            "remove",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("deletionTimestamp", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("deletionVector", _VECTOR),
                ]
            ),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXT_MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _TEXT_MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        (
            "domainMetadata",
            pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
        ),
        ("checkpointMetadata", pa.struct([("version", pa.int64()), ("tags", _TEXT_MAP)])),
        (
            "sidecar",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("sizeInBytes", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("tags", _TEXT_MAP),
                ]
            ),
        ),
    ]
)


class HandMade:
    """A table folder that is filled by the calls of a test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "_delta_log"
        self.log.mkdir(parents=True)

    def commit_file(self, version: int) -> Path:
        """Where the commit of a version is."""
        return self.log / f"{version:020}.json"

    def commit(self, version: int, *actions: Json) -> None:
        """Write a commit."""
        self.commit_file(version).write_text(lines(actions))

    def checkpoint(self, version: int, *actions: Json, name: str = "", folder: Path | None = None) -> Path:
        """Write a Parquet checkpoint (or, below another folder and name, a part or sidecar) with these actions."""
        path = (folder or self.log) / (name or f"{version:020}.checkpoint.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{key: _as_rows(value) for key, value in action.items()} for action in actions]
        pq.write_table(pa.Table.from_pylist(rows, schema=CHECKPOINT), path)
        return path

    def data(
        self,
        name: str,
        rows: pa.Table | Mapping[str, Any],
        partition: Mapping[str, str | None] | None = None,
        **options: Any,
    ) -> Json:
        """Write a data file, with the options of Arrow's Parquet writer; the add action for it."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = rows if isinstance(rows, pa.Table) else pa.table(dict(rows))
        pq.write_table(table, path, **options)
        return add(name, path.stat().st_size, partition)

    def vectors(self, *members: bytes) -> tuple[str, list[tuple[int, int]]]:
        """Write a deletion vector file of framed bitmaps; its UUID as hex, and offset and size of each."""
        identifier, content, spans = uuid.uuid4(), b"\x01", []
        for member in members:
            spans.append((len(content), len(member)))
            content += struct.pack(">i", len(member)) + member + struct.pack(">I", zlib.crc32(member))
        (self.path / f"deletion_vector_{identifier}.bin").write_bytes(content)
        return str(identifier), spans


def lines(actions: Iterable[Json]) -> str:
    """Actions as newline-delimited JSON."""
    return "".join(json.dumps(action) + "\n" for action in actions)


def add(path: str, size: int = 1, partition: Mapping[str, str | None] | None = None, **extra: Any) -> Json:
    """An add action."""
    fixed = {"path": path, "partitionValues": dict(partition or {}), "size": size, "modificationTime": 1}
    return {"add": {**fixed, "dataChange": True, **extra}}


def remove(path: str, **extra: Any) -> Json:
    """A remove action."""
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **extra}}


def field(name: str, data_type: Any = "long", nullable: bool = True, **metadata: Any) -> Json:
    """A field of the schema."""
    return {"name": name, "type": data_type, "nullable": nullable, "metadata": metadata}


def struct_of(*fields: Json) -> Json:
    """A struct type of the schema."""
    return {"type": "struct", "fields": list(fields)}


def metadata(
    *fields: Json, partition: Iterable[str] = (), configuration: Mapping[str, str] | None = None, **extra: Any
) -> Json:
    """A metaData action; `extra` overrides its members, None leaves one out."""
    values = {
        "id": "11111111-2222-3333-4444-555555555555",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(struct_of(*fields)),
        "partitionColumns": list(partition),
        "configuration": dict(configuration or {}),
        "createdTime": 1,
        **extra,
    }
    return {"metaData": {key: value for key, value in values.items() if value is not None}}


def features(*names: str, reader: Iterable[str] | None = None) -> Json:
    """A protocol (3, 7) with these features; `reader` are those of readers, all of them by default."""
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(names if reader is None else reader),
            "writerFeatures": list(names),
        }
    }


def _as_rows(value: Any) -> Any:
    """An action as Arrow takes it: objects of strings as pairs."""
    if not isinstance(value, dict):
        return value
    maps = ("partitionValues", "tags", "configuration", "options")
    return {
        key: list(member.items()) if key in maps and isinstance(member, dict) else _as_rows(member)
        for key, member in value.items()
    }
