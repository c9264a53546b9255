"""Keys of columns: the order of Python's values, for what Python orders as Spark does."""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyspark_delta.maintenance.layout.order_keys import has_number_keys, number_keys, ranks_among, sort_order

CHANCE = random.Random(1)


def texts(count: int) -> list[bytes]:
    """Texts with common prefixes of many lengths, and with zero bytes at their ends."""
    prefixes = [b"", b"\0", b"ab", b"x" * 7, b"x" * 8, b"x" * 40]
    return [
        CHANCE.choice(prefixes) + bytes(CHANCE.choice(b"\0ab\xff") for _ in range(CHANCE.randint(0, 12)))
        for _ in range(count)
    ]


def test_texts_are_ranked_among_boundaries_whatever_their_common_prefixes() -> None:
    values = texts(5_000)
    for number in (0, 1, 300):
        boundaries = sorted(set(CHANCE.sample(values, number)))
        expected = [bisect.bisect_right(boundaries, value) for value in values]
        array = pa.array([*values, None], pa.binary())
        assert ranks_among(array, boundaries).tolist() == [*expected, 0]
        assert ranks_among(array.slice(10, 100), boundaries).tolist() == expected[10:110]
        assert ranks_among(array.dictionary_encode(), boundaries).tolist() == [*expected, 0]


@pytest.mark.parametrize("make", [pa.array, lambda values, kind: pa.array(values, kind).dictionary_encode()])
def test_nulls_come_first(make: Callable[..., pa.Array]) -> None:
    for kind, value in ((pa.int64(), -(2**63)), (pa.string(), ""), (pa.decimal128(38, 0), Decimal(-(10**37)))):
        assert sort_order([make([value, None], kind)]).tolist() == [1, 0]
    assert number_keys(make([-(2**63), None], pa.int64())).tolist() == [1, 0]


def test_floats_are_in_the_order_of_their_values_and_nan_is_the_largest() -> None:
    values = [-math.inf, -1.5, -5e-324, 0.0, 5e-324, 1.5, math.inf, math.nan]
    keys = number_keys(pa.array(values))
    assert np.all(keys[1:] > keys[:-1])
    assert number_keys(pa.array([-0.0])) == number_keys(pa.array([0.0]))
    other_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)
    assert number_keys(pa.array(other_nan)) == keys[-1]
    assert number_keys(pa.array([1.5], pa.float32())) == keys[5]


@pytest.mark.parametrize("precision", [5, 18, 19, 38])
def test_decimals(precision: int) -> None:
    values = [Decimal(CHANCE.randint(-(10**precision) + 1, 10**precision - 1)).scaleb(-3) for _ in range(2_000)]
    array = pa.array([*values, None], pa.decimal128(precision, 3))
    assert has_number_keys(array.type) == (precision <= 18)
    order = sort_order([array]).tolist()
    assert [array[i].as_py() for i in order] == [None, *sorted(values)]
    if precision <= 18:
        assert np.argsort(number_keys(array), kind="stable").tolist() == order


def test_the_first_column_counts_most_and_equal_rows_stay() -> None:
    table = pa.table({"a": [2, 1, 1, 2, None], "b": ["x", "z", "y", "x", "w"]})
    assert sort_order([column.combine_chunks() for column in table.columns]).tolist() == [4, 2, 1, 0, 3]
    assert sort_order([pa.array([], pa.int8())]).tolist() == []


@pytest.mark.parametrize("values", [[[1]], [{"a": 1}], [None]])
def test_values_without_an_order_are_refused(values: list[Any]) -> None:
    with pytest.raises(TypeError, match="no order"):
        has_number_keys(pa.array(values).type)
