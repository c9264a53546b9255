"""Batches are brought to the columns of a table, whichever form of Arrow's lists they hold, and sliced or not."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_delta.data.conform import conform
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.schema.arrow import schema_from_arrow
from pyspark_delta.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

LISTS = [[1, 2], None, [], [None, 3], [4, 5]]
MAPS = [[("a", 1)], None, [], [("b", None), ("c", 3)], [("d", 4)]]
DATA = StructType((StructField("d", LONG),))
ARRAY, MAP = ArrayType(LONG), MapType(STRING, LONG)


@pytest.mark.parametrize("rows", [slice(0, 5), slice(1, 4), slice(2, 5), slice(3, 3)], ids=str)
@pytest.mark.parametrize("make", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view], ids=lambda m: m.__name__)
def test_slices_with_nulls(make: type[pa.DataType], rows: slice) -> None:
    lists = pa.array(LISTS, make(pa.int32()))
    nested = pa.array([None if v is None else [v, None] for v in LISTS], make(make(pa.int32())))
    maps = pa.array(MAPS, pa.map_(pa.string(), pa.int32()))
    members = pa.StructArray.from_arrays([lists, maps], names=["l", "m"], mask=pa.array([False] * 4 + [True]))
    batch = pa.record_batch([lists, nested, maps, members], names=["l", "n", "m", "s"])
    table = StructType(
        (
            StructField("l", ARRAY),
            StructField("n", ArrayType(ARRAY)),
            StructField("m", MAP),
            StructField("s", StructType((StructField("m", MAP), StructField("x", INTEGER), StructField("l", ARRAY)))),
        )
    )
    found = conform(batch.slice(rows.start, rows.stop - rows.start), schema_from_arrow(batch.schema), table)
    expected = [
        {
            "l": v,
            "n": None if v is None else [v, None],
            "m": m,
            "s": None if i == 4 else {"m": m, "x": None, "l": v},
        }
        for i, (v, m) in enumerate(zip(LISTS, MAPS, strict=True))
    ]
    assert found.to_pylist() == expected[rows]
    found.validate(full=True)


@pytest.mark.parametrize("nested", [False, True])
def test_integers_become_decimals_that_hold_them_if_not_all_integers(nested: bool) -> None:
    values = pa.array([5, None, -999], pa.int32())
    given = pa.StructArray.from_arrays([values], names=["D"]) if nested else values
    batch = pa.record_batch([given], names=["d"])
    decimal = DecimalType(5, 2)
    table = StructType((StructField("d", StructType((StructField("d", decimal),)) if nested else decimal),))
    found = conform(batch, schema_from_arrow(batch.schema), table).column(0)
    values = pc.struct_field(found, [0]) if nested else found
    assert values.to_pylist() == [Decimal(5), None, Decimal(-999)]
    with pytest.raises(ConstraintViolationError, match="does not fit the type decimal128") as caught:
        conform(pa.record_batch([pa.array([1000])], names=["d"]), DATA, StructType((StructField("d", decimal),)))
    assert caught.value.error_class == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"


def test_lists_of_a_fixed_size() -> None:
    values = pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.int32(), 2)).slice(1, 2)
    batch = pa.record_batch([values], names=["l"])
    found = conform(batch, schema_from_arrow(batch.schema), StructType((StructField("l", ARRAY),)))
    assert found.to_pylist() == [{"l": None}, {"l": [3, None]}]
