"""Which columns of a table have statistics: its properties applied to its schema (section Per-file Statistics)."""

from __future__ import annotations

import re

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import STATS_COLUMNS, STATS_NUM_COLUMNS
from pyspark_delta.schema.column_mapping import mapping_mode, physical_schema
from pyspark_delta.schema.types import VOID, StructField, StructType
from pyspark_delta.stats.columns import StatsColumn, stats_columns

_NAME_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def table_stats_columns(configuration: TableConfiguration) -> tuple[StatsColumn, ...]:
    """The columns of the data files that statistics are kept of, by physical path."""
    named = STATS_COLUMNS.of(configuration.properties)
    partitioning = _partition_fields(configuration)
    kept = StructType(tuple(f for f in configuration.schema if f.type != VOID and f not in partitioning))
    return stats_columns(
        physical_schema(kept, mapping_mode(configuration)),
        limit=STATS_NUM_COLUMNS.of(configuration.properties),
        names=None if named is None else [_path(name) for name in named],
    )


def physical_partition_schema(configuration: TableConfiguration) -> StructType:
    """The partition columns in order, by physical name."""
    return physical_schema(StructType(tuple(_partition_fields(configuration))), mapping_mode(configuration))


def _partition_fields(configuration: TableConfiguration) -> list[StructField]:
    found = (configuration.schema.find(name) for name in configuration.partition_columns)
    return [field for field in found if field is not None]


def _path(name: str) -> tuple[str, ...]:
    """The parts of a column name such as a.`b.c`."""
    return tuple((quoted or plain).replace("``", "`").strip() for quoted, plain in _NAME_PART.findall(name))
