"""Splitting predicates for partition values, statistics and rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow as pa
import pytest

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import columns_of, to_sql
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.bounds import NEVER, successor
from pyspark_delta.scan.skipping import Split, plan_skipping, split


def field(name: str, data_type: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def mapped(name: str, data_type: Any, number: int) -> dict[str, Any]:
    keys = {"delta.columnMapping.physicalName": f"col-{number}", "delta.columnMapping.id": number}
    return {"name": name, "type": data_type, "nullable": True, "metadata": keys}


def configuration(
    fields: list[dict[str, Any]], partitions: tuple[str, ...] = (), properties: Mapping[str, str] | None = None
) -> TableConfiguration:
    schema = orjson.dumps({"type": "struct", "fields": fields}).decode()
    metadata = Metadata(id="t", schema_string=schema, partition_columns=partitions, configuration=properties or {})
    return TableConfiguration(Protocol(min_reader_version=2, min_writer_version=5), metadata)


PLAIN = configuration(
    [
        field("id", "long"),
        field("name", "string"),
        field("price", "double"),
        field("ratio", "float"),
        field("at", "timestamp"),
        field("local", "timestamp_ntz"),
        field("day", "date"),
        field("amount", "decimal(10,2)"),
        field("flag", "boolean"),
        field("raw", "binary"),
        field("tags", {"type": "array", "elementType": "string", "containsNull": True}),
        field("a", {"type": "struct", "fields": [field("b", {"type": "struct", "fields": [field("c", "long")]})]}),
        field("folded", "string", __COLLATIONS={"folded": "spark.UTF8_LCASE"}),
        field("grown", "double", **{"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}),
        field("Part", "string"),
        field("month", "integer"),
        field("label", "string", __COLLATIONS={"label": "icu.UNICODE_CI"}),
    ],
    partitions=("Part", "month", "label"),
)


def parts(text: str, config: TableConfiguration = PLAIN) -> tuple[str | None, str | None, str | None]:
    predicate = parse_predicate(text, config.schema, on_opaque="keep")
    return tuple(None if part is None else to_sql(part) for part in split(predicate, config))  # type: ignore[return-value]


def stats(text: str, config: TableConfiguration = PLAIN) -> str | None:
    return parts(text, config)[1]


# --------------------------------------------------------------------------------------------------- rewriting
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id > 5", "maxValues.id > 5L"),
        ("id >= 5", "maxValues.id >= 5L"),
        ("id < 5", "minValues.id < 5L"),
        ("id <= 5", "minValues.id <= 5L"),
        ("id = 5", "minValues.id <= 5L AND maxValues.id >= 5L"),
        ("id <=> 5", "minValues.id <= 5L AND maxValues.id >= 5L"),
        ("id <> 5", "minValues.id < 5L OR maxValues.id > 5L"),
        ("NOT (id > 5)", "minValues.id <= 5L"),
        ("NOT (id <=> 5)", "minValues.id < 5L OR maxValues.id > 5L OR nullCount.id > 0L"),
        ("id IS NULL", "nullCount.id > 0L"),
        ("id IS NOT NULL", "nullCount.id < numRecords"),
        ("id <=> NULL", "nullCount.id > 0L"),
        ("flag", "nullCount.flag < numRecords"),
        ("NOT flag", "nullCount.flag < numRecords"),
        ("id IN (7)", "minValues.id <= 7L AND maxValues.id >= 7L"),
        (
            "id IN (9, 7, NULL)",
            (
                "minValues.id <= 9L AND maxValues.id >= 7L AND "
                "((minValues.id <= 7L AND maxValues.id >= 7L) OR (minValues.id <= 9L AND maxValues.id >= 9L))"
            ),
        ),
        ("id NOT IN (7)", "minValues.id < 7L OR maxValues.id > 7L"),
        ("name LIKE 'ab%'", "minValues.name < 'ac' AND maxValues.name >= 'ab'"),
        ("name LIKE '%'", "nullCount.name < numRecords"),
        ("id > 5 AND name = 'x'", "maxValues.id > 5L AND minValues.name <= 'x' AND maxValues.name >= 'x'"),
        ("id > 5 OR id < 2", "maxValues.id > 5L OR minValues.id < 2L"),
        ("NOT (id > 5 OR name >= 'x')", "minValues.id <= 5L AND minValues.name < 'x'"),
        ("id > 5 AND lower(name) = 'x'", "maxValues.id > 5L"),
        ("id > 5 OR lower(name) = 'x'", None),
        ("(id > 5) <=> true", "maxValues.id > 5L"),
        ("id > 5.5", "maxValues.id > 5L"),
        ("id = 5.5", "FALSE"),
        ("a.b.c = 1", "minValues.a.b.c <= 1L AND maxValues.a.b.c >= 1L"),
        ("year(day) = 2024", "year(minValues.day) <= 2024 AND year(maxValues.day) >= 2024"),
        ("amount > 1.5", "maxValues.amount > 1.50BD"),
    ],
)
def test_c407_c408_conditions_become_conditions_on_bounds(text: str, expected: str | None) -> None:
    assert stats(text) == expected


def test_c412_a_timestamp_maximum_stands_for_its_whole_millisecond() -> None:
    assert stats("at > '2024-01-01'") == "maxValues.at > TIMESTAMP '2023-12-31 23:59:59.999000Z'"
    assert stats("local >= '2024-01-01'") == "maxValues.local >= TIMESTAMP_NTZ '2023-12-31 23:59:59.999000'"
    assert stats("at < '2024-01-01'") == "minValues.at < TIMESTAMP '2024-01-01 00:00:00Z'"
    assert stats("at <> '2024-01-01'") is None  # equal bounds still leave a millisecond
    cut = datetime(2024, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
    assert _kept("at = '2024-01-01 00:00:00.123999'", minValues={"at": cut}, maxValues={"at": cut})
    assert not _kept("at = '2024-01-01 00:00:00.125'", minValues={"at": cut}, maxValues={"at": cut})


def test_c412_a_cut_string_maximum_may_lie_below_the_real_one() -> None:
    text = "x" * 40
    assert stats(f"name > '{text}'") == f"maxValues.name >= '{text[:32]}'"
    assert stats(f"name > '{text[:31]}'") == f"maxValues.name > '{text[:31]}'"
    assert stats(f"name <> '{text[:32]}'") is None
    assert _kept(f"name = '{text}'", minValues={"name": text[:32]}, maxValues={"name": text[:32]})
    shorter = configuration([field("name", "string")], properties={"delta.dataSkippingStringPrefixLength": "4"})
    assert stats("name > 'abcdef'", shorter) == "maxValues.name >= 'abcd'"


def test_a_maximum_says_nothing_of_nan() -> None:
    assert stats("price > 5") is None
    assert stats("price >= 5") is None
    assert stats("NOT (price < 5)") is None
    assert stats("price <> 5") is None
    assert stats("price = 'NaN'") == "minValues.price <= CAST('nan' AS DOUBLE)"
    assert stats("price < 5") == "minValues.price < 5.0D"
    assert stats("price BETWEEN 5 AND 6") == "maxValues.price >= 5.0D AND minValues.price <= 6.0D"
    assert stats("price > 5 AND price < 'NaN'") == "maxValues.price > 5.0D AND minValues.price < CAST('nan' AS DOUBLE)"
    assert stats("price > 5 AND price <= 'NaN'") == "minValues.price <= CAST('nan' AS DOUBLE)"
    assert stats("ratio > 0.1 AND ratio < 0.2") is not None
    assert stats("price > 5 OR price < 2") is None


def test_c411_c414_missing_statistics_keep_the_file() -> None:
    for text in ("id > 5", "id = 5", "id <> 5", "id IN (1, 2)", "id IS NULL", "id IS NOT NULL", "name LIKE 'a%'"):
        assert _kept(text)


def test_c406_c409_c410_wide_bounds_need_no_other_rewriting() -> None:
    for tight in (True, False, None):
        some = {"tightBounds": tight, "numRecords": 10}
        assert not _kept("id IS NULL", nullCount={"id": 0}, **some)
        assert _kept("id IS NULL", nullCount={"id": 3}, **some)
        assert not _kept("id IS NOT NULL", nullCount={"id": 10}, **some)
        assert _kept("id IS NOT NULL", nullCount={"id": 3}, **some)
        assert not _kept("id > 5", maxValues={"id": 5}, **some)
        assert _kept("id > 5", maxValues={"id": 6}, **some)


def test_c404_c405_records_are_counted_with_deleted_rows() -> None:
    """Two of five rows are deleted: three nulls are all valid rows, but not provably so; the file is kept."""
    assert _kept("id IS NOT NULL", numRecords=5, nullCount={"id": 3}, tightBounds=True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raw = X'00'", "binary, which has no minimum"),
        ("flag = true AND raw > X'01'", "binary"),
        ("folded = 'a'", "only evaluated by Spark"),
        ("grown > 1 AND grown < 2", "was a float"),
        ("tags IS NULL", "no reliable null count"),
        ("a IS NULL", "no reliable null count"),
        ("id = month", "is not a comparison of a column with a constant"),
        ("price > 5", "true for NaN"),
        ("length(name) = 3", "not a condition on a column without a function"),
    ],
)
def test_c415_what_has_no_bounds_is_not_used_and_said_so(text: str, reason: str) -> None:
    skipping = plan_skipping(parse_predicate(text, PLAIN.schema, on_opaque="keep"), PLAIN)
    assert any(reason in said for said in skipping.reasons)
    assert skipping.split.residual is not None


def test_collated_columns_skip_by_null_counts_only() -> None:
    assert stats("folded = 'a'") is None
    assert stats("folded IS NULL") == "nullCount.folded > 0L"
    assert parts("label = 'a'")[0] is None
    assert parts("label IS NULL")[0] is None


# --------------------------------------------------------------------------------------------------- partitions
def test_partition_conditions_are_decided_by_partition_values() -> None:
    assert parts("PART = 'a' AND id > 5") == ("Part = 'a' AND Part IS NOT NULL", "maxValues.id > 5L", "id > 5L")
    assert parts("part IS NULL") == ("Part IS NULL", None, None)
    assert parts("month IN (1, NULL)")[0] == "(month IN (1, NULL)) <=> TRUE"
    assert parts("month = 1 OR part = 'a'")[0] == "(month = 1 OR Part = 'a') <=> TRUE"
    assert parts("lower(part) = 'a'") == (None, None, "LOWER(part) = 'a'")


def test_a_condition_on_both_prunes_by_what_each_side_says() -> None:
    partition, statistics, residual = parts("(month = 1 AND id > 5) OR (month = 2 AND id < 3)")
    assert partition == "(month = 1 AND month IS NOT NULL) OR (month = 2 AND month IS NOT NULL)"
    one, two = (f"partitionValues.month = {n} AND partitionValues.month IS NOT NULL" for n in (1, 2))
    assert statistics == f"({one} AND maxValues.id > 5L) OR ({two} AND minValues.id < 3L)"
    assert residual is not None
    assert parts("month = 1 OR id > 5")[:2] == (None, f"({one}) OR maxValues.id > 5L")
    assert parts("month = 1 OR lower(name) = 'a'")[:2] == (None, None)
    assert parts("label = 'a' OR id > 5")[:2] == (None, None)
    assert parts("NOT (month = 1 OR id > 5)")[:2] == ("month <> 1 AND month IS NOT NULL", "minValues.id <= 5L")


@pytest.mark.parametrize("text", ["month = 1", "month <> 1", "month IN (1, NULL)", "NOT (month > 0 AND part = 'a')"])
def test_c416_an_unknown_partition_condition_drops_the_file(text: str) -> None:
    """The condition is not checked on rows again, so a null partition value must not slip through."""
    partition, _, residual = split(parse_predicate(text, PLAIN.schema), PLAIN)
    assert residual is None
    assert partition is not None
    batch = pa.table({"month": pa.array([None], pa.int32()), "Part": pa.array([None], pa.string())})
    assert evaluate(partition, batch).to_pylist() == [False]


def test_c414_partition_columns_have_no_statistics() -> None:
    assert stats("month = 1") is None
    assert parts("month > id")[:2] == (None, None)


def test_constants_decide_alone() -> None:
    assert parts("true") == (None, None, None)
    for text in ("false", "null", "id = NULL", "id > 5 AND false"):
        assert split(parse_predicate(text, PLAIN.schema), PLAIN).partition == NEVER
    assert split(None, PLAIN) == Split(None, None, None)


def test_columns_are_addressed_by_physical_names() -> None:
    inner = {"type": "struct", "fields": [mapped("x", "long", 3)]}
    fields = [mapped("id", "long", 1), mapped("st", inner, 2), mapped("p", "string", 4)]
    for mode in ("name", "id"):
        config = configuration(fields, ("p",), {"delta.columnMapping.mode": mode})
        partition, statistics, residual = split(
            parse_predicate("p = 'a' AND st.x > 1 AND id = 2", config.schema), config
        )
        assert _paths(partition) == [("col-4",)]
        assert _paths(statistics) == [("maxValues", "col-2", "col-3"), ("minValues", "col-1"), ("maxValues", "col-1")]
        assert _paths(residual) == [("st", "x"), ("id",)]
    unmapped = configuration(fields, ("p",), {"delta.columnMapping.mode": "none"})
    assert _paths(split(parse_predicate("id > 2", unmapped.schema), unmapped).stats) == [("maxValues", "id")]


def test_the_next_string_after_a_prefix() -> None:
    assert successor("ab") == "ac"
    assert successor("a\U0010ffff") == "b"
    assert successor("\U0010ffff") is None
    assert successor("\ud7ff") == "\ue000"


def _paths(expression: Expression | None) -> list[tuple[str, ...]]:
    return [] if expression is None else [column.path for column in columns_of(expression)]


_STATS = pa.struct([("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", "UTC"))])
_COUNTS = pa.struct([(name, pa.int64()) for name in ("id", "name", "at")])


def _kept(text: str, **statistics: Any) -> bool:
    rewritten = split(parse_predicate(text, PLAIN.schema), PLAIN).stats
    assert rewritten is not None
    columns = {
        "numRecords": pa.array([statistics.get("numRecords")], pa.int64()),
        "tightBounds": pa.array([statistics.get("tightBounds")], pa.bool_()),
        "minValues": pa.array([statistics.get("minValues")], _STATS),
        "maxValues": pa.array([statistics.get("maxValues")], _STATS),
        "nullCount": pa.array([statistics.get("nullCount")], _COUNTS),
    }
    return evaluate(rewritten, pa.table(columns)).to_pylist() != [False]
