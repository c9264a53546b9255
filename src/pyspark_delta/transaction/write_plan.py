"""How rows for a table become its data files: the write context of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.features import finish_order
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import (
    PARQUET_COMPRESSION,
    STATS_STRING_PREFIX_LENGTH,
    TARGET_FILE_SIZE,
)
from pyspark_delta.protocol.statistics import table_stats_columns
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field, physical_schema
from pyspark_delta.schema.types import VOID, StructType
from pyspark_delta.stats.columns import DEFAULT_STRING_PREFIX


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
    return WriteContext(
        table_location=location,
        schema=schema,
        data_schema=data_schema,
        partition_columns=tuple(f.name for f in partitioning),
        partition_names=tuple(physical_field(f, mode).name for f in partitioning),
        stores_partition_columns=stored,
        stats_columns=table_stats_columns(configuration),
        string_prefix=STATS_STRING_PREFIX_LENGTH.of(properties) or DEFAULT_STRING_PREFIX,
        compression=(options.compression or PARQUET_COMPRESSION.of(properties) or "snappy").lower(),
        target_file_size=options.target_file_size or TARGET_FILE_SIZE.of(properties),
        max_records_per_file=options.max_records_per_file,
        storage_options=dict(options.storage_options),
    )
