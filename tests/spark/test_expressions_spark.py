"""Conditions evaluated over Arrow against Spark's own results, and Catalyst's own text read back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import is_opaque, to_sql
from pyspark_delta.expressions.tree import Opaque
from pyspark_delta.schema.arrow import schema_from_arrow
from pyspark_delta.spark.conf.strings import as_read_here

NAN, INF = float("nan"), float("inf")
DOUBLES = [NAN, -0.0, 0.0, 0.1, 1.0, 1.5, 5.0, 5.5, -5.5, INF, -INF, 1e300, 2.0**53, None]
COUNT = len(DOUBLES)
STRINGS = ["", "a", "ab", "abc", "A", "é", "\uffff", "\U0001f600", "it's", "a\\b", "a%b", "zz", "5", None]
MOMENTS = [
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(1970, 1, 1),
    datetime(2024, 1, 1),
    datetime(2024, 1, 1, 0, 0, 0, 1),
    datetime(2024, 1, 1, 10),
    datetime(2024, 2, 29, 23, 59),
    datetime(2024, 12, 31),
    datetime(1900, 3, 1),
    datetime(1582, 10, 15),
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
    datetime(2023, 12, 31, 23),
    datetime(2024, 5, 15, 12, 30, 45, 123_456),
    None,
]
INTEGERS = [-(2**31), -6, -5, -1, 0, 1, 2, 3, 5, 6, 100, 2**24 + 1, 2**31 - 1, None]
LONGS = [-(2**63), -1, 0, 1, 5, 1000, 2**53, 2**53 + 1, 2**53 + 2, 2**62, 2**63 - 2, 2**63 - 1, 7, None]
DECIMALS = [
    None if v is None else Decimal(v)
    for v in (
        "0.00",
        "0.10",
        "1.50",
        "1.51",
        "-1.50",
        "5.00",
        "5.50",
        "99999999.99",
        "-99999999.99",
        "100.00",
        "0.01",
        "3.33",
        "7",
        None,
    )
]


def data() -> pa.Table:
    floats = [
        None if value is None else float(np.float32(min(value, 3e38) if value == 1e300 else value)) for value in DOUBLES
    ]
    return pa.table(
        {
            "b": pa.array([None if v is None else max(min(v, 127), -128) for v in INTEGERS], pa.int8()),
            "s": pa.array([None if v is None else max(min(v, 32767), -32768) for v in INTEGERS], pa.int16()),
            "i": pa.array(INTEGERS, pa.int32()),
            "l": pa.array(LONGS, pa.int64()),
            "f": pa.array(floats, pa.float32()),
            "d": pa.array(DOUBLES, pa.float64()),
            "dec": pa.array(DECIMALS, pa.decimal128(10, 2)),
            "big": pa.array(DECIMALS, pa.decimal128(38, 10)),
            "str": pa.array(STRINGS),
            "flag": pa.array([True, False] * ((COUNT - 1) // 2) + [None] * (COUNT - (COUNT - 1) // 2 * 2), pa.bool_()),
            "bin": pa.array([None if v is None else v.encode() for v in STRINGS], pa.binary()),
            "dt": pa.array([None if v is None else v.date() for v in MOMENTS], pa.date32()),
            "ts": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
            "ntz": pa.array(MOMENTS, pa.timestamp("us")),
            "st": pa.array(
                [None if v is None else {"b c": v % 7, "d": None} for v in INTEGERS],
                pa.struct([("b c", pa.int32()), ("d", pa.string())]),
            ),
            "row": pa.array(range(COUNT), pa.int32()),
        }
    )


TABLE = data()
SCHEMA = schema_from_arrow(TABLE.schema)

NUMBERS = [
    "5",
    "5L",
    "5.5",
    "-5.5",
    "5.0D",
    "5.5D",
    "0",
    "1.5BD",
    "1e3",
    "0.1",
    "0.1F",
    "'5'",
    "2147483648",
    "100Y",
    "300",
]
NUMBERS += [
    "9007199254740993",
    "9007199254740992.0D",
    "1.505",
    "16777217",
    "double('NaN')",
    "double('-Infinity')",
    "99999999999.5",
]
CONDITIONS = [
    f"{column} {op} {number}"
    for column in ("b", "s", "i", "l", "f", "d", "dec", "big")
    for number in NUMBERS
    for op in ("=", "<", ">=", "<=>")
]
CONDITIONS += [
    f"{column} {op} {moment}"
    for column in ("dt", "ts", "ntz")
    for moment in (
        "'2024-01-01'",
        "'2024'",
        "DATE '2024-01-01'",
        "TIMESTAMP '2024-01-01 10:00:00'",
        "'2024-01-01 00:00:00.000001'",
        "TIMESTAMP_NTZ '2024-01-01 00:00:00'",
        "TIMESTAMP '2024-01-01 00:00:00.0000019'",
        "DATE '0001-01-01'",
    )
    for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")
]
CONDITIONS += [
    f"str {op} {text}"
    for text in (
        "'a'",
        "''",
        r"'it\'s'",
        "'it''s'",
        r"'a\\b'",
        r"'\u00e9'",
        "'\U0001f600'",
        "'\uffff'",
        r"'a\%b'",
        r"'\101'",
        r"'\q'",
        "'a' 'b'",
    )
    for op in ("=", "<", ">", "<=>")
]
CONDITIONS += [
    "flag",
    "NOT flag",
    "flag = 'true'",
    "flag IS TRUE",
    "flag IS NOT TRUE",
    "flag IS FALSE",
    "flag <=> NULL",
    "i = NULL",
    "i IN (1, 2)",
    "i IN (1, NULL)",
    "i NOT IN (1, NULL)",
    "i IN (1.5, 2)",
    "d IN (0.0D, 'NaN')",
    "str IN ('a', 'é')",
    "dec IN (1, 1.5)",
    "dt IN ('2024-01-01', '1970-01-01')",
    "str LIKE 'a%'",
    "str LIKE '%'",
    "str NOT LIKE 'ab%'",
    "str LIKE 'ab'",
    "i BETWEEN 1 AND 5",
    "NOT (i > 1 OR d < 5)",
    "i > 1 AND (flag OR str = 'a')",
    "i IS DISTINCT FROM 5",
    "isnan(d)",
    "st.`b c` = 1",
    "st.d IS NULL",
    "st IS NULL",
    "i = l",
    "i < d",
    "f = d",
    "dec >= big",
    "dt = ts",
    "b + s > 5",
    "l - 1 < 0 AND l > 0",
    "year(ts) = 2024",
    "year(dt) < 1900",
    "month(ntz) = 2",
    "day(dt) = 31",
    "hour(ts) >= 10",
    "quarter(dt) = 1",
    "minute(ts) = 59",
    "date_trunc('MONTH', ts) = TIMESTAMP '2024-02-01'",
    "date_trunc('WEEK', ts) < TIMESTAMP '1970-01-01'",
    "date_trunc('YEAR', ts) >= TIMESTAMP '1969-01-01'",
    "date_trunc('QUARTER', ts) = TIMESTAMP '2024-01-01'",
    "date_trunc('HOUR', ts) = TIMESTAMP '1969-12-31 23:00:00'",
    "date_trunc('DAY', ts) <= TIMESTAMP '1582-10-15'",
    "trunc(dt, 'MM') = DATE '2024-02-01'",
    "trunc(dt, 'WEEK') = DATE '2024-01-01'",
    "trunc(dt, 'DD') IS NULL",
    "CAST(ts AS DATE) = DATE '1969-12-31'",
    "date(ts) < '1970-01-01'",
    "to_date(ts) = '2024-01-01'",
    "CAST(i AS STRING) = '5'",
    "length(str) = 2",
    "length(bin) > 2",
    "substring(str, 2, 1) = 'b'",
    "substring(str, 0, 2) = 'ab'",
    "substr(str, 2) = 'bc'",
    "substring(str, 1, -1) = ''",
    "coalesce(i, 0) = 0",
    "coalesce(d, i) > 1",
    "nvl(str, 'x') = 'x'",
    "abs(d) = 5.5",
    "abs(l + 1) = 6",
    "bin = X'61'",
    "bin > X'C3'",
    "CAST(dec AS DOUBLE) = 0.1D",
    "CAST(big AS DOUBLE) > 3.33D",
    "CAST(l AS DOUBLE) = 9007199254740992.0D",
    "true",
    "i = 1 OR NULL",
    "CAST(f AS DOUBLE) > 0.1D",
    "i > 5 <=> true",
    "(i > 5) = flag",
    "-i > 3 AND i > -100",
    "i % 5 = -1",
    "l % 1000 = 7 OR l % 7S = -2",
    "mod(b, 2) = 1 AND s % 3 <> 0",
    "(i - 1) % 4 = 1",
]


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    folder: Path = tmp_path_factory.mktemp("expressions")
    pq.write_table(TABLE, folder / "rows.parquet")
    before = {key: spark.conf.get(key, None) for key in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")}
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    yield spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(str(folder)).coalesce(1).cache()
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def test_evaluation_gives_what_spark_gives(rows: DataFrame) -> None:
    """Every condition, true, false and unknown, on every row; in a few jobs, as a job costs more than a condition."""
    spark = rows.sparkSession
    bound = {text: parse_predicate(as_read_here(spark, text), SCHEMA, on_opaque="keep") for text in CONDITIONS}
    known = [text for text, expression in bound.items() if not is_opaque(expression)]
    assert len(known) > 0.8 * len(CONDITIONS)
    wrong: list[Any] = []
    for start in range(0, len(known), 150):
        chunk = known[start : start + 150]
        found = rows.orderBy("row").selectExpr(*(f"({text}) AS c{n}" for n, text in enumerate(chunk))).collect()
        for n, text in enumerate(chunk):
            theirs = [row[n] for row in found]
            ours = evaluate(bound[text], TABLE).to_pylist()
            if ours != theirs:
                wrong.append(
                    (
                        text,
                        to_sql(bound[text]),
                        [(r, o, t) for r, (o, t) in enumerate(zip(ours, theirs, strict=True)) if o != t],
                    )
                )
    assert not wrong, wrong[:10]


def test_catalyst_text_means_the_same(rows: DataFrame) -> None:
    """The optimized filter, as `FileIndex.listFiles` gets it: each conjunct is kept Opaque or gives Spark's rows."""
    wrong: list[Any] = []
    opaque = 0
    known = [text for text in CONDITIONS if not is_opaque(parse_predicate(text, SCHEMA, on_opaque="keep"))][::7]
    for text in known:
        for plan in ("analyzed", "optimizedPlan"):
            node = getattr(rows.where(text)._jdf.queryExecution(), plan)()
            if node.nodeName() != "Filter":
                continue
            pushed = node.expressions().head().sql()
            expression = parse_predicate(pushed, SCHEMA, on_opaque="keep")
            if is_opaque(expression):
                opaque += isinstance(expression, Opaque)
                continue
            ours = [outcome is True for outcome in evaluate(expression, TABLE).to_pylist()]
            direct = [outcome is True for outcome in evaluate(parse_predicate(text, SCHEMA), TABLE).to_pylist()]
            if ours != direct:
                wrong.append((text, pushed, to_sql(expression)))
    assert not wrong, wrong
    assert opaque < len(known) / 5


def test_days_are_dates() -> None:
    assert TABLE["dt"].to_pylist()[0] == date(1969, 12, 31)
