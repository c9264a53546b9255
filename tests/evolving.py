"""Tables made and changed by `evolve`, for tests of what their features ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pyspark_delta.actions.model import Metadata
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.json import parse_schema, schema_to_json
from pyspark_delta.schema.types import INTEGER, STRING, DataType, StructField, StructType
from pyspark_delta.transaction.evolution import evolve

PLAIN = StructType((StructField("id", INTEGER), StructField("s", STRING)))


def created(
    properties: Mapping[str, str] | None = None,
    schema: StructType = PLAIN,
    partition_columns: tuple[str, ...] = (),
    features: Iterable[str] = (),
) -> TableConfiguration:
    """A new table."""
    metadata = Metadata(
        id="11111111-2222-3333-4444-555555555555",
        schema_string=schema_to_json(schema),
        partition_columns=partition_columns,
        configuration=dict(properties or {}),
    )
    return evolve(None, metadata, features=features)


def changed(
    before: TableConfiguration,
    properties: Mapping[str, str] | None = None,
    schema: StructType | None = None,
    partition_columns: tuple[str, ...] | None = None,
    **how: Any,
) -> TableConfiguration:
    """The table with these properties besides those it has, and another schema or partitioning if given."""
    metadata = before.metadata
    if properties is not None:
        metadata = replace(metadata, configuration={**metadata.configuration, **properties})
    if schema is not None:
        metadata = replace(metadata, schema_string=schema_to_json(schema))
    if partition_columns is not None:
        metadata = replace(metadata, partition_columns=partition_columns)
    return evolve(before, metadata, **how)


def columns(**types: DataType) -> StructType:
    """A schema of these columns."""
    return StructType(tuple(StructField(name, data_type) for name, data_type in types.items()))


def versions(configuration: TableConfiguration) -> tuple[int, int]:
    """Reader and writer version."""
    return configuration.protocol.min_reader_version, configuration.protocol.min_writer_version


def features(configuration: TableConfiguration) -> tuple[set[str] | None, set[str] | None]:
    """The lists of reader and writer features."""
    protocol = configuration.protocol
    lists = (protocol.reader_features, protocol.writer_features)
    return tuple(None if found is None else set(found) for found in lists)  # type: ignore[return-value]


def stored(configuration: TableConfiguration) -> StructType:
    """The schema as the log has it."""
    return parse_schema(configuration.metadata.schema_string)
