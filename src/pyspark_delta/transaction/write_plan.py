"""How rows for a table become its data files: the write context of a configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.features import finish_order
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import (
    PARQUET_COMPRESSION,
    STATS_COLUMNS,
    STATS_NUM_COLUMNS,
    STATS_STRING_PREFIX_LENGTH,
    TARGET_FILE_SIZE,
)
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field, physical_schema
from pyspark_delta.schema.types import VOID, StructType
from pyspark_delta.stats.columns import DEFAULT_STRING_PREFIX, stats_columns

_NAME_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """What a user may choose about data files; None leaves it to the table's properties, then to the default."""

    compression: str | None = None
    max_records_per_file: int | None = None
    target_file_size: int | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False)


def write_context(location: str, configuration: TableConfiguration, options: FileOptions) -> WriteContext:
    """The context in which workers write files for a table: plain data.

    Void columns of the table are left out: files never hold them.
    """
    schema = StructType(tuple(f for f in configuration.schema if f.type != VOID))
    mode = mapping_mode(configuration)
    partitioning = [f for name in configuration.partition_columns if (f := schema.find(name)) is not None]
    measured = physical_schema(StructType(tuple(f for f in schema if f not in partitioning)), mode)
    stored = any(feature.stores_partition_columns(configuration) for feature in finish_order(configuration))
    data_schema = (
        StructType((*measured, *physical_schema(StructType(tuple(partitioning)), mode))) if stored else measured
    )
    properties = configuration.properties
    named = STATS_COLUMNS.of(properties)
    return WriteContext(
        table_location=location,
        schema=schema,
        data_schema=data_schema,
        partition_columns=tuple(f.name for f in partitioning),
        partition_names=tuple(physical_field(f, mode).name for f in partitioning),
        stores_partition_columns=stored,
        stats_columns=stats_columns(
            measured,
            limit=STATS_NUM_COLUMNS.of(properties),
            names=None if named is None else [_physical_path(schema, _path(name), mode) for name in named],
        ),
        string_prefix=STATS_STRING_PREFIX_LENGTH.of(properties) or DEFAULT_STRING_PREFIX,
        compression=(options.compression or PARQUET_COMPRESSION.of(properties) or "snappy").lower(),
        target_file_size=options.target_file_size or TARGET_FILE_SIZE.of(properties),
        max_records_per_file=options.max_records_per_file,
        storage_options=dict(options.storage_options),
    )


def _physical_path(schema: StructType, path: tuple[str, ...], mode: str) -> tuple[str, ...]:
    """The path in data files; as it is from where the schema does not know it."""
    if not path or (field := schema.find(path[0])) is None:
        return path
    inner = field.type if isinstance(field.type, StructType) else StructType()
    return (physical_field(field, mode).name, *_physical_path(inner, path[1:], mode))


def _path(name: str) -> tuple[str, ...]:
    """The parts of a column name such as a.`b.c`."""
    return tuple((quoted or plain).replace("``", "`").strip() for quoted, plain in _NAME_PART.findall(name))
