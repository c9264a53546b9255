"""How a schema that a user gives differs from that of the table."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructType

from pyspark_delta.spark.schemas import differences


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
