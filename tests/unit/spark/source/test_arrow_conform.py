"""Batches get exactly the labels that Spark expects, and nulls never hide in NOT NULL columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_delta.errors import DataFileError
from pyspark_delta.schema import types as t
from pyspark_delta.schema.json import type_to_json
from pyspark_delta.spark.source.arrow import conform


def expected(*fields: t.StructField) -> pa.Schema:
    """What PySpark asks for."""
    spark = StructType.fromJson(type_to_json(t.StructType(fields)))
    return to_arrow_schema(spark, timezone="UTC")


def check(array: pa.Array, field: t.StructField) -> pa.RecordBatch:
    """Conform a batch of one column and compare schema and values."""
    schema = expected(field)
    found = conform(pa.record_batch([array], names=["x"]), schema)
    found.validate(full=True)
    assert found.schema.equals(schema)
    assert found.column(0).to_pylist() == array.to_pylist()
    return found


def test_lists_and_maps_get_spark_names() -> None:
    check(pa.array([[1], None, []], pa.list_(pa.field("item", pa.int64()))), t.StructField("c", t.ArrayType(t.LONG)))
    check(
        pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), t.StructField("c", t.MapType(t.STRING, t.LONG))
    )


def test_slices_keep_their_rows() -> None:
    array = pa.array([[1], [2, 3], None, [4]], pa.list_(pa.field("item", pa.int64())))
    found = check(array.slice(1, 2), t.StructField("c", t.ArrayType(t.LONG)))
    assert found.column(0).to_pylist() == [[2, 3], None]


def test_no_buffer_is_copied() -> None:
    array = pa.array([[1], [2, 3]], pa.list_(pa.field("item", pa.int64())))
    found = check(array, t.StructField("c", t.ArrayType(t.LONG)))
    assert [b and b.address for b in found.column(0).buffers()] == [b and b.address for b in array.buffers()]


def test_nested_nullability_is_declared_as_spark_declares_it() -> None:
    inner = t.StructType((t.StructField("a", t.LONG, nullable=False), t.StructField("b", t.ArrayType(t.LONG, False))))
    array = pa.array([{"a": 1, "b": [1]}, None], pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))]))
    check(array, t.StructField("c", inner))


def test_variants_pass() -> None:
    storage = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary())])
    check(pa.array([{"value": b"\x0c\x05", "metadata": b"\x01\x00\x00"}, None], storage), t.StructField("c", t.VARIANT))


def test_variant_members_in_another_order_are_put_in_order() -> None:
    storage = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])
    array = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}, None], storage)
    found = check(array, t.StructField("c", t.VARIANT))
    assert [member.name for member in found.schema.field(0).type] == ["value", "metadata"]


def test_members_may_be_named_like_paths() -> None:
    inner = t.StructType((t.StructField(".a", t.ArrayType(t.LONG)), t.StructField("b[0]", t.LONG, nullable=False)))
    lists = pa.large_list(pa.int64())
    check(
        pa.array([{".a": [1], "b[0]": 2}], pa.struct([(".a", lists), ("b[0]", pa.int64())])), t.StructField("c", inner)
    )


def test_other_layouts_of_the_same_values_are_cast() -> None:
    check(pa.array(["a", "b", "a"]).dictionary_encode(), t.StructField("c", t.STRING))
    check(pa.array(["a", None], pa.large_string()), t.StructField("c", t.STRING))
    check(pa.array([[b"x"], None], pa.large_list(pa.large_binary())), t.StructField("c", t.ArrayType(t.BINARY)))


@pytest.mark.parametrize(
    ("array", "field"),
    [
        (pa.array([1, None]), t.StructField("c", t.LONG, nullable=False)),
        (pa.array([[1, None]]), t.StructField("c", t.ArrayType(t.LONG, contains_null=False))),
        (
            pa.array([[("k", None)]], pa.map_(pa.string(), pa.int64())),
            t.StructField("c", t.MapType(t.STRING, t.LONG, value_contains_null=False)),
        ),
        (
            pa.array([{"a": None}], pa.struct([("a", pa.int64())])),
            t.StructField("c", t.StructType((t.StructField("a", t.LONG, nullable=False),))),
        ),
        (
            pa.array([[{"a": None}]], pa.list_(pa.struct([("a", pa.int64())]))),
            t.StructField("c", t.ArrayType(t.StructType((t.StructField("a", t.LONG, nullable=False),)))),
        ),
    ],
    ids=["column", "element", "value", "member", "member of element"],
)
def test_a_null_in_a_not_null_place_is_an_error(array: pa.Array, field: t.StructField) -> None:
    with pytest.raises(DataFileError, match=r"NOT NULL.*'c|'c.*NOT NULL"):
        conform(pa.record_batch([array], names=["x"]), expected(field))


def test_nulls_under_a_null_parent_are_no_error() -> None:
    inner = t.StructType((t.StructField("a", t.LONG, nullable=False),))
    struct = pa.StructArray.from_arrays([pa.array([1, None])], names=["a"], mask=pa.array([False, True]))
    check(struct, t.StructField("c", inner))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pa.array([1, None]), mask=pa.array([False, True]))
    check(lists, t.StructField("c", t.ArrayType(t.LONG, contains_null=False)))


def test_a_batch_without_columns_keeps_its_rows() -> None:
    batch = pa.record_batch([pa.array([1, 2])], names=["a"]).select([])
    assert conform(batch, pa.schema([])).num_rows == 2
