"""Sets of keys find the same rows as a search in Python, by a direct-address table or by Arrow's hashing."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_delta.engines.arrow.key_search import KeySet

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
NUMBERS = st.one_of(
    st.integers(-5, 40), st.sampled_from([LEAST, LEAST + 1, 0, GREATEST - 1, GREATEST]), st.integers(LEAST, GREATEST)
)


@given(st.sets(NUMBERS, max_size=20), st.lists(NUMBERS | st.none(), max_size=30))
def test_numbers_are_found_wherever_they_are(values: set[int], keys: list[int | None]) -> None:
    found = KeySet.of(pa.array(sorted(values), pa.int64())).mask(pa.array(keys, pa.int64()))
    assert found.tolist() == [key in values for key in keys]


@given(st.sets(st.integers(0, 1 << 30), min_size=1, max_size=20), st.integers(0, 1 << 26), st.data())
def test_numbers_that_share_a_place_are_told_apart(values: set[int], apart: int, data: st.DataObject) -> None:
    values |= {min(values) + (1 << 24), min(values) + (1 << 30)}
    near = st.sampled_from(sorted(values)).flatmap(lambda n: st.sampled_from([n, n + (1 << 24), n - (1 << 24), n + 1]))
    keys = data.draw(st.lists(near | st.just(apart), max_size=30))
    found = KeySet.of(pa.array(list(values), pa.int64()))
    assert found.table is not None
    assert len(found.table.taken) == 1 << 24
    assert found.mask(pa.array(keys, pa.int64())).tolist() == [key in values for key in keys]


@pytest.mark.parametrize("start", [LEAST, -3, GREATEST - 9])
def test_numbers_close_to_each_other_have_a_small_table(start: int) -> None:
    keys = KeySet.of(pa.array(range(start, start + 10, 3), pa.int64()))
    assert keys.table is not None
    assert len(keys.table.taken) == 16
    around = [n for n in (LEAST, start - 1, *range(start, start + 10), start + 10, GREATEST) if LEAST <= n <= GREATEST]
    assert keys.mask(pa.array(around, pa.int64())).tolist() == [n in range(start, start + 10, 3) for n in around]


@pytest.mark.parametrize(
    ("values", "keys", "data_type"),
    [
        ([1, -128], [127, -128, None, 0], pa.int8()),
        ([date(1, 1, 1), date(9999, 12, 31)], [date(9999, 12, 31), None, date(1970, 1, 1)], pa.date32()),
        ([datetime(1969, 1, 1)], [datetime(1969, 1, 1), datetime(1970, 1, 1), None], pa.timestamp("us")),
        ([datetime(2024, 1, 1, tzinfo=UTC)], [datetime(2024, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    ],
)
def test_types_in_the_order_of_numbers_have_a_table(values: list[Any], keys: list[Any], data_type: pa.DataType) -> None:
    found = KeySet.of(pa.array(values, data_type))
    assert found.table is not None
    assert found.mask(pa.array(keys, data_type)).tolist() == [key in values for key in keys]


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        (["a", "ö", ""], ["", None, "b", "ö", "O"]),
        ([Decimal("1.10"), Decimal("2.00")], [Decimal("2.00"), Decimal("1.00"), None]),
        ([b"\x00", b"x"], [b"x", b"", None]),
        ([1.5, 2.0], [2.0, 1.0, None]),
    ],
)
def test_others_are_found_by_their_hash(values: list[Any], keys: list[Any]) -> None:
    array = pa.array(values)
    found = KeySet.of(array)
    assert found.table is None
    assert found.mask(pa.array(keys, array.type)).tolist() == [key in values for key in keys]


def test_no_values_find_nothing() -> None:
    assert KeySet.of(pa.array([], pa.int64())).mask(pa.array([0, None])).tolist() == [False, False]
