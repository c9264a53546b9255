"""Statistics from footers against those computed from the rows."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta.schema.arrow import schema_from_arrow
from pyspark_delta.stats.collect import collect_stats
from pyspark_delta.stats.indexed_columns import stats_columns
from pyspark_delta.stats.observe import Observations


def stats_of(table: pa.Table, *, row_group: int = 1000, prefix: int = 32, **which: Any) -> dict[str, Any]:
    columns = stats_columns(schema_from_arrow(table.schema), **which)
    observations = Observations(columns, prefix)
    sink, footers = io.BytesIO(), []
    with pq.ParquetWriter(sink, table.schema, metadata_collector=footers, store_decimal_as_integer=True) as writer:
        for start in range(0, table.num_rows, row_group):
            rows = table.slice(start, row_group)
            observations.add(rows)
            writer.write_table(rows, row_group_size=row_group)
    text = collect_stats(footers[0], columns, observations, string_prefix=prefix)
    stats: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return stats


def column_stats(values: pa.Array, **options: Any) -> tuple[Any, Any, Any]:
    stats = stats_of(pa.table({"c": values}), **options)
    return stats["minValues"].get("c"), stats["maxValues"].get("c"), stats["nullCount"].get("c")


def test_c404_c406_number_of_rows_and_tight_bounds() -> None:
    stats = stats_of(pa.table({"c": [1, None, 3]}))
    assert list(stats) == ["numRecords", "minValues", "maxValues", "nullCount", "tightBounds"]
    assert stats["numRecords"] == 3
    assert stats["tightBounds"] is True


@pytest.mark.parametrize("row_group", [1, 2, 1000])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([3, None, -1], pa.int8()), (-1, 3, 1)),
        (pa.array([2**63 - 1, -(2**63)], pa.int64()), (-(2**63), 2**63 - 1, 0)),
        (pa.array([1.5, None, -0.25], pa.float32()), (Decimal("-0.25"), Decimal("1.5"), 1)),
        (pa.array([Decimal("1.10"), Decimal("-2.00")], pa.decimal128(5, 2)), (Decimal("-2.00"), Decimal("1.10"), 0)),
        (
            pa.array([Decimal("12345678901234567890.123456789"), None], pa.decimal128(38, 9)),
            (Decimal("12345678901234567890.123456789"), Decimal("12345678901234567890.123456789"), 1),
        ),
        (pa.array([Decimal("-0.01")], pa.decimal128(15, 2)), (Decimal("-0.01"), Decimal("-0.01"), 0)),
        (pa.array([date(2024, 2, 29), date(1, 1, 1)]), ("0001-01-01", "2024-02-29", 0)),
        (pa.array(["b", "a", None, ""]), ("", "b", 1)),
        (pa.array([None, None], pa.int32()), (None, None, 2)),
        (pa.array([True, False, None]), (None, None, 1)),
        (pa.array([b"x", None]), (None, None, 1)),
    ],
)
def test_c408_c411_c415_bounds_and_null_counts(values: pa.Array, expected: tuple[Any, ...], row_group: int) -> None:
    assert column_stats(values, row_group=row_group) == expected


def test_c412_c415_timestamps_are_milliseconds_rounded_outwards() -> None:
    values = [datetime(2024, 1, 1, 0, 0, 0, 123456, UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)]
    low, high, _ = column_stats(pa.array(values, pa.timestamp("us", "UTC")))
    assert (low, high) == ("1969-12-31T23:59:59.999Z", "2024-01-01T00:00:00.124Z")
    whole = [datetime(2024, 1, 1, 0, 0, 0, 123000, UTC)]
    assert column_stats(pa.array(whole, pa.timestamp("us", "UTC")))[:2] == ("2024-01-01T00:00:00.123Z",) * 2


def test_c415_timestamps_without_zone_have_no_zone() -> None:
    low, high, _ = column_stats(pa.array([datetime(2024, 1, 1, 12)], pa.timestamp("us")))
    assert low == high == "2024-01-01T12:00:00.000"


def test_times_that_json_cannot_name_have_no_bounds() -> None:
    far = pa.array([10**18, 0], pa.int64()).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    low, high, _ = column_stats(far)
    assert (low, high) == ("1970-01-01T00:00:00.000Z", None)
    days = pa.array([10**7, 0], pa.int32()).cast(pa.date32())
    assert column_stats(days)[:2] == ("1970-01-01", None)


def test_c412_long_strings_are_cut_and_the_maximum_is_padded() -> None:
    low, high, _ = column_stats(pa.array(["a" * 40, "z" * 40]))
    assert low == "a" * 32
    assert high == "z" * 32 + "\U0010ffff"
    assert column_stats(pa.array(["a" * 32]))[:2] == ("a" * 32, "a" * 32)


def test_c412_a_cut_maximum_of_last_code_points_is_still_a_bound() -> None:
    longest = "a" * 32 + "\U0010ffff" * 3 + "b"
    _, high, _ = column_stats(pa.array([longest]))
    assert high.encode() > longest.encode()


@pytest.mark.parametrize("row_group", [1, 1000])
def test_strings_too_long_for_a_footer_have_bounds(row_group: int) -> None:
    values = pa.array(["m" * 5000, "b", "z" * 9000, None])
    assert column_stats(values, row_group=row_group) == ("b", "z" * 32 + "\U0010ffff", 1)


def test_strings_too_long_whose_bound_would_be_wrong_have_none() -> None:
    assert column_stats(pa.array(["\U0010ffff" * 2000]))[:2] == (None, None)


@pytest.mark.parametrize("row_group", [1, 1000])
def test_nan_is_larger_than_any_maximum(row_group: int) -> None:
    low, high, nulls = column_stats(pa.array([1.0, float("nan"), 5.0, None]), row_group=row_group)
    assert high is None
    assert nulls == 1
    assert low in (1, None)


def test_infinity_is_left_out() -> None:
    assert column_stats(pa.array([1.0, float("inf")]))[:2] == (1, None)
    assert column_stats(pa.array([1.0, float("-inf")]))[:2] == (None, 1)


def test_negative_zero_bounds_positive_zero() -> None:
    text = json.dumps(column_stats(pa.array([0.0, -0.0]))[:2], default=str)
    assert text == '["-0.0", "0.0"]'


def test_c407_nested_fields_are_nested_objects() -> None:
    rows = pa.array([{"b": {"c": 1}, "d": "x"}, None, {"b": None, "d": None}])
    stats = stats_of(pa.table({"a": rows}))
    assert stats["minValues"] == {"a": {"b": {"c": 1}, "d": "x"}}
    assert stats["nullCount"] == {"a": {"b": {"c": 2}, "d": 2}}


def test_arrays_and_maps_count_null_rows_not_null_elements() -> None:
    lists = pa.array([[1, None], None, []], pa.list_(pa.int32()))
    maps = pa.array([[("k", None)], [], None], pa.map_(pa.string(), pa.int32()))
    after = pa.array([1, 2, 3])
    stats = stats_of(pa.table({"l": lists, "m": maps, "after": after}), row_group=2)
    assert stats["nullCount"] == {"l": 1, "m": 1, "after": 0}
    assert stats["minValues"] == {"after": 1}
    assert stats["maxValues"] == {"after": 3}


def test_the_first_columns_have_statistics() -> None:
    table = pa.table({f"c{i}": [i] for i in range(40)})
    assert len(stats_of(table)["minValues"]) == 32
    assert len(stats_of(table, limit=-1)["minValues"]) == 40
    assert stats_of(table, limit=0) == {
        "numRecords": 1,
        "minValues": {},
        "maxValues": {},
        "nullCount": {},
        "tightBounds": True,
    }


def test_named_columns_have_statistics_whatever_their_number() -> None:
    table = pa.table({"a": [1], "s": [{"x": 1, "y": 2}], "b": [2]})
    assert stats_of(table, limit=0, names=[("S",), ("b",)])["minValues"] == {"s": {"x": 1, "y": 2}, "b": 2}
    assert stats_of(table, names=[("s", "y")])["minValues"] == {"s": {"y": 2}}


def test_string_prefix_of_the_table() -> None:
    assert column_stats(pa.array(["abcdef"]), prefix=3)[:2] == ("abc", "abc\U0010ffff")


def test_footers_without_statistics_give_no_bounds() -> None:
    table = pa.table({"c": [1, 2]})
    sink, footers = io.BytesIO(), []
    with pq.ParquetWriter(sink, table.schema, write_statistics=False, metadata_collector=footers) as writer:
        writer.write_table(table)
    columns = stats_columns(schema_from_arrow(table.schema))
    stats = json.loads(collect_stats(footers[0], columns, Observations(columns, 32)))
    assert stats["minValues"] == stats["maxValues"] == stats["nullCount"] == {}
