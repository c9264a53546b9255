"""A request for files: columns, and the predicates that let the log skip files before reading their columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Column, Expression
from pyspark_delta.schema.types import DataType, StructType

PARTITION_VALUES = "partitionValues"  # the first part of a partition column's path in a predicate over statistics


@dataclass(frozen=True, slots=True)
class FileRequest:
    """Columns by the names of `actions.columns`, and predicates over values by physical name.

    `partition_predicate` is over `Column((physical_name,))` with the types of `partition_schema` (physical names,
    logical types). `stats_predicate` is over `("minValues"|"maxValues"|"nullCount", *physical path)`, `("numRecords",)`
    and `("tightBounds",)`, with the types of its columns; it may also name partition columns, as `("partitionValues",
    physical_name)`. A file is dropped only if a predicate is definitely false.

    With `makes_texts`, the column "stats" also contains statistics that a checkpoint stores only as columns.
    """

    columns: tuple[str, ...]
    partition_predicate: Expression | None = None
    stats_predicate: Expression | None = None
    partition_schema: StructType = field(default_factory=StructType)
    time_zone: str = "UTC"  # of zone-less timestamp partition values
    makes_texts: bool = True

    def partition_columns(self) -> dict[str, DataType]:
        """Return the physical names and types of the partition columns in the partition predicate."""
        return self._typed(_columns(self.partition_predicate))

    def mixed_columns(self) -> dict[str, DataType]:
        """Return the physical names and types of the partition columns in the predicate over statistics."""
        return self._typed(c for c in _columns(self.stats_predicate) if c.path[0] == PARTITION_VALUES)

    def stats_leaves(self) -> tuple[Column, ...]:
        """Return the statistics in the predicate over statistics."""
        return tuple(c for c in _columns(self.stats_predicate) if c.path[0] != PARTITION_VALUES)

    def _typed(self, columns: Iterable[Column]) -> dict[str, DataType]:
        types = {f.name: f.type for f in self.partition_schema}
        return {c.path[-1]: types.get(c.path[-1], c.type) for c in columns}


def _columns(predicate: Expression | None) -> tuple[Column, ...]:
    return () if predicate is None else columns_of(predicate)
