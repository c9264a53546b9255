"""Statistics of existing files are those that the writer would have made."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.commits import draft
from tests.declarations import declare, field, protocol

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.data.column_statistics import MeasuredColumn, with_column_statistics
from pyspark_delta.deletion_vectors import encode_inline, of_indexes
from pyspark_delta.errors import DataFileError
from pyspark_delta.protocol.statistics import table_stats_columns
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.transaction import Transaction

FIELDS = {
    "byte": "byte",
    "short": "short",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "small": "decimal(9,2)",
    "large": "decimal(38,10)",
    "text": "string",
    "date": "date",
    "ts": "timestamp",
    "ntz": "timestamp_ntz",
    "empty": "long",
}
NINES = Decimal("999999999999999999999999999.9999999999")
COLUMNS: dict[str, list[Any]] = {
    "byte": [-5, 7, None],
    "short": [300, -300, 0],
    "int": [-7, None, 9],
    "long": [2**62 + 1, -(2**62) - 1, None],
    "float": [1.5, math.nan, -2.5],
    "double": [-0.0, 0.0, math.inf],
    "small": [Decimal("-1.25"), Decimal("7.25"), None],
    "large": [NINES, -NINES, None],
    "text": ["z" * 40, "a\U0010ffff" * 20, None],
    "date": [date(1, 1, 1), None, date(9999, 12, 31)],
    "ts": [datetime(1960, 1, 1, 0, 0, 0, 1, UTC), datetime(2030, 1, 1, 0, 0, 0, 999_999, UTC), None],
    "ntz": [datetime(2020, 1, 1), datetime(1900, 1, 1), None],
    "empty": [None, None, None],
}
ROWS = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]


def columns_of(snapshot: Snapshot, *paths: tuple[str, ...]) -> list[MeasuredColumn]:
    """Columns of a table without column mapping; all that have bounds unless paths are given."""
    found = [MeasuredColumn(c.path, c) for c in table_stats_columns(snapshot.configuration) if c.has_bounds]
    return [c for c in found if not paths or c.path in paths]


def measured(snapshot: Snapshot, files: pa.Table, *paths: tuple[str, ...]) -> list[dict[str, Any]]:
    columns = columns_of(snapshot, *paths)
    made = with_column_statistics(files, snapshot.location, snapshot.configuration, columns, {})
    assert made.drop_columns("stats").equals(files.drop_columns("stats"))
    return [json.loads(text) for text in made["stats"].to_pylist()]


def all_columns(snapshot: Snapshot) -> pa.Table:
    return snapshot.files(tuple(f.name for f in FILE_FIELDS))


def without_stats(files: pa.Table) -> pa.Table:
    return files.set_column(files.column_names.index("stats"), "stats", pa.nulls(len(files), pa.string()))


def write(location: Path, batches: list[pa.RecordBatch], fields: list[dict[str, Any]], **properties: str) -> Snapshot:
    """A table with a file for each batch."""
    listed = protocol(3, 7, readers=("timestampNtz",), writers=("timestampNtz",))
    with Transaction.creating(str(location), declare(listed, properties, fields)) as transaction:
        transaction.stage(draft())
        for batch in batches:
            transaction.write([batch])
    return Snapshot.load(str(location))


@pytest.mark.parametrize("prefix", ["32", "3"])
def test_they_are_those_of_the_writer(prefix: str, tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [field(name, kind) for name, kind in FIELDS.items()]}
    fields = [
        *(field(name, kind) for name, kind in FIELDS.items()),
        field("s.t", {"type": "struct", "fields": [field("in", inner)]}),
    ]
    rows: list[dict[str, Any]] = [{**row, "s.t": {"in": row}} for row in ROWS]
    rows.append({**dict.fromkeys(FIELDS), "s.t": {"in": None}})
    rows.append({**dict.fromkeys(FIELDS), "s.t": None})
    batches = [pa.RecordBatch.from_pylist(some) for some in (rows, rows[:1], rows[1:2])]
    properties = {"delta.dataSkippingNumIndexedCols": "-1", "delta.dataSkippingStringPrefixLength": prefix}
    snapshot = write(tmp_path / "t", batches, fields, **properties)
    files = all_columns(snapshot)
    written = [json.loads(text) for text in files["stats"].to_pylist()]
    assert all(len(stats["nullCount"]) == len(FIELDS) + 1 for stats in written)
    found = measured(snapshot, without_stats(files))
    expected = [{name: value for name, value in stats.items() if name != "tightBounds"} for stats in written]
    assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)  # the sign of zero counts


def test_other_statistics_keep_their_text(tmp_path: Path) -> None:
    snapshot = write(tmp_path / "t", [pa.RecordBatch.from_pylist([{"a": 1, "b": 2}])], [field("a"), field("b")])
    text = '{"minValues" : {"b":1.999999999999999999999,"a":0},"numRecords":7, "x":[1.0e0], "tightBounds":false}'
    files = all_columns(snapshot)
    files = files.set_column(files.column_names.index("stats"), "stats", pa.array([text]))
    made = with_column_statistics(files, snapshot.location, snapshot.configuration, columns_of(snapshot, ("a",)), {})
    expected = (
        '{"minValues":{"b":1.999999999999999999999,"a":1},"numRecords":1,"x":[1.0e0],"tightBounds":false,'
        '"nullCount":{"a":0},"maxValues":{"a":1}}'
    )
    assert made["stats"].to_pylist() == [expected]


def test_footers_are_enough_for_whole_numbers_and_no_other_column_is_decoded(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pylist([{"n": n, "text": f"text {n}", "other": n / 3} for n in range(1000)])
    snapshot = write(tmp_path / "t", [batch], [field("n"), field("text", "string"), field("other", "double")])
    files = all_columns(snapshot)
    path = tmp_path / "t" / files["path"][0].as_py()
    damage(path, "n", "other")
    [stats] = measured(snapshot, without_stats(files), ("n",), ("text",))
    assert stats["minValues"] == {"n": 0, "text": "text 0"}
    assert stats["maxValues"] == {"n": 999, "text": "text 999"}
    with pytest.raises(DataFileError):
        measured(snapshot, files, ("other",))


def damage(path: Path, *columns: str) -> None:
    """Overwrite the pages of columns."""
    group, content = pq.read_metadata(path).row_group(0), bytearray(path.read_bytes())
    for number in range(group.num_columns):
        chunk = group.column(number)
        if chunk.path_in_schema in columns:
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)


def test_files_of_other_writers(tmp_path: Path) -> None:
    """Other types, no statistics in the footer, several row groups, a missing column."""
    kinds = {"n": "long", "ts": "timestamp", "d": "decimal(12,2)", "gone": "string"}
    snapshot = write(
        tmp_path / "t", [pa.RecordBatch.from_pylist([dict.fromkeys(kinds)])], [field(*one) for one in kinds.items()]
    )
    files = without_stats(all_columns(snapshot))
    path = tmp_path / "t" / files["path"][0].as_py()
    moments = pa.array([datetime(2020, 1, 1, microsecond=1), None, datetime(2010, 1, 1)], pa.timestamp("ns", "UTC"))
    other = pa.table(
        {"n": pa.array([3, None, -2], pa.int32()), "ts": moments, "d": [Decimal("1.5"), Decimal("-2.5"), None]}
    )
    expected = {
        "numRecords": 3,
        "minValues": {"n": -2, "ts": "2010-01-01T00:00:00.000Z", "d": -2.5},
        "maxValues": {"n": 3, "ts": "2020-01-01T00:00:00.001Z", "d": 1.5},
        "nullCount": {"n": 1, "ts": 1, "d": 1, "gone": 3},
    }
    for options in ({}, {"write_statistics": False}, {"row_group_size": 1}, {"use_deprecated_int96_timestamps": True}):
        pq.write_table(other, path, **options)
        assert measured(snapshot, files) == [expected], options


def test_timestamps_of_the_old_calendar_have_no_bounds(tmp_path: Path) -> None:
    """Their moments depend on the zone of the session that reads them."""
    snapshot = write(tmp_path / "t", [pa.RecordBatch.from_pylist([dict.fromkeys(("at", "day"))])],
                     [field("at", "timestamp"), field("day", "date")])  # fmt: skip
    files = without_stats(all_columns(snapshot))
    rows = pa.table({"at": pa.array([datetime(1700, 1, 1)], pa.timestamp("us", "UTC")), "day": [date(1000, 1, 1)]})
    marked = rows.replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    pq.write_table(marked, tmp_path / "t" / files["path"][0].as_py())
    [stats] = measured(snapshot, files)
    assert stats["nullCount"] == {"at": 0, "day": 0}
    assert stats["minValues"] == stats["maxValues"] == {"day": "0999-12-27"}


def test_deleted_rows_count_and_bounds_are_wide(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pylist([{"text": "a"}, {"text": None}, {"text": "b"}])
    snapshot = write(tmp_path / "t", [batch], [field("text", "string")])
    files = without_stats(all_columns(snapshot))
    deleted = dataclasses.asdict(encode_inline(of_indexes(np.array([0, 1], np.int64))))
    column = files.schema.field("deletion_vector")
    vector = pa.array([{f.name: deleted[f.name] for f in column.type}], column.type)
    files = files.set_column(files.column_names.index(column.name), column, vector)
    assert measured(snapshot, files) == [
        {
            "numRecords": 3,
            "minValues": {"text": "a"},
            "maxValues": {"text": "b"},
            "nullCount": {"text": 1},
            "tightBounds": False,
        }
    ]
