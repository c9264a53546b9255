"""Sets of keys find the same rows as a search in Python, whether as a table of places or by Arrow's hashing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_delta.spark.dml.plain.key_sets import KeySet

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
NUMBERS = st.one_of(
    st.integers(-5, 40), st.sampled_from([LEAST, LEAST + 1, 0, GREATEST - 1, GREATEST]), st.integers(LEAST, GREATEST)
)


@given(st.sets(NUMBERS, max_size=20), st.lists(NUMBERS | st.none(), max_size=30))
def test_numbers_are_found_wherever_they_are(values: set[int], keys: list[int | None]) -> None:
    found = KeySet.of(pa.array(sorted(values), pa.int64())).mask(pa.array(keys, pa.int64()))
    assert found.tolist() == [key in values for key in keys]


@pytest.mark.parametrize("start", [LEAST, -3, GREATEST - 9])
def test_numbers_close_to_each_other_are_looked_up_by_their_place(start: int) -> None:
    keys = KeySet.of(pa.array(range(start, start + 10, 3), pa.int64()))
    assert keys.places is not None
    around = [n for n in (LEAST, start - 1, *range(start, start + 10), start + 10, GREATEST) if LEAST <= n <= GREATEST]
    assert keys.mask(pa.array(around, pa.int64())).tolist() == [n in range(start, start + 10, 3) for n in around]


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        (["a", "ö", ""], ["", None, "b", "ö", "O"]),
        ([Decimal("1.10"), Decimal("2.00")], [Decimal("2.00"), Decimal("1.00"), None]),
        ([b"\x00", b"x"], [b"x", b"", None]),
        ([0, 1 << 24], [0, 1, 1 << 24, None]),
    ],
)
def test_others_are_found_by_their_hash(values: list[Any], keys: list[Any]) -> None:
    array = pa.array(values)
    found = KeySet.of(array)
    assert found.places is None
    assert found.mask(pa.array(keys, array.type)).tolist() == [key in values for key in keys]


def test_no_values_find_nothing() -> None:
    assert KeySet.of(pa.array([], pa.int64())).mask(pa.array([0, None])).tolist() == [False, False]
