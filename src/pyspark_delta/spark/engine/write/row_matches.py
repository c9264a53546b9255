"""Rows of a table that new rows replace: by equal values (replaceUsing), or by a condition on both (replaceOn).

The new rows are read from the files just written, so that the data is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as sf

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.expressions.coercion import is_comparable
from pyspark_delta.expressions.name_resolution import is_collated
from pyspark_delta.expressions.tree import Column, Comparison, Expression, Literal, all_of
from pyspark_delta.protocol.draft import ReadSet
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.types import DOUBLE, FLOAT, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.arrow import collect_arrow
from pyspark_delta.spark.frames.reading import read_files
from pyspark_delta.write.replacement import EXAMINED_COLUMNS, Replaced, live_rows, replace_matching
from pyspark_delta.write.selection import EqualKeys, On, Selection, data_alias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE = "_pyspark_delta_from_file"
_KEY = "_pyspark_delta_key_{}"


@dataclass(frozen=True)
class RowMatch:
    """A join that matches rows of the table to new rows: by `condition`, in SQL, or by equal `keys`."""

    new_rows: DataFrame
    condition: str | None = None
    keys: tuple[str, ...] = ()
    table_alias: str = ""
    source_alias: str = ""

    def matched(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the table that new rows replace."""
        return self._join(rows, "left_semi")

    def kept(self, rows: DataFrame) -> DataFrame:
        """Return the other rows of the table."""
        return self._join(rows, "left_anti")

    def _join(self, rows: DataFrame, how: str) -> DataFrame:
        if self.condition is not None:
            source = self.new_rows.alias(self.source_alias) if self.source_alias else self.new_rows
            table = rows.alias(self.table_alias) if self.table_alias else rows
            return table.join(source, sf.expr(self.condition), how)
        # Internal names: both sides are frames of one table, so Spark could not distinguish their columns.
        names = [_KEY.format(number) for number in range(len(self.keys))]
        keys = self.new_rows.select(
            *(sf.col(quoted(key)).alias(name) for key, name in zip(self.keys, names, strict=True))
        ).distinct()
        conditions = [sf.col(quoted(key)) == sf.col(name) for key, name in zip(self.keys, names, strict=True)]
        return rows.join(keys, conditions, how)


@dataclass(frozen=True, slots=True)
class ConditionMatch:
    """Rows of the table that meet a condition, in SQL."""

    condition: str

    def matched(self, rows: DataFrame) -> DataFrame:
        """Return the rows that meet the condition."""
        return rows.where(sf.expr(self.condition))

    def kept(self, rows: DataFrame) -> DataFrame:
        """Return the rows that do not meet it, including those for which it is null."""
        return rows.where(~sf.coalesce(sf.expr(self.condition), sf.lit(False)))


def match_rows(selection: Selection, new_rows: DataFrame) -> RowMatch:
    """Return the join that finds the rows of a selection. With EqualKeys, null equals nothing."""
    match selection:
        case EqualKeys(keys):
            return RowMatch(new_rows, keys=keys)
        case On(condition, alias):
            return RowMatch(new_rows, condition, (), alias or "", data_alias(condition, alias))
        case _:
            raise ValueError(f"{selection} joins no rows")


def replace_rows(spark: SparkSession, snapshot: Snapshot, match: RowMatch, time_zone: str) -> Replaced:
    """Return the files with rows that new rows replace. Runs a Spark job over the files that may have such rows."""
    source = file_source(snapshot)
    bounds = _key_bounds(match, snapshot.configuration.schema)
    candidates, reads = _candidates(snapshot, bounds, time_zone)
    rows = read_files(spark, source, candidates, file_number=_FILE)
    found = collect_arrow(match.matched(rows).groupBy(_FILE).count())
    numbers = pc.array_sort_indices(found[_FILE])
    found = found.take(numbers)
    touched = candidates.take(found[_FILE])
    is_whole = pc.fill_null(pc.equal(live_rows(touched), found["count"]), False)
    return Replaced(
        whole=touched.filter(is_whole),
        partly=touched.filter(pc.invert(is_whole)),
        reads=replace(reads, paths=frozenset(touched["path"].to_pylist())),
        rows=pc.sum(found["count"]).as_py() or 0,
    )


def _candidates(snapshot: Snapshot, bounds: Expression | None, time_zone: str) -> tuple[pa.Table, ReadSet]:
    if bounds is None:
        names = tuple(f.name for f in FILE_FIELDS if f.name in EXAMINED_COLUMNS)
        return snapshot.files(names), ReadSet(whole_table=True)
    found = replace_matching(snapshot, bounds, time_zone)
    return found.removed, found.reads


def _key_bounds(match: RowMatch, schema: StructType) -> Expression | None:
    """Return the range of the keys of the new rows as a condition on the table; None if no key has a range."""
    fields = (schema.find(key) for key in match.keys)
    columns = [f for f in fields if f is not None and is_comparable(f.type) and not _has_odd_order(f)]
    if not columns:
        return None
    aggregates = [
        function(sf.col(quoted(column.name))).alias(f"{name}{position}")
        for position, column in enumerate(columns)
        for name, function in (("least", sf.min), ("greatest", sf.max))
    ]
    [found] = collect_arrow(match.new_rows.agg(*aggregates)).to_pylist()
    parts: list[Expression] = []
    for position, column in enumerate(columns):
        least, greatest = found[f"least{position}"], found[f"greatest{position}"]
        if least is None:
            return NEVER  # all keys are null, which equals nothing
        own = Column((column.name,), column.type)
        parts.append(Comparison(">=", own, Literal(least, column.type)))
        parts.append(Comparison("<=", own, Literal(greatest, column.type)))
    return all_of(*parts)


def _has_odd_order(field: StructField) -> bool:
    """Return True if a value outside a range may equal one inside: 0.0 and -0.0, NaN, texts with a collation."""
    return field.type in (FLOAT, DOUBLE) or is_collated([field])
