"""Every function that Arrow computes is compared with Spark, documented, and fails only for the rows that need it."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from tests.function_cases import CASES, table

from pyspark_delta.errors import ComputationError
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.functions.registry import ALIASES, FUNCTIONS, KERNELS, OPERATORS, public_names
from pyspark_delta.expressions.literals import zone_of
from pyspark_delta.expressions.sql import Binder
from pyspark_delta.expressions.stored_functions import CURRENT
from pyspark_delta.expressions.stored_functions import FUNCTIONS as STORED
from pyspark_delta.expressions.syntax import parse
from pyspark_delta.expressions.text import parts_of
from pyspark_delta.expressions.tree import Call
from pyspark_delta.schema.arrow import schema_from_arrow

DOCS = Path(__file__).parents[3] / "docs" / "sql-expressions.md"
TABLE = table()
SCHEMA = schema_from_arrow(TABLE.schema)


def computed(text: str, rows: pa.RecordBatch) -> pa.Array:
    binder = Binder(text, schema_from_arrow(rows.schema), zone_of("UTC"), keep=False)
    return compute(binder.value(parse(text)), rows)


def values(text: str, rows: pa.RecordBatch) -> list[object]:
    found: list[object] = computed(text, rows).to_pylist()
    return found


def test_every_function_is_compared_with_spark() -> None:
    """The expressions are run in tests/spark/test_functions_spark.py; each must call its function, or stand for it."""
    assert CASES.keys() == FUNCTIONS.keys()
    texts = {name: " ".join(CASES[name]).lower() for name in CASES}
    named = {**{name: name for name in FUNCTIONS.keys() - OPERATORS.keys()}, **ALIASES}
    by_syntax = {"div": " div ", "like": " like ", "ilike": " ilike ", "rlike": " rlike ", "case": "case "}
    missing = [name for name, to in named.items() if by_syntax.get(name, f"{name}(") not in texts[to]]
    assert not missing


def test_every_kernel_is_reached() -> None:
    reached = {
        part.name
        for texts in CASES.values()
        for text in texts
        for part in parts_of(Binder(text, SCHEMA, zone_of("UTC"), keep=False).value(parse(text)))
        if isinstance(part, Call)
    }
    assert KERNELS.keys() - reached <= {"plus_millisecond", "add_micros", "add_interval_months"}


def test_every_function_is_documented() -> None:
    text = DOCS.read_text("utf-8").split("<!-- functions:")[1].split("<!-- end of functions -->")[0]
    assert sorted(re.findall(r"`(\w+)`", text)) == public_names()


def test_names_are_those_of_spark() -> None:
    others = {"space", "repeat", "bit_not", "div", "get", "map_contains_key"}
    assert set(public_names()) - STORED - CURRENT <= others | {"datepart", "array_size", "rlike", "like", "ilike"}


def test_a_failure_counts_only_for_rows_that_need_the_value() -> None:
    rows = pa.RecordBatch.from_pydict({"a": [6, 6, None], "b": [2, 0, 0]})
    assert values("CASE WHEN b = 0 THEN -1D ELSE a / b END", rows) == [3.0, -1.0, -1.0]
    assert values("if(b <> 0, a div b, NULL)", rows) == [3, None, None]
    assert values("coalesce(nullif(b, 0), a div 0 + b, 7)", rows.slice(0, 1)) == [2]
    assert values("b <> 0 AND a / b > 1", rows) == [True, False, False]
    assert values("b = 0 OR a % b = 0", rows) == [True, True, True]
    with pytest.raises(ComputationError, match="division by zero"):
        values("CASE WHEN b = 0 THEN a / b ELSE 0D END", rows)


def test_a_constant_that_fails_counts_only_for_rows_that_need_it() -> None:
    rows = pa.RecordBatch.from_pydict({"b": [2, 3]})
    text = "CASE WHEN b = 0 THEN make_date(2024, 13, 1) ELSE DATE '2024-01-01' END"
    assert values(text, rows) == [date(2024, 1, 1)] * 2
    assert values("coalesce(b, 1 div 0)", rows) == [2, 3]
    with pytest.raises(ComputationError, match="month 13"):
        values("make_date(2024, 13, 1)", rows)


def test_an_instant_that_python_has_no_datetime_for_is_named_in_the_error() -> None:
    first = pa.array([-62_135_596_800_000_001], pa.timestamp("us", "UTC"))
    with pytest.raises(ComputationError, match="after 2037, such as at 0000-12-31 23:59:59"):
        values("from_utc_timestamp(at, 'Europe/Berlin')", pa.RecordBatch.from_arrays([first], ["at"]))


def test_no_rows_are_no_failure() -> None:
    empty = TABLE.schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], TABLE.schema)]
    for texts in CASES.values():
        for text in texts:
            assert len(computed(text, empty[0])) == 0


def test_slices_of_batches_are_computed_alike() -> None:
    whole = TABLE.combine_chunks().to_batches()[0]
    for texts in CASES.values():
        for text in texts:
            part, all_rows = computed(text, whole.slice(3, 9)), computed(text, whole)
            assert part.to_string(window=9) == all_rows.slice(3, 9).to_string(window=9), text
