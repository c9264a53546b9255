"""Where the keys of a source lie, as tasks and the driver put it together."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_delta.statements.merge.keys import MOST_RANGES, MOST_VALUES, KeyRanges, KeyReport, report_keys

KINDS = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-3000, 3000),
    pa.int8(): st.integers(-128, 127),
    pa.string(): st.text(max_size=3),
    pa.binary(): st.binary(max_size=2),
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="UTC"): st.datetimes(timezones=st.just(dt.UTC)),
    pa.decimal128(20, 2): st.integers(-(10**19), 10**19).map(lambda n: Decimal(n) / 100),
    pa.bool_(): st.booleans(),
}


def keys_of(kind: pa.DataType) -> st.SearchStrategy[tuple[pa.DataType, list[list[Any]]]]:
    """Keys of one type in batches, some of them null."""
    keys = st.lists(st.none() | KINDS[kind], min_size=1, max_size=60)
    # Dense runs of numbers make many keys out of few choices.
    runs = st.builds(lambda start, step: list(range(start, start + 900 * step, step)), st.integers(0, 99), st.just(3))
    return st.tuples(st.just(kind), st.lists(keys | runs if kind == pa.int64() else keys, min_size=1, max_size=4))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(KINDS)).flatmap(keys_of), st.integers(1, 4))
def test_every_key_is_in_a_range(keys: tuple[pa.DataType, list[list[Any]]], tasks: int) -> None:
    kind, batches = keys
    arrays = [pa.array(batch, kind) for batch in batches]
    reports = [
        pickle.loads(found["report"][0].as_py())
        for task in range(tasks)
        for found in report_keys([pa.RecordBatch.from_arrays([one], ["k"]) for one in arrays[task::tasks]])
    ]
    joined = KeyReport.joined(reports)
    [found] = joined.ranges
    values = {value for one in arrays for value in one.drop_null().to_pylist()}
    ranges = list(zip(found.least.to_pylist(), found.greatest.to_pylist(), strict=True))
    assert joined.rows == sum(map(len, batches))
    assert all(any(least <= value <= greatest for least, greatest in ranges) for value in values)
    assert {end for ends in ranges for end in ends} <= values
    assert all(one[1] < next_one[0] for one, next_one in pairwise(ranges))
    assert found.are_values == (len(ranges) == len(values))
    assert len(ranges) <= MOST_VALUES
    assert len(values) > MOST_VALUES or found.are_values or not values
    assert len(found.at_most(MOST_RANGES).least) <= MOST_RANGES


@pytest.mark.parametrize("kind", [pa.int64(), pa.date32(), pa.decimal128(10, 0), pa.timestamp("us")])
def test_the_widest_gaps_are_left_out(kind: pa.DataType) -> None:
    numbers = [block * 10_000 + n for block in range(5) for n in range(400)]
    keys = pa.array(numbers, pa.int64() if kind == pa.timestamp("us") else pa.int32()).cast(kind)
    found = KeyRanges.of(keys)
    blocks = list(zip(found.least.to_pylist(), found.greatest.to_pylist(), strict=True))
    assert len(blocks) == MOST_RANGES
    four = found.at_most(5)
    ends = pa.array([0, 10_000, 20_000, 30_000, 40_000], pa.int64() if kind == pa.timestamp("us") else pa.int32())
    assert four.least.equals(ends.cast(kind))
    assert [four.greatest[i].as_py() for i in range(5)] == [keys[400 * i + 399].as_py() for i in range(5)]


def test_texts_have_no_distances() -> None:
    found = KeyRanges.of(pa.array([f"{n:05}" for n in range(MOST_VALUES + 1)]))
    assert (found.least.to_pylist(), found.greatest.to_pylist()) == (["00000"], ["01000"])
    assert KeyRanges.of(pa.array([f"{n:05}" for n in range(MOST_VALUES)])).are_values


def test_no_rows_no_report() -> None:
    empty = pa.RecordBatch.from_arrays([pa.array([], pa.int64())], ["k"])
    assert list(report_keys([empty])) == []
    [found] = report_keys([empty, pa.RecordBatch.from_arrays([pa.nulls(3, pa.int64())], ["k"])])
    report: KeyReport = pickle.loads(found["report"][0].as_py())
    assert (report.rows, len(report.ranges[0].least)) == (3, 0)


def test_ranges_within_a_range_do_not_end_it() -> None:
    found = [
        KeyRanges(pa.array(least), pa.array(greatest)) for least, greatest in (([5, 2], [6, 3]), ([1, 20], [9, 30]))
    ]
    joined = KeyRanges.joined(found)
    assert (joined.least.to_pylist(), joined.greatest.to_pylist()) == ([1, 20], [9, 30])
