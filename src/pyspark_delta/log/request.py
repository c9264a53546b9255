"""What a reader of files asks for: columns, and the predicates that let the log skip files before their columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Column, Expression
from pyspark_delta.schema.types import DataType, StructType


@dataclass(frozen=True, slots=True)
class FileRequest:
    """Columns by the names of `actions.columns`, and predicates over values by physical name.

    `partition_predicate` is over `Column((physical_name,))` with the types of `partition_schema` (physical names,
    logical types). `stats_predicate` is over `("minValues"|"maxValues"|"nullCount", *physical path)`,
    `("numRecords",)` and `("tightBounds",)`, with the types its columns carry. A file is dropped only where a
    predicate is definitely false.
    """

    columns: tuple[str, ...]
    partition_predicate: Expression | None = None
    stats_predicate: Expression | None = None
    partition_schema: StructType = field(default_factory=StructType)
    time_zone: str = "UTC"  # of zone-less timestamp partition values

    def partition_columns(self) -> dict[str, DataType]:
        """The physical names and types of the partition columns that the predicate names."""
        if self.partition_predicate is None:
            return {}
        types = {f.name: f.type for f in self.partition_schema}
        return {c.path[0]: types.get(c.path[0], c.type) for c in columns_of(self.partition_predicate)}

    def stats_leaves(self) -> tuple[Column, ...]:
        """The statistics that the predicate names."""
        return () if self.stats_predicate is None else tuple(dict.fromkeys(columns_of(self.stats_predicate)))
