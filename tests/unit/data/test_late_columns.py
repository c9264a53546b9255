"""Columns that a predicate does not name are read late, only where it is true for some row; rows are the same."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.data.planned import plan_of, rows_of, schema_of, write

from pyspark_delta.data import files
from pyspark_delta.data.reader import read_plan
from pyspark_delta.deletion_vectors import encode_inline, of_indexes
from pyspark_delta.errors import DataFileError
from pyspark_delta.scan.plan import RowId, RowIndex
from pyspark_delta.schema.types import LONG, STRING, TIMESTAMP, ArrayType, StructField, StructType

EXTRA = [RowId(StructField("_row_id", LONG), "mat_id"), RowIndex(StructField("_row", LONG))]
SCHEMA = StructType(
    (
        *schema_of(x=LONG, p=STRING, word=STRING, city=STRING, at=TIMESTAMP, absent=STRING).fields,
        StructField("s", StructType((StructField("a", LONG), StructField("b", STRING)))),
        StructField("list", ArrayType(STRING)),
    )
)
ROWS = 1000


def made(folder: Path) -> dict[str, Any]:
    numbers = [None if i % 11 == 0 else i % 50 for i in range(ROWS)]
    table = pa.table(
        {
            "x": pa.array(numbers, pa.int64()),
            "word": pa.array([f"w{i % 7}" for i in range(ROWS)], pa.string_view()),
            "city": pa.array([f"c{i // 200}{i % 3}" for i in range(ROWS)]).dictionary_encode(),
            "at": pa.array([datetime(2020, 1, 1 + i % 28) for i in range(ROWS)], pa.timestamp("us", "UTC")),
            "s": [None if i % 5 == 0 else {"a": i, "b": f"b{i}"} for i in range(ROWS)],
            "list": [[f"l{i}"] * (i % 3) for i in range(ROWS)],
            "mat_id": pa.array([None if i % 2 else -i for i in range(ROWS)], pa.int64()),
        }
    )
    file = write(folder, table, row_group_size=100)
    gone = np.flatnonzero(np.arange(ROWS) % 13 == 0)
    vector = encode_inline(of_indexes(gone))
    return file | {"deletion_vector": vector, "base_row_id": 5000, "partition_values": {"p": "one"}}


@pytest.mark.parametrize("output", [None, ["word"], ["_row"], []])
@pytest.mark.parametrize(
    "where",
    [
        "x = 7",
        "x = 7 and word = 'w0'",
        "x is null or city = 'c31'",
        "city = 'c31'",
        "s.a between 450 and 520",
        "p = 'one' and s.b = 'b7'",
        "p = 'two' and x = 7",
        "x = 1000",
        "x >= 0",
        "at < '2020-01-03' and absent is null",
        "list is not null and x = 3",
    ],
)
def test_rows_are_those_of_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, output: list[str] | None
) -> None:
    plan = plan_of(tmp_path, SCHEMA, [made(tmp_path)] * 2, partitions=["p"], where=where, output=output, extra=EXTRA)
    monkeypatch.setattr(files, "_LATE_BYTES", 1 << 60)
    at_once = read_plan(plan).read_all()
    monkeypatch.setattr(files, "_LATE_BYTES", 0)
    assert read_plan(plan).read_all().combine_chunks().equals(at_once.combine_chunks())
    assert bool(at_once.num_rows) == (where not in ("p = 'two' and x = 7", "x = 1000"))


def test_other_columns_of_row_groups_without_a_row_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LATE_BYTES", 500)
    keys, texts = [i % 100 * 10 for i in range(1000)], ["text" * 10] * 1000
    keys[150] = 5  # bounds do not tell that it is nowhere else
    file = write(
        tmp_path, pa.table({"x": keys, "y": texts}), row_group_size=100, compression="none", use_dictionary=False
    )
    content = bytearray((tmp_path / "f.parquet").read_bytes())
    metadata = pq.read_metadata(tmp_path / "f.parquet")
    for group in (0, 2, 9):
        chunk = metadata.row_group(group).column(1)
        start, size = chunk.data_page_offset, chunk.total_compressed_size
        content[start : start + size] = b"\xff" * size
    (tmp_path / "f.parquet").write_bytes(content)
    schema = schema_of(x=LONG, y=STRING)
    assert rows_of(tmp_path, schema, [file], where="x = 5") == [{"x": 5, "y": "text" * 10}]
    assert rows_of(tmp_path, schema, [file], where="x = 6") == []
    with pytest.raises(DataFileError, match="cannot be read as Parquet"):
        rows_of(tmp_path, schema, [file], where="x = 10")


@pytest.mark.parametrize(("late", "expected"), [(1 << 20, [("x", "y")]), (10, [("x",), ("y",)])])
def test_little_is_read_at_once_and_else_each_column_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: int, expected: list[tuple[str, ...]]
) -> None:
    monkeypatch.setattr(files, "_LATE_BYTES", late)
    monkeypatch.setattr(files, "_SMALL_ROWS", 0)
    file = write(tmp_path, pa.table({"x": range(100), "y": ["t"] * 100}))
    read: list[tuple[str, ...]] = []
    raw_rows = files.raw_rows
    monkeypatch.setattr(
        files, "raw_rows", lambda *given, **more: read.append(given[2].names) or raw_rows(*given, **more)
    )
    assert len(rows_of(tmp_path, schema_of(x=LONG, y=STRING), [file], where="x % 50 = 7")) == 2
    assert read == expected
