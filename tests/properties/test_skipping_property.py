"""Skipping never loses a row: statistics by an independent model, rows by a naive evaluation in Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lengths import length

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.expressions.coercion import compare
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.literals import NotExactError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import to_sql
from pyspark_delta.expressions.tree import (
    And,
    Call,
    Cast,
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
from pyspark_delta.log.skipping import kept_by_partition, kept_by_stats
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.scan.skipping import split
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)

SMALL, LARGE = DecimalType(10, 2), DecimalType(38, 10)
TYPES: dict[str, DataType] = {
    "i": INTEGER,
    "l": LONG,
    "f": FLOAT,
    "d": DOUBLE,
    "s": STRING,
    "dt": DATE,
    "ts": TIMESTAMP,
    "ntz": TIMESTAMP_NTZ,
    "dec": SMALL,
    "big": LARGE,
    "b": BOOLEAN,
}
COLUMNS = {name: Column((name,), t) for name, t in TYPES.items()} | {"n.x": Column(("n", "x"), INTEGER)}
_JSON_TYPES = {"dec": "decimal(10,2)", "big": "decimal(38,10)"}
SCHEMA_JSON = (
    '{"type":"struct","fields":['
    + ",".join(f'{{"name":"{name}","type":"{t}","nullable":true,"metadata":{{}}}}' for name, t in TYPES.items())
    + ',{"name":"n","nullable":true,"metadata":{},"type":{"type":"struct","fields":'
    '[{"name":"x","type":"integer","nullable":true,"metadata":{}}]}}]}'
)


def _configuration(partition_columns: tuple[str, ...] = ()) -> TableConfiguration:
    metadata = Metadata(id="t", schema_string=SCHEMA_JSON, partition_columns=partition_columns)
    return TableConfiguration(Protocol(min_reader_version=1, min_writer_version=2), metadata)


CONFIGURATION = _configuration()
PARTITION_COLUMNS = ("l", "s", "d", "dt", "ts", "dec", "b")
PARTITIONED = _configuration(PARTITION_COLUMNS)
LONG_TEXT = "p" * 31
STRINGS = [
    "",
    "a",
    "ab",
    "abc",
    "b",
    "é",
    "\U0001f600",
    LONG_TEXT,
    LONG_TEXT + "q",
    LONG_TEXT + "qr",
    LONG_TEXT + "q\uffff",
]
STRINGS += [LONG_TEXT + "q\U0001f600", LONG_TEXT + "qrs", LONG_TEXT + "s", "\U0010ffff", "\uffff"]
MOMENTS = [datetime(2024, 1, 1, 0, 0, 0, micros) for micros in (0, 1, 500, 999, 1000, 1001, 1999, 2000)]
MOMENTS += [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1), datetime(2024, 1, 2)]
DOUBLES = [math.nan, -0.0, 0.0, 1.0, 1.5, 0.1, 2.0**53, 2.0**53 + 2, -1.0, math.inf, -math.inf, 1e300, 16777217.0]
FLOATS = [float(np.float32(value)) for value in DOUBLES if value != 1e300]
BIG = [Decimal(text) for text in ("0", "1.5", "12345678901234567.8901234567", "12345678901234567.8901234568")]
BIG += [Decimal(text) for text in ("12345678901234568", "-12345678901234567.8901234567", "999999999999999999999999999")]
VALUES: dict[str, list[Any]] = {
    "i": [-(2**31), -1, 0, 1, 2, 5, 2**31 - 1],
    "l": [-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1],
    "f": FLOATS,
    "d": DOUBLES,
    "s": STRINGS,
    "dt": [date(1969, 12, 31), date(2024, 1, 1), date(2024, 1, 2), date(2024, 2, 1)],
    "ts": [moment.replace(tzinfo=UTC) for moment in MOMENTS],
    "ntz": MOMENTS,
    "dec": [Decimal(text) for text in ("0.00", "1.50", "-1.50", "1.51", "99999999.99")],
    "big": BIG,
    "b": [True, False],
    "n.x": [-1, 0, 1, 2],
}


# ------------------------------------------------------------------------------------------- naive evaluation
def _key(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def naive(expression: Expression, row: dict[str, Any]) -> Any:
    """The value of an expression for one row, None for unknown; written apart from the code under test."""
    match expression:
        case Column(path):
            return row[".".join(path)]
        case Literal(value, _):
            return value
        case Cast(operand, target):
            value = naive(operand, row)
            if value is None or target == LARGE:
                return value
            return float(value) if target == DOUBLE else value.replace(tzinfo=None)
        case Comparison(op, left, right):
            a, b = naive(left, row), naive(right, row)
            if op == "<=>":
                return a is None and b is None if a is None or b is None else _key(a) == _key(b)
            if a is None or b is None:
                return None
            a, b = _key(a), _key(b)
            return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
        case And(operands):
            outcomes = [naive(o, row) for o in operands]
            return False if False in outcomes else None if None in outcomes else True
        case Or(operands):
            outcomes = [naive(o, row) for o in operands]
            return True if True in outcomes else None if None in outcomes else False
        case Not(operand):
            value = naive(operand, row)
            return None if value is None else not value
        case IsNull(operand):
            return naive(operand, row) is None
        case In(operand, values):
            return naive(Or(tuple(Comparison("=", operand, value) for value in values)), row)
        case StartsWith(operand, prefix):
            value = naive(operand, row)
            return None if value is None else value.startswith(prefix)
        case Call("year", (operand,), _):
            value = naive(operand, row)
            return None if value is None else value.year
        case Opaque():
            return None
    raise AssertionError(expression)


# ------------------------------------------------------------------------------------------------ predicates
@st.composite
def conditions(draw: st.DrawFn, opaque: bool = False) -> Expression:
    name = draw(st.sampled_from(sorted(COLUMNS)))
    column = COLUMNS[name]
    values = [Literal(value, column.type) for value in VALUES[name]]
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return IsNull(column)
    if kind == 1 and name == "s":
        text = draw(st.sampled_from(STRINGS))
        return StartsWith(column, text[: draw(st.integers(0, len(text)))])
    if kind == 2:
        chosen = draw(st.lists(st.sampled_from([*values, Literal(None, column.type)]), min_size=1, max_size=4))
        return In(column, tuple(chosen))
    if kind == 3 and name == "b":
        return column
    if kind == 4 and opaque:
        return Opaque("?")
    if kind == 5 and name in ("dt", "ts", "ntz"):
        op = draw(st.sampled_from(["=", "<", ">=", ">"]))
        return Comparison(
            op, Call("year", (column,), INTEGER), Literal(draw(st.sampled_from([1969, 1970, 2024])), INTEGER)
        )
    other = draw(st.sampled_from(sorted(COLUMNS))) if kind == 6 else name
    constant = draw(st.sampled_from([Literal(v, COLUMNS[other].type) for v in [*VALUES[other], None]]))
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
    try:
        return compare(op, column, constant, UTC)
    except NotExactError:
        return IsNull(column)


def predicates(opaque: bool = False) -> st.SearchStrategy[Expression]:
    def extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(And), several.map(Or), inner.map(Not))

    return st.recursive(conditions(opaque), extend, max_leaves=6)


rows = st.fixed_dictionaries({name: st.one_of(st.none(), st.sampled_from(values)) for name, values in VALUES.items()})


# ------------------------------------------------------------------------------------------------ statistics
def statistics(file: list[dict[str, Any]], style: str) -> dict[str, Any]:
    """Per-file statistics as one of four kinds of writer makes them."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for name in COLUMNS:
        present = [row[name] for row in file if row[name] is not None]
        nulls[name] = len(file) - len(present)
        if name in ("f", "d") and style == "footer":
            present = [value for value in present if not math.isnan(value)]
        if name == "b" or not present:
            low[name] = high[name] = None
            continue
        low[name], high[name] = _bound(min(present, key=_key), style, 0), _bound(max(present, key=_key), style, 1)
    if style == "wide":  # rows are deleted that the statistics still describe
        nulls = {name: count if count in (0, len(file)) else 1 for name, count in nulls.items()}
    return {"numRecords": len(file), "minValues": low, "maxValues": high, "nullCount": nulls}


def _bound(value: Any, style: str, upper: int) -> Any:
    if isinstance(value, datetime):
        return value - timedelta(microseconds=value.microsecond % 1000)
    if isinstance(value, str) and len(value) > 32:
        return value[:32] + ("\U0010ffff" if upper and style != "footer" else "")
    if isinstance(value, Decimal) and style == "footer":
        rounded = Decimal(repr(float(value)))
        return rounded.quantize(Decimal("1e-10") if value in BIG else Decimal("0.01"), context=Context(prec=60))
    return value


def _nested(values: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in values.items() if name != "n.x"}
    return {**plain, "n": {"x": values["n.x"]}}


def _stats_batch(statistics: dict[str, Any]) -> pa.RecordBatch:
    bounds = pa.struct([*((n, to_arrow(t)) for n, t in TYPES.items()), ("n", pa.struct([("x", pa.int32())]))])
    counts = pa.struct([*((n, pa.int64()) for n in TYPES), ("n", pa.struct([("x", pa.int64())]))])
    return pa.RecordBatch.from_arrays(
        [
            pa.array([statistics["numRecords"]], pa.int64()),
            pa.array([_nested(statistics["minValues"])], bounds),
            pa.array([_nested(statistics["maxValues"])], bounds),
            pa.array([_nested(statistics["nullCount"])], counts),
        ],
        ["numRecords", "minValues", "maxValues", "nullCount"],
    )


def data_batch(file: list[dict[str, Any]]) -> pa.RecordBatch:
    arrays = [pa.array([row[name] for row in file], to_arrow(t)) for name, t in TYPES.items()]
    arrays.append(pa.array([{"x": row["n.x"]} for row in file], pa.struct([("x", pa.int32())])))
    return pa.RecordBatch.from_arrays(arrays, [*TYPES, "n"])


def _chains(name: str) -> list[Expression]:
    """The column, and monotone functions of it."""
    column = COLUMNS[name]
    casts = {"ts": Cast(column, TIMESTAMP_NTZ), "f": Cast(column, DOUBLE), "dec": Cast(column, LARGE)}
    years = [Call("year", (column,), INTEGER)] if name in ("dt", "ts", "ntz") else []
    return [column, *([casts[name]] if name in casts else []), *years]


def _constants(operand: Expression) -> list[Literal]:
    match operand:
        case Column(path, data_type):
            return [Literal(value, data_type) for value in VALUES[".".join(path)]]
        case Cast(_, data_type) if data_type == TIMESTAMP_NTZ:
            return [Literal(value, data_type) for value in MOMENTS]
        case Cast(_, data_type):
            return [Literal(value, data_type) for value in (DOUBLES if data_type == DOUBLE else BIG)]
    return [Literal(year, INTEGER) for year in (1969, 1970, 2024)]


def _simple(name: str) -> Iterator[Expression]:
    for operand in _chains(name):
        constants = _constants(operand)
        for constant in constants:
            for op in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
                yield Comparison(op, operand, constant)
            yield Not(Comparison("<=>", operand, constant))
            yield Not(In(operand, (constant,)))
            yield And((Comparison(">", operand, constants[0]), Comparison("<", operand, constant)))
            yield And((Comparison(">=", operand, constant), Comparison("<=", operand, constants[0])))
        yield from (In(operand, pair) for pair in itertools.pairwise(constants))
    yield from (IsNull(COLUMNS[name]), Not(IsNull(COLUMNS[name])))
    if name == "s":
        yield from (StartsWith(COLUMNS[name], text[:end]) for text in STRINGS for end in range(1, len(text) + 1))


@pytest.mark.parametrize("style", ["reference", "footer"])
@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_c412_simple_conditions_on_every_pair_of_values(name: str, style: str) -> None:
    nothing: dict[str, Any] = dict.fromkeys(COLUMNS)
    pairs = itertools.combinations_with_replacement([*VALUES[name], None], 2)
    files = [[{**nothing, name: a}, {**nothing, name: b}] for a, b in pairs]
    tables = pa.Table.from_batches([_stats_batch(statistics(file, style)) for file in files])
    for condition in _simple(name):
        rewritten = split(condition, CONFIGURATION).stats
        if rewritten is None:
            continue
        for file, kept in zip(files, evaluate(rewritten, tables).to_pylist(), strict=True):
            assert kept is not False or not any(naive(condition, row) for row in file), (to_sql(condition), file)


SETTINGS = settings(max_examples=length(50, 2000), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(
    predicates(opaque=True),
    st.lists(rows, min_size=1, max_size=4),
    st.sampled_from(["reference", "footer", "wide"]),
    st.data(),
)
def test_c408_c414_skipping_never_loses_a_row(
    predicate: Expression, file: list[dict[str, Any]], style: str, data: st.DataObject
) -> None:
    described = file
    if style == "wide":  # some rows are deleted after the statistics were made
        kept = data.draw(st.lists(st.sampled_from(range(len(file))), min_size=1, unique=True))
        file = [file[index] for index in kept]
    matching = any(naive(predicate, row) is True for row in file)
    parts = split(predicate, CONFIGURATION)
    assert parts.partition is None or not matching
    if parts.stats is None:
        return
    outcome = evaluate(parts.stats, _stats_batch(statistics(described, style))).to_pylist()[0]
    if outcome is False:
        assert not matching, to_sql(parts.stats)


@SETTINGS
@given(predicates(opaque=True), st.lists(rows, min_size=1, max_size=3), st.sampled_from(["reference", "footer"]))
def test_c414_c416_conditions_on_partitions_and_statistics_never_lose_a_row(
    predicate: Expression, file: list[dict[str, Any]], style: str
) -> None:
    same = {name: file[0][name] for name in PARTITION_COLUMNS}
    file = [{**row, **same} for row in file]
    matching = any(naive(predicate, row) is True for row in file)
    partitions = {name: pa.array([value], to_arrow(TYPES[name])).dictionary_encode() for name, value in same.items()}
    parts = split(predicate, PARTITIONED)
    if parts.partition is not None and NEVER not in (parts.partition, parts.stats):
        assert kept_by_partition(parts.partition, partitions).to_pylist() == [True] or not matching
    if parts.stats is not None:
        batch = _stats_batch(statistics(file, style))
        assert kept_by_stats(parts.stats, batch, partitions).to_pylist() == [True] or not matching, to_sql(parts.stats)
    if parts.residual is None and parts.partition is not None and parts.partition != NEVER:  # nothing checks the rows
        assert kept_by_partition(parts.partition, partitions).to_pylist() == [matching]


@SETTINGS
@given(predicates(), st.lists(rows, min_size=1, max_size=4))
def test_evaluation_equals_a_naive_one(predicate: Expression, file: list[dict[str, Any]]) -> None:
    assert evaluate(predicate, data_batch(file)).to_pylist() == [naive(predicate, row) for row in file]


@SETTINGS
@given(predicates())
def test_text_reads_back(predicate: Expression) -> None:
    text = to_sql(predicate)
    again = parse_predicate(text, CONFIGURATION.schema)
    assert to_sql(again) == to_sql(parse_predicate(to_sql(again), CONFIGURATION.schema))
    row: dict[str, Any] = {name: values[0] for name, values in VALUES.items()}
    assert naive(again, row) == naive(predicate, row)


def test_skipping_does_skip() -> None:
    """The property would hold for a rewrite that keeps everything."""
    file = [dict.fromkeys(COLUMNS), {**dict.fromkeys(COLUMNS), "i": 5, "s": "m", "d": 1.5, "dt": date(2024, 1, 1)}]
    batch = _stats_batch(statistics(file, "reference"))
    for text in (
        "i > 5",
        "i < 5",
        "i = 4",
        "i <> 5",
        "i IN (1, 9)",
        "s > 'm'",
        "s LIKE 'n%'",
        "s LIKE 'l%'",
        "d BETWEEN 2 AND 3",
        "d < 1.5",
        "d = 2",
        "dt > '2024-01-01'",
        "dt < '2024-01-01'",
        "year(dt) = 2023",
        "l IS NOT NULL",
        "i <=> 4",
        "NOT (i <= 5 OR s = 'm')",
        "i = 5 AND d > 7 AND d < 9",
        "i NOT IN (5)",
        "i IN (3, 7)",
        "n.x is not null",
        "l <> l",
        "i = NULL",
    ):
        parts = split(parse_predicate(text, CONFIGURATION.schema), CONFIGURATION)
        dropped = parts.partition is not None or (
            parts.stats is not None and evaluate(parts.stats, batch).to_pylist() == [False]
        )
        assert dropped, text
