"""The value of one key in maps, which checkpoints give as texts or as codes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_delta.log.arrays import is_coded_map, map_value
from pyspark_delta.log.skipping import partition_column
from pyspark_delta.schema.types import DATE, STRING

_TYPE = pa.map_(pa.string(), pa.string())


def _coded(maps: pa.MapArray) -> pa.MapArray:
    mask = maps.is_null() if maps.null_count else None
    keys, items = maps.keys.dictionary_encode(), maps.items.dictionary_encode()
    return pa.MapArray.from_arrays(maps.offsets, keys, items, mask=mask)


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": "x"}, {"a": "y"}, {"a": None}, {"a": "x"}],
        [{"a": "x", "b": "2024-01-05"}, {"a": "y", "b": "2024-01-06"}, {"a": "x", "b": None}],
        [{"b": "x", "a": "y"}, {"a": "z", "b": "x"}],
        [{"a": "x"}, None, {}, {"b": "y"}],
        [{"b": "x"}, {"b": "y"}],
        [],
    ],
)
def test_coded_maps_have_the_values_of_plain_ones(rows: list[dict[str, str | None] | None]) -> None:
    plain = pa.array([None if row is None else list(row.items()) for row in rows], _TYPE)
    coded = _coded(plain)
    assert is_coded_map(coded.type)
    assert not is_coded_map(plain.type)
    for start in range(len(rows) + 1):
        expected = [None if row is None else row.get("a") for row in rows[start:]]
        assert map_value(plain.slice(start), "a").to_pylist() == expected
        assert map_value(coded.slice(start), "a").to_pylist() == expected


def test_a_partition_column_is_parsed_from_its_own_values_alone() -> None:
    rows = [[("day", "2024-01-05"), ("city", "Oslo")], [("day", "2024-01-06"), ("city", "Rome")]]
    coded = _coded(pa.array(rows, _TYPE))
    assert partition_column(coded, "city", STRING, "UTC").to_pylist() == ["Oslo", "Rome"]
    assert [str(day) for day in partition_column(coded, "day", DATE, "UTC").to_pylist()] == ["2024-01-05", "2024-01-06"]
