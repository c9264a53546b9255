"""Build logs of tables for tests: commits, checkpoints of every kind, compactions, checksums and hints.

Input is not checked; for a correct checkpoint, the caller reconciles the actions. Actions are dicts in
wire form: `{"add": {"path": ..., ...}}`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.log.names import (
    ClassicCheckpointName,
    CommitName,
    CompactionName,
    LogName,
    MultiPartCheckpointName,
    UuidCheckpointName,
    VersionChecksumName,
)

WireAction: TypeAlias = Mapping[str, Mapping[str, Any]]

_STRINGS = pa.map_(pa.string(), pa.string())
_DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_ADD: tuple[tuple[str, pa.DataType], ...] = (
    ("path", pa.string()),
    ("partitionValues", _STRINGS),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("stats", pa.string()),
    ("tags", _STRINGS),
    ("deletionVector", _DELETION_VECTOR),
    ("baseRowId", pa.int64()),
    ("defaultRowCommitVersion", pa.int64()),
    ("clusteringProvider", pa.string()),
)
_REMOVE: tuple[tuple[str, pa.DataType], ...] = (
    ("path", pa.string()),
    ("deletionTimestamp", pa.int64()),
    ("dataChange", pa.bool_()),
    ("extendedFileMetadata", pa.bool_()),
    ("partitionValues", _STRINGS),
    ("size", pa.int64()),
    ("deletionVector", _DELETION_VECTOR),
    ("baseRowId", pa.int64()),
    ("defaultRowCommitVersion", pa.int64()),
)
_OTHERS: dict[str, pa.DataType] = {
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _STRINGS),
            ("createdTime", pa.int64()),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _STRINGS)]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _STRINGS)]
    ),
}


class TableBuilder:
    """Writes the log of a table in a directory.

    >>> builder = TableBuilder(tmp_path)                                           # doctest: +SKIP
    >>> builder.commit(0, [protocol(), metadata(), add("a.parquet")])              # doctest: +SKIP
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self.log = self.directory / "_delta_log"
        self.log.mkdir(parents=True, exist_ok=True)

    @property
    def location(self) -> str:
        """The location of the table."""
        return str(self.directory)

    def commit(self, version: int, actions: Iterable[WireAction], *, time_ms: int | None = None) -> Path:
        """Write a commit; `time_ms` sets the modification time of its file."""
        return self._write(CommitName(version), _lines(actions), time_ms)

    def compaction(self, start: int, end: int, actions: Iterable[WireAction]) -> Path:
        """Write a log compaction."""
        return self._write(CompactionName(start, end), _lines(actions))

    def checksum(self, version: int, value: Mapping[str, Any]) -> Path:
        """Write a version checksum file."""
        return self._write(VersionChecksumName(version), json.dumps(value).encode())

    def hint(self, value: Mapping[str, Any] | bytes) -> Path:
        """Write `_last_checkpoint`."""
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        path = self.log / "_last_checkpoint"
        path.write_bytes(content)
        return path

    def classic_checkpoint(self, version: int, actions: Sequence[WireAction], **layout: Any) -> Path:
        """Write a checkpoint of one file; `layout` as for `checkpoint_table` and `parquet.write_table`."""
        return self._parquet(ClassicCheckpointName(version), actions, **layout)

    def multi_part_checkpoint(
        self, version: int, actions: Sequence[WireAction], parts: int, **layout: Any
    ) -> list[Path]:
        """Write a multi-part checkpoint, with the actions distributed round-robin."""
        return [
            self._parquet(MultiPartCheckpointName(version, part, parts), actions[part - 1 :: parts], **layout)
            for part in range(1, parts + 1)
        ]

    def v2_checkpoint(
        self,
        version: int,
        actions: Sequence[WireAction],
        *,
        form: str = "json",
        sidecars: int = 0,
        uuid: str = "80a083e8-7026-4e79-81be-64bd76c43a11",
        **layout: Any,
    ) -> Path:
        """Write a V2 checkpoint: `form` of its top level is json, parquet, or classic (Parquet under that name).

        With `sidecars`, the file actions go there; otherwise they stay in the top level.
        """
        files = [a for a in actions if "add" in a or "remove" in a]
        rest = [a for a in actions if not ("add" in a or "remove" in a)]
        top: list[WireAction] = [{"checkpointMetadata": {"version": version}}, *rest]
        if sidecars:
            top += [
                self.sidecar(f"{version:08x}-{number:04x}-{uuid[14:]}.parquet", files[number::sidecars], **layout)
                for number in range(sidecars)
            ]
        else:
            top += files
        if form == "json":
            return self._write(UuidCheckpointName(version, uuid, "json"), _lines(top))
        if form == "classic":
            return self._parquet(ClassicCheckpointName(version), top, **layout)
        return self._parquet(UuidCheckpointName(version, uuid, "parquet"), top, **layout)

    def sidecar(self, name: str, actions: Sequence[WireAction], **layout: Any) -> WireAction:
        """Write a sidecar; return its `sidecar` action."""
        path = self.log / "_sidecars" / name
        path.parent.mkdir(exist_ok=True)
        _write_parquet(path, actions, ("add", "remove"), **layout)
        size = path.stat().st_size
        return {"sidecar": {"path": name, "sizeInBytes": size, "modificationTime": 1_700_000_000_000}}

    def _write(self, name: LogName, content: bytes, time_ms: int | None = None) -> Path:
        path = self.log / str(name)
        path.write_bytes(content)
        if time_ms is not None:
            os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))
        return path

    def _parquet(self, name: LogName, actions: Sequence[WireAction], **layout: Any) -> Path:
        path = self.log / str(name)
        _write_parquet(path, actions, ("add", "remove", *_OTHERS), **layout)
        return path


# --------------------------------------------------------------------------------------------------- actions
def protocol(
    reader: int = 1, writer: int = 2, reader_features: Sequence[str] = (), writer_features: Sequence[str] = ()
) -> WireAction:
    """Return a protocol action; feature lists at versions 3 and 7."""
    value: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if reader == 3:
        value["readerFeatures"] = list(reader_features)
    if writer == 7:
        value["writerFeatures"] = sorted({*reader_features, *writer_features})
    return {"protocol": value}


def metadata(
    schema: Mapping[str, str] | None = None,
    partition_columns: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    id: str = "af23c9d7-fff1-4a5a-a2c8-55c59bd782aa",  # noqa: A002 - the protocol's name
) -> WireAction:
    """Return a metaData action; `schema` gives the types of columns by name, `{"id": "long"}` by default."""
    fields = [
        {"name": name, "type": data_type, "nullable": True, "metadata": {}}
        for name, data_type in (schema or {"id": "long"}).items()
    ]
    return {
        "metaData": {
            "id": id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(partition_columns),
            "configuration": dict(configuration or {}),
            "createdTime": 1_700_000_000_000,
        }
    }


def add(path: str, partition_values: Mapping[str, str | None] | None = None, **fields: Any) -> WireAction:
    """Return an add action of 100 bytes; `fields` are additional wire fields."""
    value = {
        "path": path,
        "partitionValues": dict(partition_values or {}),
        "size": 100,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
    }
    return {"add": {**value, **fields}}


def remove(path: str, **fields: Any) -> WireAction:
    """Return a remove action; `fields` are additional wire fields."""
    return {"remove": {"path": path, "deletionTimestamp": 1_700_000_000_000, "dataChange": True, **fields}}


def deletion_vector(identity: str, offset: int | None = 1) -> dict[str, Any]:
    """Return a descriptor of storage type `u`."""
    value: dict[str, Any] = {"storageType": "u", "pathOrInlineDv": identity, "sizeInBytes": 40, "cardinality": 2}
    return value if offset is None else {**value, "offset": offset}


# ---------------------------------------------------------------------------------------------------- writing
def checkpoint_table(
    actions: Sequence[WireAction],
    columns: Sequence[str],
    *,
    stats_parsed: pa.StructType | None = None,
    partition_values_parsed: pa.StructType | None = None,
    drop: Sequence[str] = (),
) -> pa.Table:
    """Return the actions as rows of a checkpoint. The parsed structs are taken from `stats_parsed` and
    `partitionValues_parsed` of the adds where a type is given; `drop` names fields of `add` to leave out.
    """
    add_fields = [f for f in _ADD if f[0] not in drop]
    if stats_parsed is not None:
        add_fields.append(("stats_parsed", stats_parsed))
    if partition_values_parsed is not None:
        add_fields.append(("partitionValues_parsed", partition_values_parsed))
    types = {"add": pa.struct(add_fields), "remove": pa.struct(_REMOVE), **_OTHERS}
    arrays = [pa.array([action.get(name) for action in actions], types[name]) for name in columns]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _write_parquet(path: Path, actions: Sequence[WireAction], columns: Sequence[str], **layout: Any) -> None:
    own = ("stats_parsed", "partition_values_parsed", "drop")
    table = checkpoint_table(actions, columns, **{key: layout.pop(key) for key in own if key in layout})
    pq.write_table(table, path, **layout)


def _lines(actions: Iterable[WireAction]) -> bytes:
    return b"".join(json.dumps(action, separators=(",", ":")).encode() + b"\n" for action in actions)
