"""Builds what a table declares, for tests that need no log: protocol, properties and schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.protocol.configuration import TableConfiguration


def protocol(
    reader: int, writer: int, readers: Iterable[str] | None = None, writers: Iterable[str] | None = None
) -> Protocol:
    """A protocol action; `readers` and `writers` are its feature lists."""
    return Protocol(
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=None if readers is None else frozenset(readers),
        writer_features=None if writers is None else frozenset(writers),
    )


def field(name: str = "id", data_type: Any = "long", **metadata: Any) -> dict[str, Any]:
    """A field of `schemaString`; double underscores in keys of its metadata stand for dots."""
    named = {key.replace("__", "."): value for key, value in metadata.items()}
    return {"name": name, "type": data_type, "nullable": True, "metadata": named}


def declare(
    of: Protocol,
    properties: Mapping[str, str] | None = None,
    fields: Iterable[dict[str, Any]] = (),
    partition_columns: tuple[str, ...] = (),
) -> TableConfiguration:
    """A table configuration; a plain `id` column unless `fields` are given."""
    schema = {"type": "struct", "fields": list(fields) or [field()]}
    metadata = Metadata(
        id="11111111-2222-3333-4444-555555555555",
        schema_string=json.dumps(schema),
        configuration=dict(properties or {}),
        partition_columns=partition_columns,
    )
    return TableConfiguration(of, metadata)


def with_features(
    *names: str, properties: Mapping[str, str] | None = None, fields: Iterable[dict[str, Any]] = ()
) -> TableConfiguration:
    """A table at (3, 7) with these features, each in the lists it belongs to by the protocol's table."""
    readers = [name for name in names if name in READER_WRITER]
    return declare(protocol(3, 7, readers, names), properties, fields)


READER_WRITER = frozenset(
    [
        *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"),
        *("typeWidening", "variantType", "variantShredding", "catalogManaged"),
    ]
)
