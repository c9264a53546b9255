"""What new values of columns may lack, and where."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.schema.types import INTEGER, LONG, STRING, ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.spark.engine.dml.store_assignment import assign_value

WHOLE = StructType((StructField("a", INTEGER), StructField("b", STRING)))
PART = StructType((StructField("A", LONG),))


@pytest.mark.parametrize(
    ("given", "column", "lacking"),
    [
        (PART, WHOLE, r"c\.b"),
        (ArrayType(PART, True), ArrayType(WHOLE, True), r"c\.element\.b"),
        (MapType(PART, LONG, True), MapType(WHOLE, LONG, True), r"c\.key\.b"),
        (MapType(LONG, PART, True), MapType(LONG, WHOLE, True), r"c\.value\.b"),
        (
            StructType((StructField("m", MapType(PART, ArrayType(PART, True), True)),)),
            StructType((StructField("m", MapType(WHOLE, ArrayType(WHOLE, True), True)),)),
            r"c\.m\.key\.b, c\.m\.value\.element\.b",
        ),
    ],
)
def test_members_that_are_lacking_are_named(given: DataType, column: DataType, lacking: str) -> None:
    value: Any = None  # which is not looked at
    with pytest.raises(SchemaMismatchError, match=f"'c' lacks {lacking}\\.") as caught:
        assign_value(value, given, StructField("c", column))
    assert caught.value.error_class == "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"
