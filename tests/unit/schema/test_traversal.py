"""Walking a type finds what is nested in structs, arrays and maps."""

from __future__ import annotations

from pyspark_delta.schema.traversal import fields_in, types_in
from pyspark_delta.schema.types import INTEGER, STRING, VARIANT, ArrayType, MapType, StructField, StructType

INNER = StructType((StructField("deep", VARIANT),))
OUTER = StructType(
    (
        StructField("list", ArrayType(ArrayType(INNER))),
        StructField("map", MapType(STRING, INNER)),
        StructField("plain", INTEGER),
    )
)


def test_types_in_reaches_every_level() -> None:
    found = list(types_in(OUTER))
    assert found[0] is OUTER
    assert found.count(VARIANT) == 2
    assert {STRING, INTEGER} <= set(found)


def test_fields_in_lists_fields_of_nested_structs() -> None:
    assert [f.name for f in fields_in(OUTER)] == ["list", "map", "plain", "deep", "deep"]
