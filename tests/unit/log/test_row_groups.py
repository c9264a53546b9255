"""Ranges of values against rows: a row group with a row that is kept is never passed over."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
)
from pyspark_delta.log.row_groups import Range, may_keep
from pyspark_delta.schema.types import LONG, STRING

COLUMNS = [Column(("a",), LONG), Column(("b",), LONG)]
TEXT = Column(("s",), STRING)
NUMBERS = st.integers(-3, 3)
STRINGS = st.text("abc", max_size=3)

_leaf = st.one_of(
    st.builds(
        lambda op, c, v: Comparison(op, c, Literal(v, LONG)),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]),
        st.sampled_from(COLUMNS),
        st.one_of(st.none(), NUMBERS),
    ),
    st.builds(lambda op: Comparison(op, *COLUMNS), st.sampled_from(["=", "<>", "<", "<=", ">", ">="])),
    st.builds(lambda c: IsNull(c), st.sampled_from(COLUMNS)),
    st.builds(
        lambda c, vs: In(c, tuple(Literal(v, LONG) for v in vs)),
        st.sampled_from(COLUMNS),
        st.lists(st.one_of(st.none(), NUMBERS), min_size=1, max_size=3),
    ),
    st.builds(lambda p: StartsWith(TEXT, p), STRINGS),
    st.builds(lambda op, v: Comparison(op, TEXT, Literal(v, STRING)), st.sampled_from(["=", "<", ">="]), STRINGS),
    st.just(Opaque("rand() > 0.5")),
)
PREDICATES: st.SearchStrategy[Expression] = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.builds(lambda x, y: And((x, y)), inner, inner),
        st.builds(lambda x, y: Or((x, y)), inner, inner),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)


def known(values: list[Any], exact: bool) -> Range:
    present = [v for v in values if v is not None]
    if not exact:
        return Range(None, None, None in values, bool(present))
    return Range(min(present, default=None), max(present, default=None), None in values, bool(present))


@given(
    predicate=PREDICATES,
    rows=st.lists(
        st.tuples(st.one_of(st.none(), NUMBERS), st.one_of(st.none(), NUMBERS), st.one_of(st.none(), STRINGS)),
        min_size=1,
        max_size=4,
    ),
    exact=st.booleans(),
)
def test_a_row_group_with_a_kept_row_is_kept(predicate: Expression, rows: list[Any], exact: bool) -> None:
    a, b, s = (list(column) for column in zip(*rows, strict=True))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(a, pa.int64()), pa.array(b, pa.int64()), pa.array(s, pa.string())], names=["a", "b", "s"]
    )
    ranges = {("a",): known(a, exact), ("b",): known(b, exact), ("s",): known(s, exact)}
    if any(outcome is not False for outcome in evaluate(predicate, batch).to_pylist()):
        assert may_keep(predicate, ranges)


def test_ranges_do_rule_out() -> None:
    a = COLUMNS[0]
    ranges = {("a",): Range(10, 20, False, True)}
    for predicate in (
        Comparison("<", a, Literal(10, LONG)),
        Comparison("=", a, Literal(21, LONG)),
        And((Comparison(">", a, Literal(5, LONG)), Comparison(">", a, Literal(20, LONG)))),
        Not(Comparison(">=", a, Literal(10, LONG))),
        IsNull(a),
        In(a, (Literal(1, LONG), Literal(30, LONG))),
    ):
        assert not may_keep(predicate, ranges)
    assert may_keep(Comparison("=", a, Literal("x", STRING)), ranges)  # statistics of another type say nothing
    assert may_keep(Comparison("<", a, Literal(10, LONG)), {})
