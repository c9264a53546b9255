"""Statistics of written files bound every value, whatever the values are."""

from __future__ import annotations

import json
import math
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_delta.data.parts import write_files
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.schema.arrow import schema_from_arrow
from pyspark_delta.stats.indexed_columns import stats_columns

_TEXT = st.one_of(
    st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=40),
    st.text(alphabet="a\U0010ffff", min_size=30, max_size=40),
    st.integers(4000, 4200).map(lambda n: "x" * n),
)
_COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "f": (pa.float64(), st.floats()),
    "g": (pa.float32(), st.floats(width=32)),
    "s": (pa.string(), _TEXT),
    "d": (pa.date32(), st.dates()),
    "t": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "n": (pa.decimal128(20, 4), st.decimals(-(10**15), 10**15, places=4)),
}
_ROWS = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in _COLUMNS.items()})


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(_ROWS, min_size=1, max_size=6), row_group=st.integers(1, 3))
def test_c408_c412_bounds_hold_for_every_row(rows: list[dict[str, Any]], row_group: int) -> None:
    schema = pa.schema([(name, arrow_type) for name, (arrow_type, _) in _COLUMNS.items()])
    delta = schema_from_arrow(schema)
    with tempfile.TemporaryDirectory() as directory:
        context = WriteContext(directory, delta, delta, stats_columns=stats_columns(delta), row_group_rows=row_group)
        batches = pa.Table.from_pylist(rows, schema).to_batches(max_chunksize=1)
        [file] = write_files(context, batches)
        read = pq.read_table(f"{directory}/{file.path}").to_pylist()
    assert len(read) == len(rows) == file.num_records
    stats = json.loads(file.stats, parse_float=Decimal)
    assert stats["numRecords"] == len(rows)
    for name in _COLUMNS:
        values = [row[name] for row in rows if row[name] is not None]
        assert stats["nullCount"][name] == len(rows) - len(values)
        if name in stats["minValues"]:
            assert all(_at_least(value, stats["minValues"][name]) for value in values)
        if name in stats["maxValues"]:
            assert all(_at_most(value, stats["maxValues"][name]) for value in values)


def _at_least(value: Any, bound: Any) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return True  # NaN is the largest number
    return bool(_comparable(value) >= _bound(value, bound))


def _at_most(value: Any, bound: Any) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return False
    return bool(_comparable(value) <= _bound(value, bound))


def _comparable(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _bound(value: Any, bound: Any) -> Any:
    match value:
        case str():
            return bound.encode()
        case datetime():
            return datetime.fromisoformat(bound)
        case date():
            return date.fromisoformat(bound)
        case float():
            return float(bound)
        case _:
            return bound
