"""Every golden table with conditions on its own values: a scan that skips gives the rows that a filter finds.

The tables come from several writers, so their statistics are cut, rounded and left out in several ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tests.golden.catalogue import GoldenTable, parametrize
from tests.lengths import length

from pyspark_delta.expressions.coercion import is_comparable
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.name_resolution import is_collated
from pyspark_delta.expressions.tree import And, Column, Comparison, Expression, In, IsNull, Literal, Not, StartsWith
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.schema.types import STRING, StructField, StructType
from pyspark_delta.table import Scan, Table

MOST_COLUMNS, MOST_SCANS = 8, length(50, 500)
STEP = length(3, 1)  # one condition of so many; with another column, others

# Tables whose statistics do not describe their data; skipping by them loses rows in every reader.
UNTRUE = {
    "delta-rs/issue_1374": "the second file has an earlier timestamp than its minimum",
    "kernel-rs/parsed-stats": "ts_col is in no data file, yet its null count is 0",
}


def _leaves(schema: StructType) -> Iterator[tuple[tuple[str, ...], StructField]]:
    for f in schema:
        if isinstance(f.type, StructType):
            yield from (((f.name, inner.name), inner) for inner in f.type if not is_collated([f, inner]))
        elif not is_collated([f]):
            yield (f.name,), f


def _values(rows: pa.Table, path: tuple[str, ...]) -> list[Any]:
    """Some values that occur: the least, the middle and the greatest."""
    column = rows[path[0]]
    for part in path[1:]:
        column = pc.struct_field(column, part)
    present = column.combine_chunks().drop_null()
    if not len(present):
        return []
    ordered = present.take(pc.array_sort_indices(present))
    picked = [ordered[0], ordered[len(ordered) // 2], ordered[-1]]
    return list({repr(value): value for value in (scalar.as_py() for scalar in picked)}.values())


def _conditions(column: Column, values: list[Any]) -> Iterator[Expression]:
    yield IsNull(column)
    yield Not(IsNull(column))
    literals = [Literal(value, column.type) for value in values]
    for literal in literals:
        yield from (Comparison(op, column, literal) for op in ("=", "<>", "<", "<=", ">", ">="))
        if column.type == STRING:
            yield StartsWith(column, literal.value[:3])
        yield And((Comparison(">=", column, literals[0]), Comparison("<=", column, literal)))
    if literals:
        yield In(column, tuple(literals))


def _digest(rows: pa.Table, name: str) -> dict[str, int]:
    """How often each value of a column occurs, as text: NaN is equal to NaN."""
    column = rows[name].combine_chunks()
    if pa.types.is_nested(column.type):
        return Counter(map(repr, column.to_pylist()))
    return {repr(item["values"]): item["counts"] for item in column.value_counts().to_pylist()}


@parametrize("table")
def test_skipping_keeps_every_matching_row(table: GoldenTable) -> None:
    if table.id in UNTRUE:
        return
    opened = Table.open(table.path)
    rows = opened.scan().to_arrow()
    if rows.num_rows > 20_000:
        rows = opened.scan(list(opened.schema.names[:3])).to_arrow()
    leaves = [(path, f) for path, f in _leaves(opened.schema) if path[0] in rows.column_names and is_comparable(f.type)]
    for number, (path, f) in enumerate(leaves[:MOST_COLUMNS]):
        scans, conditions = 0, [*_conditions(Column(path, f.type), _values(rows, path))]
        for condition in conditions[number % STEP :: STEP]:
            expected = rows.filter(evaluate(condition, rows))
            plan = plan_scan(opened.snapshot, [path[0]], condition)
            if plan.files.num_rows == opened.snapshot.num_files() and plan.context.residual is not None:
                continue  # nothing skipped, and the rows are checked: nothing to lose
            scans += 1
            if scans > max(MOST_SCANS // (len(leaves[:MOST_COLUMNS]) * max(plan.files.num_rows, 1)), 1):
                break
            found = Scan(plan, opened.snapshot).to_arrow()
            assert _digest(found, path[0]) == _digest(expected, path[0]), condition
