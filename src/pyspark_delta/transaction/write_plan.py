"""The write context of a configuration: how rows of a table become data files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.features import Feature, finish_order, is_active
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import (
    PARQUET_COMPRESSION,
    PARQUET_FORMAT_VERSION,
    RANDOM_PREFIX_LENGTH,
    RANDOMIZE_FILE_PREFIXES,
    STATS_STRING_PREFIX_LENGTH,
    TARGET_FILE_SIZE,
    WRITE_PARTITION_COLUMNS,
)
from pyspark_delta.protocol.statistics import table_stats_columns
from pyspark_delta.schema.column_mapping import mapping_mode, physical_schema
from pyspark_delta.schema.stored import stored_schema
from pyspark_delta.schema.types import StructType
from pyspark_delta.stats.indexed_columns import DEFAULT_STRING_PREFIX
from pyspark_delta.storage.credentials import CarriedOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """User options for data files; None uses the table's properties, then the default.

    `partition_columns` is True if data files also contain the partition columns.
    """

    compression: str | None = None
    max_records_per_file: int | None = None
    target_file_size: int | None = None
    partition_columns: bool | None = None
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)


def write_context(
    location: str,
    configuration: TableConfiguration,
    options: FileOptions,
    *,
    clustering: Sequence[tuple[str, ...]] = (),
) -> WriteContext:
    """Return the context in which workers write files for a table; it is picklable.

    `clustering` are the physical paths of its clustering columns, which always have statistics (C351). Raises
    SchemaMismatchError for a schema that files cannot hold.
    """
    schema = stored_schema(configuration.schema)
    mode = mapping_mode(configuration)
    partitioning = tuple(f for name in configuration.partition_columns if (f := schema.find(name)) is not None)
    measured = physical_schema(StructType(tuple(f for f in schema if f not in partitioning)), mode)
    partition = physical_schema(StructType(partitioning), mode)
    stored = stores_partition_columns(configuration, options)
    properties = configuration.properties
    randomized = mode != "none" or RANDOMIZE_FILE_PREFIXES.of(properties)
    return WriteContext(
        table_location=location,
        schema=schema,
        data_schema=StructType(measured.fields + partition.fields) if stored else measured,
        partition_columns=tuple(f.name for f in partitioning),
        partition_names=partition.names,
        stores_partition_columns=stored,
        random_prefix_length=RANDOM_PREFIX_LENGTH.of(properties) if randomized else None,
        stats_columns=table_stats_columns(configuration, clustering),
        string_prefix=STATS_STRING_PREFIX_LENGTH.of(properties) or DEFAULT_STRING_PREFIX,
        compression=(options.compression or PARQUET_COMPRESSION.of(properties) or "zstd").lower(),
        format_version=PARQUET_FORMAT_VERSION.of(properties),
        target_file_size=options.target_file_size or TARGET_FILE_SIZE.of(properties),
        max_records_per_file=options.max_records_per_file,
        storage_options=CarriedOptions(options.storage_options),
        shreds_variants=is_active(configuration, Feature.VARIANT_SHREDDING),
    )


def stores_partition_columns(configuration: TableConfiguration, options: FileOptions) -> bool:
    """True if data files also contain the partition columns: a feature that requires it decides, then the user, then
    the table.

    (Materialize Partition Columns; Iceberg Compatibility.)
    """
    if not configuration.partition_columns:
        return False
    if any(feature.stores_partition_columns(configuration) for feature in finish_order(configuration)):
        return True
    if options.partition_columns is not None:
        return options.partition_columns
    return bool(WRITE_PARTITION_COLUMNS.of(configuration.properties))
