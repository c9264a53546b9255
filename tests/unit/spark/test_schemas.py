"""Delta schemas as Spark's types, and how a schema that a user gives differs from them."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    VariantType,
    YearMonthIntervalType,
)

from pyspark_delta.schema import types as t
from pyspark_delta.spark.frames.schemas import differences, to_spark


def test_types_become_spark_types() -> None:
    kinds = (t.TIMESTAMP_NTZ, t.VARIANT, t.VOID, t.YEAR_MONTH_INTERVAL, t.DAY_TIME_INTERVAL)
    found = to_spark(t.StructType(tuple(t.StructField(str(kind), kind) for kind in kinds)))
    expected = [TimestampNTZType(), VariantType(), NullType(), YearMonthIntervalType(), DayTimeIntervalType()]
    assert [field.dataType for field in found] == expected


def test_c374_everything_is_nullable_at_every_level() -> None:
    inner = t.StructType((t.StructField("x", t.LONG, nullable=False),))
    schema = t.StructType(
        (
            t.StructField("i", t.INTEGER, nullable=False),
            t.StructField("l", t.ArrayType(inner, contains_null=False), nullable=False),
            t.StructField("m", t.MapType(t.STRING, inner, value_contains_null=False)),
        )
    )
    nullable = StructType().add("x", LongType())
    assert to_spark(schema) == (
        StructType().add("i", IntegerType()).add("l", ArrayType(nullable)).add("m", MapType(StringType(), nullable))
    )


def test_c431_reserved_metadata_stays_with_the_table() -> None:
    inner = t.StructField("x", t.LONG, metadata={"delta.columnMapping.id": 2, "comment": "inner"})
    metadata = {"delta.columnMapping.physicalName": "col-1", "delta.generationExpression": "1", "comment": "outer"}
    found = to_spark(t.StructType((t.StructField("s", t.StructType((inner,)), metadata=metadata),)))
    assert found["s"].metadata == {"comment": "outer"}
    nested = found["s"].dataType
    assert isinstance(nested, StructType)
    assert nested["x"].metadata == {"comment": "inner"}


def test_a_column_named_metadata_is_a_column() -> None:
    schema = t.StructType((t.StructField("metadata", t.StructType((t.StructField("delta.x", t.LONG),))),))
    assert to_spark(schema).simpleString() == "struct<metadata:struct<delta.x:bigint>>"


def test_equal_schemas_have_no_differences() -> None:
    table = StructType().add("a", LongType(), False, {"comment": "c"}).add("l", ArrayType(StringType(), False))
    given = StructType().add("a", LongType()).add("l", ArrayType(StringType()))
    assert differences(expected=table, given=given) == []


def test_differences_are_named_one_by_one() -> None:
    table = StructType().add("a", LongType()).add("b", StructType().add("x", LongType())).add("c", StringType())
    given = StructType().add("a", IntegerType()).add("b", StructType().add("y", LongType())).add("z", StringType())
    found = "; ".join(differences(expected=table, given=given))
    for part in ("'z' is not in the table", "'c' is missing", "'a' is bigint, not int", "'b' is struct<x:bigint>"):
        assert part in found


def test_another_order_is_a_difference() -> None:
    table, given = StructType().add("a", LongType()).add("b", LongType()), StructType().add("b", LongType())
    assert differences(expected=table, given=given.add("a", LongType())) == ["the order of the columns is a, b"]
