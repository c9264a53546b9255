"""SQL text to bound expressions: names, literals, coercion, and what is refused or kept as Opaque."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from pyspark_delta.errors import InvalidOptionError, InvalidPredicateError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import columns_of, conjuncts, is_opaque, to_sql
from pyspark_delta.expressions.tree import Column, Comparison, In, Literal, Opaque, StartsWith
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
)

INNER = StructType((StructField("b c", INTEGER), StructField("d", STRING)))
SCHEMA = StructType(
    (
        StructField("b", BYTE),
        StructField("s", SHORT),
        StructField("i", INTEGER),
        StructField("l", LONG),
        StructField("f", FLOAT),
        StructField("d", DOUBLE),
        StructField("dec", DecimalType(10, 2)),
        StructField("str", STRING),
        StructField("flag", BOOLEAN),
        StructField("bin", BINARY),
        StructField("dt", DATE),
        StructField("ts", TIMESTAMP),
        StructField("ntz", TIMESTAMP_NTZ),
        StructField("Mixed Case", INTEGER),
        StructField("st", INNER),
        StructField("arr", ArrayType(INTEGER)),
        StructField("iv", DAY_TIME_INTERVAL),
        StructField("nothing", VOID),
        StructField("folded", STRING, metadata={"__COLLATIONS": {"folded": "spark.UTF8_LCASE"}}),
        StructField("code", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}),
    )
)


def bound(text: str, **options: Any) -> str:
    return to_sql(parse_predicate(text, SCHEMA, **options))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # names
        ("I = 5", "i = 5"),
        ("`mixed case` > 1", "`Mixed Case` > 1"),
        ("ST.`B C` = 1", "st.`b c` = 1"),
        # integers: constants of other types are compared exactly, never cut
        ("i = 5L", "i = 5"),
        ("i > 5.5", "i > 5"),
        ("i >= 5.5", "i > 5"),
        ("i < 5.5", "i <= 5"),
        ("i <= -5.5", "i <= -6"),
        ("i = 5.5", "i <> i"),
        ("i <> 5.5", "i = i"),
        ("i <=> 5.5", "FALSE"),
        ("i = 5.0", "i = 5"),
        ("i = '5'", "i = 5"),
        ("i = ' 5 '", "i = 5"),
        ("5 < i", "i > 5"),
        ("b > 1000", "b <> b"),
        ("b < 1000", "b = b"),
        ("b > -1000", "b = b"),
        ("i < double('NaN')", "i = i"),
        ("l = 1e3", "l = 1000L"),
        ("l > 9223372036854775808.5", "l <> l"),
        ("l > 1e17", "CAST(l AS DOUBLE) > 1e+17D"),  # compared as doubles, as Spark does
        ("b = -128Y", "b = -128Y"),
        # fractions
        ("d > 5", "d > 5.0D"),
        ("d = 'NaN'", "d = CAST('nan' AS DOUBLE)"),
        ("d = '-Infinity'", "d = CAST('-inf' AS DOUBLE)"),
        ("d = 1.50BD", "d = 1.5D"),
        ("f = 1.5", "f = CAST('1.5' AS FLOAT)"),
        ("f > 0.1", "CAST(f AS DOUBLE) > 0.1D"),
        ("f = 0.1F", "f = CAST('0.1' AS FLOAT)"),
        ("dec = 1.5", "dec = 1.50BD"),
        ("dec = 1", "dec = 1.00BD"),
        ("dec > 1.555", "dec > 1.55BD"),
        ("dec = 1.555", "dec <> dec"),
        ("dec < 1e3", "CAST(dec AS DOUBLE) < 1000.0D"),
        # text
        ("str = 'it''s'", "str = 'it\\'s'"),
        ('str = "double"', "str = 'double'"),
        (r"str = 'a\\b\u0041\n'", "str = 'a\\\\bA\n'"),
        ("str LIKE 'ab%'", "startswith(str, 'ab')"),
        ("str LIKE 'ab'", "str = 'ab'"),
        ("str NOT LIKE 'ab%'", "NOT (startswith(str, 'ab'))"),
        ("startswith(str, 'ab')", "startswith(str, 'ab')"),
        ("bin = X'0AFF'", "bin = X'0AFF'"),
        ("flag", "flag"),
        ("flag = 'yes'", "flag = TRUE"),
        ("flag IS NOT TRUE", "NOT (flag <=> TRUE)"),
        # times
        ("dt = '2024-01-01'", "dt = DATE '2024-01-01'"),
        ("dt >= '2024-02'", "dt >= DATE '2024-02-01'"),
        ("dt > TIMESTAMP '2024-01-01 10:00:00'", "dt > DATE '2024-01-01'"),
        ("dt >= TIMESTAMP '2024-01-01 10:00:00'", "dt > DATE '2024-01-01'"),
        ("dt < TIMESTAMP '2024-01-01 10:00:00'", "dt <= DATE '2024-01-01'"),
        ("dt < TIMESTAMP '2024-01-01 00:00:00'", "dt < DATE '2024-01-01'"),
        ("dt = TIMESTAMP '2024-01-01 10:00:00'", "dt <> dt"),
        ("ts = '2024-01-01'", "ts = TIMESTAMP '2024-01-01 00:00:00Z'"),
        ("ts = '2024-01-01 01:02:03.1234567+02:00'", "ts = TIMESTAMP '2023-12-31 23:02:03.123456Z'"),
        ("ts = '2024-01-01T01:02:03Z'", "ts = TIMESTAMP '2024-01-01 01:02:03Z'"),
        ("ts = DATE '2024-01-01'", "ts = TIMESTAMP '2024-01-01 00:00:00Z'"),
        ("ntz = '2024-01-01 01:00:00'", "ntz = TIMESTAMP_NTZ '2024-01-01 01:00:00'"),
        ("CAST(ts AS DATE) = '2024-01-01'", "CAST(ts AS DATE) = DATE '2024-01-01'"),
        ("year(ts) = 2024", "year(ts) = 2024"),
        # logic
        ("i BETWEEN 1 AND 2 AND i <> 5", "i >= 1 AND i <= 2 AND i <> 5"),
        ("i = 1 OR i = 2 AND flag", "i = 1 OR (i = 2 AND flag)"),
        ("i IN (1, 2.0, '3')", "i IN (1, 2, 3)"),
        ("i IN (1, NULL)", "i IN (1, NULL)"),
        ("i IN (1.5, 2)", "i <> i OR i = 2"),
        ("i = NULL", "NULL"),
        ("i <=> NULL", "i IS NULL"),
        ("i IS DISTINCT FROM 5", "NOT (i <=> 5)"),
        ("isnan(d)", "d <=> CAST('nan' AS DOUBLE)"),
        ("nothing = 1", "NULL"),
        ("coalesce(i, 0) + 1 > 5", "(coalesce(i, 0) + 1) > 5"),
    ],
)
def test_conditions_are_bound_and_typed_as_spark_does(text: str, expected: str) -> None:
    assert bound(text) == expected
    assert bound(expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(l > 5L)", "l > 5L"),
        ("((b IS NOT NULL) AND (b = 5Y))", "b IS NOT NULL AND b = 5Y"),
        ("(NOT ((str = 'a') OR (i = 3)))", "NOT (str = 'a' OR i = 3)"),
        ("isnotnull(str)", "str IS NOT NULL"),
        ("(d = CAST('Infinity' AS DOUBLE))", "d = CAST('inf' AS DOUBLE)"),
        ("(f >= CAST('0.1' AS FLOAT))", "f >= CAST('0.1' AS FLOAT)"),
        ("(dec IN (1.00BD, 2.50BD))", "dec IN (1.00BD, 2.50BD)"),
        ("(i IN (1, CAST(NULL AS INT), 3))", "i IN (1, NULL, 3)"),
        ("(CAST(i AS BIGINT) = CAST('5' AS BIGINT))", "i = 5"),
        ("(CAST(CAST(l AS DECIMAL(20,0)) AS DECIMAL(21,1)) = CAST(5.5BD AS DECIMAL(21,1)))", "l <> l"),
        ("(CAST(dt AS TIMESTAMP) > TIMESTAMP '2024-01-01 10:00:00')", "dt > DATE '2024-01-01'"),
        ("(st.`b c` = 1)", "st.`b c` = 1"),
        ("(spark_catalog.default.t.l > 5L)", "l > 5L"),
        ("(ts >= TIMESTAMP '2024-01-01 00:00:00.123456')", "ts >= TIMESTAMP '2024-01-01 00:00:00.123456Z'"),
        ("((i > 1) <=> true)", "(i > 1) <=> TRUE"),
        (r"(str = 'a\'b')", r"str = 'a\'b'"),
    ],
)
def test_catalyst_text_is_read(text: str, expected: str) -> None:
    assert bound(text, on_opaque="keep") == expected


@pytest.mark.parametrize(
    "text",
    [
        "soundex(str) = 'a'",
        "exp(d) > 1",
        r"str LIKE 'a\\b'",
        r"str RLIKE '\\bx'",
        "str RLIKE '(?i)x'",
        "str RLIKE 'a*+'",
        "CAST(d AS STRING) = '5'",
        "TRY_CAST(str AS INT) = 5",
        "d % 2 = 0",
        "i & 1 | 2 = 0",  # grouped in another way by the parser
        "str || i + 1 = 'a'",
        "round(d, 2) = 1",
        "split(str, '[,]') IS NULL",
        "folded || 'a' = 'a'",
        "lower(str, 'a') = 'a'",
        "iv > INTERVAL '1' DAY",
        "i IN (SELECT 1)",
        "CASE WHEN flag THEN 1 ELSE 'a' END = 1",
        "folded = 'a'",
        "folded LIKE 'a%'",
        "folded IN ('a')",
        "code LIKE 'ab%'",
        "i = 'x'",
        "i = '5.5'",
        "i = '3000000000'",
        "f = '0.1'",
        "dt = '2024-13-01'",
        "dt > DATE '-0001-01-01'",
        "ntz = '2024-01-01 00:00:00Z'",
        "bin = 'abc'",
        "flag = 1",
        "st = named_struct('b c', 1)",
        "arr = array(1)",
    ],
)
def test_what_has_no_exact_evaluation_is_refused_or_kept(text: str) -> None:
    with pytest.raises(InvalidPredicateError, match="Cannot evaluate"):
        parse_predicate(text, SCHEMA)
    assert isinstance(parse_predicate(text, SCHEMA, on_opaque="keep"), Opaque)
    mixed = parse_predicate(f"i = 1 AND ({text})", SCHEMA, on_opaque="keep")
    assert conjuncts(mixed)[0] == parse_predicate("i = 1", SCHEMA)
    assert is_opaque(mixed)


@pytest.mark.parametrize(
    "text",
    ["((i + 1) > 5)", "(i % i) = 0", "lower(str) = 'a'", "CAST(str AS INT) = 5", "element_at(arr, 1) = 1", "1 / i > 2"],
)
def test_what_may_fail_is_left_to_spark_in_text_of_catalyst(text: str) -> None:
    """A failure would end a query whose settings of the session give null, or whose rows other filters remove."""
    assert isinstance(parse_predicate(text, SCHEMA, on_opaque="keep"), Opaque)
    assert not is_opaque(parse_predicate(text, SCHEMA))


def test_unknown_functions_name_those_that_work() -> None:
    with pytest.raises(InvalidPredicateError, match=r"does not compute regexp_extract_all.*regexp_extract, regexp_"):
        parse_predicate("regexp_extract_all(str, 'a') IS NULL", SCHEMA)
    with pytest.raises(InvalidPredicateError, match=r"does not compute levenshtein\(\.\.\.\) exactly as Spark does"):
        parse_predicate("levenshtein(str, 'a') = 1", SCHEMA)
    with pytest.raises(InvalidPredicateError, match=r"knows no such function of Spark; .* upper"):
        parse_predicate("uper(str) = 'A'", SCHEMA)


def test_collated_columns_may_be_null() -> None:
    assert bound("folded IS NULL") == "folded IS NULL"


def test_unknown_columns_are_named_with_a_suggestion() -> None:
    with pytest.raises(InvalidPredicateError, match=r"no column 'strr'.*Did you mean 'str'"):
        parse_predicate("strr = 'a'", SCHEMA)
    with pytest.raises(InvalidPredicateError, match=r"no column 'st.e'.*Did you mean.*'st.d'"):
        parse_predicate("st.e = 'a'", SCHEMA)
    assert parse_predicate("strr = 'a'", SCHEMA, on_opaque="keep") == Opaque("strr = 'a'")


@pytest.mark.parametrize(("text", "position"), [("i >", "line 1, column 3"), ("i > 3 )", "line 1, column 7")])
def test_syntax_errors_say_where(text: str, position: str) -> None:
    with pytest.raises(InvalidPredicateError, match=position):
        parse_predicate(text, SCHEMA)
    assert parse_predicate(text, SCHEMA, on_opaque="keep") == Opaque(text)


@pytest.mark.parametrize("text", ["", " ", "SELECT 1", "i = 1; i = 2", "i > 3 x", "DROP TABLE t", "i", "(i, 1)"])
def test_only_a_condition_is_a_condition(text: str) -> None:
    with pytest.raises(InvalidPredicateError):
        parse_predicate(text, SCHEMA)
    assert isinstance(parse_predicate(text, SCHEMA, on_opaque="keep"), Opaque)


def test_a_name_that_is_an_alias_or_a_struct_is_opaque_in_pushed_text() -> None:
    schema = StructType((StructField("a", StructType((StructField("b", INTEGER),))), StructField("b", INTEGER)))
    assert isinstance(parse_predicate("(a.b = 1)", schema, on_opaque="keep"), Opaque)
    field = parse_predicate("(a.`b` = 1)", schema, on_opaque="keep")  # how Spark writes a field of a struct
    assert columns_of(field) == (Column(("a", "b"), INTEGER),)
    assert columns_of(parse_predicate("a.b = 1", schema)) == (Column(("a", "b"), INTEGER),)


def test_timestamps_are_of_the_session_time_zone() -> None:
    expected = Literal(datetime(2024, 6, 30, 22, tzinfo=UTC), TIMESTAMP)
    for text in ("ts >= '2024-07-01'", "ts >= TIMESTAMP '2024-07-01'", "ts >= DATE '2024-07-01'"):
        parsed = parse_predicate(text, SCHEMA, time_zone="Europe/Berlin")
        assert isinstance(parsed, Comparison)
        assert parsed.right == expected
    assert bound("ts > '2024-07-01'", time_zone="+02:00") == "ts > TIMESTAMP '2024-06-30 22:00:00Z'"
    assert bound("dt >= TIMESTAMP '2024-07-01 00:00:00'", time_zone="Europe/Berlin") == "dt >= DATE '2024-07-01'"
    with pytest.raises(InvalidOptionError, match="not a time zone"):
        parse_predicate("i = 1", SCHEMA, time_zone="Mars/Olympus")


def test_a_local_time_that_happens_twice_is_not_guessed() -> None:
    text = "ts = '2024-10-27 02:30:00'"
    assert isinstance(parse_predicate(text, SCHEMA, time_zone="Europe/Berlin", on_opaque="keep"), Opaque)
    with pytest.raises(InvalidPredicateError, match="occurs twice"):
        parse_predicate(text, SCHEMA, time_zone="Europe/Berlin")
    assert bound("ts = '2024-10-27 02:30:00+02:00'", time_zone="Europe/Berlin")


@pytest.mark.parametrize(
    "text", ["year(ts) = 2024", "CAST(ts AS DATE) = DATE '2024-01-01'", "ntz > TIMESTAMP '2024-01-01'"]
)
def test_zone_dependent_functions_are_evaluated_in_utc_only(text: str) -> None:
    assert not is_opaque(parse_predicate(text, SCHEMA, on_opaque="keep"))
    assert is_opaque(parse_predicate(text, SCHEMA, on_opaque="keep", time_zone="Europe/Berlin"))


def test_values_are_python_values_of_their_type() -> None:
    cases: list[tuple[str, Any, DataType]] = [
        ("i = 5", 5, INTEGER),
        ("dec = 1.5", Decimal("1.50"), DecimalType(10, 2)),
        ("dt = '2024-01-31'", date(2024, 1, 31), DATE),
        ("ntz = '2024-01-31 01:02:03.5'", datetime(2024, 1, 31, 1, 2, 3, 500_000), TIMESTAMP_NTZ),
        ("bin = X'00'", b"\0", BINARY),
    ]
    for text, value, data_type in cases:
        parsed = parse_predicate(text, SCHEMA)
        assert isinstance(parsed, Comparison)
        assert parsed.right == Literal(value, data_type)
    nan = parse_predicate("d = 'NaN'", SCHEMA)
    assert isinstance(nan, Comparison)
    assert isinstance(nan.right, Literal)
    assert math.isnan(nan.right.value)


def test_long_chains_and_lists() -> None:
    chain = parse_predicate(" OR ".join(f"i = {n}" for n in range(3000)), SCHEMA, on_opaque="keep")
    assert len(columns_of(chain)) == 1
    listed = parse_predicate(f"i IN ({', '.join(map(str, range(5000)))})", SCHEMA)
    assert isinstance(listed, In)
    assert len(listed.values) == 5000


def test_prefixes() -> None:
    assert parse_predicate("str LIKE '%'", SCHEMA) == StartsWith(Column(("str",), STRING), "")
