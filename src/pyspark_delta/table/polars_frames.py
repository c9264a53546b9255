"""A Polars LazyFrame over rows of a table: columns, conditions and limits of queries reach the plan of the read.

Polars gives conditions as a tree in JSON. Each conjunct that means exactly the same as an expression of this package is
planned with the read; if any other conjunct is left, Polars filters the rows by the whole condition again.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from pyspark_delta.expressions import pushdown
from pyspark_delta.expressions.tree import And, Column, Expression, IsNull, Literal, Not, Or, all_of
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.types import StructType

Read: TypeAlias = Callable[[list[str] | None, Expression | None, int | None], Iterable[pa.RecordBatch]]

_COMPARISONS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">=", "EqValidity": "<=>"}
_BETWEEN = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_AND, _OR = ("And", "LogicalAnd"), ("Or", "LogicalOr")


def lazy_frame(schema: StructType, read: Read) -> pl.LazyFrame:
    """Return a frame of the rows that `read` gives for columns, a condition and a limit."""
    shown: pl.DataFrame = pl.from_arrow(schema_to_arrow(schema, all_nullable=True).empty_table())  # type: ignore[assignment]

    def rows(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        pushed, is_complete = (None, True) if predicate is None else split_predicate(predicate, schema)
        if n_rows is not None:  # the condition is on the first rows
            pushed, is_complete = None, predicate is None
        names = _needed(with_columns, None if is_complete else predicate, shown)
        for batch in read(names, pushed, n_rows):
            frame: pl.DataFrame = pl.from_arrow(batch)  # type: ignore[assignment]
            if predicate is not None and not is_complete:
                frame = frame.filter(predicate)
            yield frame if with_columns is None else frame.select(with_columns)

    return register_io_source(rows, schema=shown.schema, is_pure=True)


def split_predicate(predicate: pl.Expr, schema: StructType) -> tuple[Expression | None, bool]:
    """Return the conjunction of the conjuncts that have an exact counterpart, and whether these are all of them."""
    try:
        node = json.loads(predicate.meta.serialize(format="json"))
    except (pl.exceptions.PolarsError, ValueError):  # functions of Python, for example
        return None, False
    found = [_condition(conjunct, schema) for conjunct in _conjuncts(node)]
    return all_of(*found), None not in found


def _needed(columns: list[str] | None, predicate: pl.Expr | None, shown: pl.DataFrame) -> list[str] | None:
    """Return the columns to read: those of the query, and those that Polars filters by."""
    if columns is None:
        return None
    used = set(columns).union(() if predicate is None else predicate.meta.root_names())
    return [name for name in shown.columns if name in used] or shown.columns[:1]  # a frame has rows by its columns


# -------------------------------------------------------------------------------------------------- Polars' tree
def _conjuncts(node: Any) -> Iterator[Any]:
    match node:
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _AND:
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield node


def _condition(node: Any, schema: StructType) -> Expression | None:
    """Return the same condition as an expression, unknown for the same rows; None if there is none."""
    match node:
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in (*_AND, *_OR):
            both = [_condition(side, schema) for side in (left, right)]
            known = tuple(part for part in both if part is not None)
            return None if len(known) < 2 else And(known) if op in _AND else Or(known)
        case {"BinaryExpr": {"left": left, "op": "NotEqValidity", "right": right}}:
            return _negated(_comparison("<=>", left, right, schema))
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _COMPARISONS:
            return _comparison(_COMPARISONS[op], left, right, schema)
        case {"Function": {"input": inputs, "function": {"Boolean": function}}}:
            return _boolean(function, inputs, schema)
        case {"Function": {"input": [operand, text], "function": {"StringExpr": "StartsWith"}}}:
            column, constant = _column(operand, schema), _literal(text)
            return None if column is None or constant is None else pushdown.prefix(column, constant)
        case {"Column": str(name)}:
            return pushdown.condition([name], schema)
    return None


def _boolean(function: Any, inputs: list[Any], schema: StructType) -> Expression | None:
    match function, inputs:
        case "Not", [operand]:
            return _negated(_condition(operand, schema))
        case (("IsNull" | "IsNotNull"), [operand]):
            column = _column(operand, schema)
            if column is None:
                return None
            return IsNull(column) if function == "IsNull" else Not(IsNull(column))
        case {"IsIn": {"nulls_equal": False}}, [operand, values]:
            column = _column(operand, schema)
            return None if column is None else pushdown.membership(column, _constants(values, nested=True))
        case {"IsBetween": {"closed": closed}}, [operand, low, high] if closed in _BETWEEN:
            above, below = _BETWEEN[closed]
            least, most = _comparison(above, operand, low, schema), _comparison(below, operand, high, schema)
            return None if least is None or most is None else And((least, most))
    return None


def _comparison(op: str, left: Any, right: Any, schema: StructType) -> Expression | None:
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    for one, other, found in ((left, right, op), (right, left, mirrored.get(op, op))):
        column = _column(one, schema)
        constant = None if column is None else _literal(other)
        if column is not None and constant is not None:
            return pushdown.comparison(found, column, constant)
    return None


def _negated(condition: Expression | None) -> Expression | None:
    return None if condition is None else Not(condition)


def _column(node: Any, schema: StructType) -> Column | None:
    path: list[str] = []
    while True:
        match node:
            case {"Function": {"input": [inner], "function": {"StructExpr": {"FieldByName": str(name)}}}}:
                path.insert(0, name)
                node = inner
            case {"Column": str(name)}:
                return pushdown.column([name, *path], schema)
            case _:
                return None


def _literal(node: Any) -> Literal | None:
    found = _constants(node, nested=False)
    return found[0] if len(found) == 1 else None


def _constants(node: Any, *, nested: bool) -> list[Literal | None]:
    """Return the values of a literal node, or with `nested` of its list; none for another node."""
    if not isinstance(node, Mapping) or set(node) != {"Literal"}:
        return []
    try:
        values = pl.select(pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")).to_series()
    except pl.exceptions.PolarsError:  # JSON has no NaN and no infinity
        return [None]
    if nested:
        if not isinstance(values.dtype, pl.List | pl.Array) or len(values) != 1:
            return []
        values = values[0]
    return [pushdown.constant(value) for value in values.to_arrow()]
