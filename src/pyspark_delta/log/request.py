"""What a reader of files asks for: columns, and the predicates that let the log skip files before their columns."""

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
    logical types). `stats_predicate` is over `("minValues"|"maxValues"|"nullCount", *physical path)`,
    `("numRecords",)` and `("tightBounds",)`, with the types its columns carry; it may also name partition columns, as
    `("partitionValues", physical_name)`. A file is dropped only where a predicate is definitely false.

    With `makes_texts`, the column "stats" has the statistics that a checkpoint keeps as columns alone, too.
    """

    columns: tuple[str, ...]
    partition_predicate: Expression | None = None
    stats_predicate: Expression | None = None
    partition_schema: StructType = field(default_factory=StructType)
    time_zone: str = "UTC"  # of zone-less timestamp partition values
    makes_texts: bool = True

    def partition_columns(self) -> dict[str, DataType]:
        """The physical names and types of the partition columns that the partition predicate names."""
        return self._typed(_columns(self.partition_predicate))

    def mixed_columns(self) -> dict[str, DataType]:
        """The physical names and types of the partition columns that the predicate over statistics names."""
        return self._typed(c for c in _columns(self.stats_predicate) if c.path[0] == PARTITION_VALUES)

    def stats_leaves(self) -> tuple[Column, ...]:
        """The statistics that the predicate over statistics names."""
        return tuple(c for c in _columns(self.stats_predicate) if c.path[0] != PARTITION_VALUES)

    def _typed(self, columns: Iterable[Column]) -> dict[str, DataType]:
        types = {f.name: f.type for f in self.partition_schema}
        return {c.path[-1]: types.get(c.path[-1], c.type) for c in columns}


def _columns(predicate: Expression | None) -> tuple[Column, ...]:
    return () if predicate is None else columns_of(predicate)
