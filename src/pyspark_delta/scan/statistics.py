"""The statistics of all files as one typed table, by the logical names of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from pyspark_delta.expressions.tree import Column
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.types import BOOLEAN, LONG, VOID, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.stats.indexed_columns import StatsColumn, stats_columns
from pyspark_delta.stats.parse import Tree, assemble, leaf_tree


def statistics_table(snapshot: Snapshot) -> pa.Table:
    """Return one row for each live file; see `Table.stats`. Raises CorruptLogError."""
    return pa.Table.from_batches(list(statistics_batches(snapshot)), statistics_schema(snapshot))


def statistics_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the columns of the statistics."""
    leaves = statistics_leaves(snapshot.configuration)
    tree = leaf_tree([leaf.logical for leaf in leaves])
    return _nested(pa.RecordBatch.from_pylist([], _flat_schema(leaves)), leaves, tree).schema


def statistics_batches(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `statistics_table`, as they are consumed. Raises CorruptLogError."""
    leaves = statistics_leaves(snapshot.configuration)
    tree = leaf_tree([leaf.logical for leaf in leaves])
    for batch in snapshot.statistics(tuple(leaf.physical for leaf in leaves)):
        yield _nested(batch, leaves, tree)


@dataclass(frozen=True, slots=True)
class StatisticsLeaf:
    """One statistic of one column, by its logical and by its physical path."""

    logical: Column
    physical: Column


def statistics_leaves(configuration: TableConfiguration) -> list[StatisticsLeaf]:
    """Return the statistics that files of a table may have: of files, then bounds and null counts of columns."""
    mode = mapping_mode(configuration)
    partitions = {name.casefold() for name in configuration.partition_columns}
    stored = [f for f in configuration.schema if f.name.casefold() not in partitions and f.type != VOID]
    physical = stats_columns(StructType(tuple(physical_field(f, mode) for f in stored)), limit=-1)
    logical = stats_columns(StructType(tuple(stored)), limit=-1)
    pairs = list(zip(logical, physical, strict=True))
    bounded = [pair for pair in pairs if pair[0].has_bounds]
    of_files = [Column(("numRecords",), LONG), Column(("tightBounds",), BOOLEAN)]
    return [
        *(StatisticsLeaf(column, column) for column in of_files),
        *(_leaf("minValues", *pair) for pair in bounded),
        *(_leaf("maxValues", *pair) for pair in bounded),
        *(_leaf("nullCount", replace(a, type=LONG), replace(b, type=LONG)) for a, b in pairs),
    ]


def _leaf(statistic: str, logical: StatsColumn, physical: StatsColumn) -> StatisticsLeaf:
    return StatisticsLeaf(
        Column((statistic, *logical.path), logical.type), Column((statistic, *physical.path), physical.type)
    )


def _flat_schema(leaves: list[StatisticsLeaf]) -> pa.Schema:
    fields = [pa.field(str(i), to_arrow(leaf.logical.type)) for i, leaf in enumerate(leaves)]
    return pa.schema([pa.field("path", pa.string()), *fields])


def _nested(batch: pa.RecordBatch, leaves: list[StatisticsLeaf], tree: Tree) -> pa.RecordBatch:
    columns = {leaf.logical.path: column for leaf, column in zip(leaves, batch.columns[1:], strict=True)}
    stats = assemble(tree, columns, len(batch))
    return pa.RecordBatch.from_arrays([batch.column(0), *stats.columns], names=["path", *stats.schema.names])
