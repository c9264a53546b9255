"""Every function and cast that Arrow computes, against Spark: types and values, bit by bit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.function_cases import CASES, CASTS, FAILURES, IN_ZONE, table

from pyspark_delta.errors import ComputationError
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.literals import zone_of
from pyspark_delta.expressions.sql import Binder
from pyspark_delta.expressions.syntax import parse
from pyspark_delta.schema.arrow import schema_from_arrow, to_arrow
from pyspark_delta.spark.conf.classes import has_classic_package
from pyspark_delta.spark.conf.conditions import condition_of

TABLE = table().combine_chunks()
SCHEMA = schema_from_arrow(TABLE.schema)
ROWS = TABLE.to_batches()[0]
ZONE = "Europe/Berlin"
AT_ONCE = 80
NO_CODE = "spark.sql.codegen.factoryMode"


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    folder: Path = tmp_path_factory.mktemp("functions")
    pq.write_table(TABLE, folder / "rows.parquet")
    names = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", NO_CODE)
    before = {key: spark.conf.get(key, None) for key in names}
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set(NO_CODE, "NO_CODEGEN")  # compiling code for each expression takes longer than a few rows
    yield spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(str(folder)).coalesce(1).cache()
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def ours(text: str, zone: str = "UTC") -> pa.Array:
    binder = Binder(text, SCHEMA, zone_of(zone), keep=False)
    return compute(binder.value(parse(text)), ROWS)


def exact(value: Any) -> Any:
    """Return a value that is equal only to the same value: NaN to itself, and -0.0 to itself alone."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1.0, value))
    if isinstance(value, list):
        return [exact(inner) for inner in value]
    return value


def differences(rows: DataFrame, texts: Sequence[str], zone: str = "UTC") -> list[Any]:
    wrong: list[Any] = []
    for start in range(0, len(texts), AT_ONCE):
        chunk = texts[start : start + AT_ONCE]
        theirs = rows.orderBy("row").selectExpr(*(f"({text}) AS c{n}" for n, text in enumerate(chunk))).toArrow()
        for n, text in enumerate(chunk):
            try:
                found = ours(text, zone)
            except Exception as error:
                wrong.append((text, repr(error)))
                continue
            expected = theirs.column(n)
            if pa.types.is_timestamp(expected.type) and expected.type.tz:
                expected = expected.cast(pa.timestamp("us", "UTC"))
            spark_type = to_arrow(schema_from_arrow(pa.schema([("c", expected.type)])).fields[0].type)
            if not pa.types.is_nested(found.type) and found.type != spark_type:
                wrong.append((text, str(found.type), str(spark_type)))
            if pa.types.is_date(found.type):  # also those after the year 9999
                found, expected = found.cast(pa.int32()), expected.cast(pa.int32())
            pairs = zip(exact(found.to_pylist()), exact(expected.to_pylist()), strict=True)
            wrong += [(text, row, mine, its) for row, (mine, its) in enumerate(pairs) if mine != its]
    return wrong


def known_cases(rows: DataFrame) -> list[str]:
    """The cases that a release knows: 3.5 has fewer functions, and neither `<<` nor `>>`."""
    texts = [text for texts in CASES.values() for text in texts]
    known = texts if has_classic_package() else [text for text in texts if is_known(rows, text)]
    assert len(known) > 0.9 * len(texts)
    return known


def is_known(rows: DataFrame, text: str) -> bool:
    try:
        rows.selectExpr(text)
    except AnalysisException as error:
        if condition_of(error) not in ("PARSE_SYNTAX_ERROR", "UNRESOLVED_ROUTINE"):
            raise
        return False
    return True


def test_functions_give_what_spark_gives(rows: DataFrame) -> None:
    wrong = differences(rows, known_cases(rows))
    assert not wrong, wrong


def test_casts_give_what_spark_gives(rows: DataFrame) -> None:
    wrong = differences(rows, CASTS)
    assert not wrong, wrong


def test_functions_of_the_session_time_zone(spark: SparkSession, rows: DataFrame) -> None:
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    try:
        wrong = differences(rows, IN_ZONE, ZONE)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert not wrong, wrong


@pytest.mark.since("4.2")
def test_what_fails_in_spark_fails(rows: DataFrame) -> None:
    for text in FAILURES:
        with pytest.raises(ComputationError):
            ours(text)
        with pytest.raises(PySparkException):
            rows.selectExpr(text).collect()
