"""Which columns of a table have statistics: its properties applied to its schema (section Per-file Statistics)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import STATS_COLUMNS, STATS_NUM_COLUMNS
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field, physical_schema
from pyspark_delta.schema.column_paths import parse_column_path
from pyspark_delta.schema.stored import without_void
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.stats.indexed_columns import StatsColumn, stats_columns


def table_stats_columns(
    configuration: TableConfiguration, clustering: Sequence[tuple[str, ...]] = ()
) -> tuple[StatsColumn, ...]:
    """Return the data file columns that have statistics, by physical path.

    The columns at the physical paths of `clustering` are always among them, independent of properties (C351).
    """
    named = STATS_COLUMNS.of(configuration.properties)
    partitioning = _partition_fields(configuration)
    stored = without_void(configuration.schema)
    kept = StructType(tuple(f for f in stored if f.name not in {p.name for p in partitioning}))
    mode = mapping_mode(configuration)
    return stats_columns(
        physical_schema(kept, mode),
        limit=STATS_NUM_COLUMNS.of(configuration.properties),
        names=None if named is None else [_physical_path(kept, parse_column_path(name), mode) for name in named],
        always=clustering,
    )


def physical_partition_schema(configuration: TableConfiguration) -> StructType:
    """Return the partition columns in order, by physical name."""
    return physical_schema(StructType(tuple(_partition_fields(configuration))), mapping_mode(configuration))


def _partition_fields(configuration: TableConfiguration) -> list[StructField]:
    found = (configuration.schema.find(name) for name in configuration.partition_columns)
    return [field for field in found if field is not None]


def _physical_path(schema: StructType, path: tuple[str, ...], mode: str) -> tuple[str, ...]:
    """Return the path in data files; unchanged from the first name that is not in the schema."""
    if not path or (field := schema.find(path[0])) is None:
        return path
    inner = field.type if isinstance(field.type, StructType) else StructType()
    return (physical_field(field, mode).name, *_physical_path(inner, path[1:], mode))
