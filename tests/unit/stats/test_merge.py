"""The statistics of several files together, beside those of a file with all their rows."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_delta.schema.types import DOUBLE, LONG, STRING
from pyspark_delta.stats.indexed_columns import StatsColumn
from pyspark_delta.stats.merge import merged_stats
from pyspark_delta.table import Table
from pyspark_delta.transaction.write_plan import FileOptions, write_context

LONG_TEXT = "x" * 40
ROWS: list[list[dict[str, Any]]] = [
    [{"id": 5, "s": "b", "d": 0.0, "n": None}, {"id": None, "s": LONG_TEXT, "d": 2.5, "n": None}],
    [{"id": -(2**63), "s": "ä", "d": -0.0, "n": 1}],
    [{"id": 2**63 - 1, "s": LONG_TEXT + "z", "d": 1e300, "n": None}],
]
TIMES: list[dict[str, Any]] = [
    {
        "t": datetime.datetime(2020 + year, 1, 1, 0, 0, 0, 1500, datetime.UTC),
        "day": datetime.date(1500 + year, 1, 1),
        "x": Decimal("12345678901234567890.12") * (-1) ** year,
    }
    for year in range(3)
]


def test_c404_merged_statistics_are_those_of_all_rows(tmp_path: Path) -> None:
    columns = "id BIGINT, s STRING, d DOUBLE, n INT, t TIMESTAMP, day DATE, x DECIMAL(30,2), l ARRAY<INT>"
    apart = Table.create(tmp_path / "apart", columns)
    together = Table.create(tmp_path / "together", columns)
    rows = [[{**row, **times, "l": [1]} for row in some] for some, times in zip(ROWS, TIMES, strict=True)]
    for some in rows:
        apart.append(some)
    together.append([row for some in rows for row in some])
    snapshot = apart.refresh().snapshot
    context = write_context(snapshot.location, snapshot.configuration, FileOptions())
    texts = snapshot.files(("stats",))["stats"].to_pylist()
    assert len(texts) == 3
    found = merged_stats(texts, context.stats_columns, string_prefix=context.string_prefix)
    assert found is not None
    (expected,) = together.refresh().snapshot.files(("stats",))["stats"].to_pylist()
    exact = {"parse_float": Decimal, "parse_int": Decimal}
    assert json.loads(found, **exact) == json.loads(expected, **exact)
    assert '"d":-0.0' in found
    again = merged_stats([found, found], context.stats_columns, string_prefix=context.string_prefix)
    assert json.loads(again or "")["maxValues"] == json.loads(found)["maxValues"]


def stats(records: int | None, **members: Any) -> str:
    return json.dumps({} if records is None else {"numRecords": records, **members})


COLUMNS = (StatsColumn(("a",), LONG, 0), StatsColumn(("b", "c"), STRING, 1), StatsColumn(("f",), DOUBLE, 2))


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ({"minValues": {"a": 1}, "nullCount": {"a": 0}}, ({"a": 1}, {}, {"a": 0})),
        ({"nullCount": {"a": 2}}, ({"a": 3}, {"a": 4}, {"a": 2})),
        ({"nullCount": {"a": 1}}, ({}, {}, {"a": 1})),
        ({}, ({}, {}, {})),
        ({"minValues": {"a": "x"}, "maxValues": {"a": 1.5}, "nullCount": {"a": 0}}, ({}, {}, {"a": 0})),
    ],
)
def test_c414_a_bound_that_one_file_lacks_is_left_out(first: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """Unless the column has only nulls there."""
    other = stats(5, minValues={"a": 3}, maxValues={"a": 4}, nullCount={"a": 0})
    found = json.loads(merged_stats([stats(2, **first), other], COLUMNS[:1], string_prefix=32) or "")
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == expected
    assert (found["numRecords"], found["tightBounds"]) == (7, True)


def test_c413_bounds_are_wide_if_those_of_one_file_are() -> None:
    texts = [stats(1), stats(1, tightBounds=False)]
    assert json.loads(merged_stats(texts, COLUMNS, string_prefix=32) or "")["tightBounds"] is False


def test_nan_is_no_bound() -> None:
    texts = [stats(1, minValues={"f": 1.0}, maxValues={"f": "NaN"}, nullCount={"f": 0})] * 2
    found = json.loads(merged_stats(texts, COLUMNS, string_prefix=32) or "")
    assert found["minValues"] == {"f": 1.0}
    assert found["maxValues"] == {}


def test_a_file_without_a_number_of_records_has_no_merged_statistics() -> None:
    assert merged_stats([stats(1), stats(None)], COLUMNS, string_prefix=32) is None
    assert pa.array([merged_stats([stats(1)], (), string_prefix=32)]).null_count == 0
