"""Small files are read together: the rows are those of reading them one by one, whatever the files are like."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.data.planned import plan_of, rows_of, schema_of, write

from pyspark_delta.data import files
from pyspark_delta.data.reader import read_each, read_plan, tasks_of
from pyspark_delta.deletion_vectors import encode_inline, of_indexes
from pyspark_delta.errors import DataFileError
from pyspark_delta.scan.plan import RowIndex
from pyspark_delta.schema.types import LONG, STRING, TIMESTAMP, ArrayType, StructField, StructType

OLD = datetime(1500, 1, 1, tzinfo=UTC)
SCHEMA = schema_of(
    p=STRING,
    x=LONG,
    s=STRING,
    at=TIMESTAMP,
    tags=ArrayType(LONG, True),
    inner=StructType((StructField("x", LONG),)),
)
FLAT = ("p", "x", "s", "at")


def table(first: int, rows: int = 5) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table(
        {
            "x": pa.array(numbers, pa.int64()),
            "s": [f"text {n}" if n % 3 else None for n in numbers],
            "at": pa.array([OLD] * rows, pa.timestamp("us", tz="UTC")),
            "tags": pa.array([[n, None] for n in numbers], pa.list_(pa.int64())),
            "inner": pa.array([{"x": -n} for n in numbers]),
        }
    )


def with_column(data: pa.Table, name: str, values: Any) -> pa.Table:
    return data.set_column(data.column_names.index(name), name, values)


def many_kinds(folder: Path, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Write files of every kind, each beside two that are alike."""
    columns = [name for name in names if name != "p"]
    legacy = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
    kinds: list[tuple[pa.Table, dict[str, Any]]] = [
        (table(100).select(columns[::-1]), {}),
        (table(200).select([c for c in columns if c != "x"]), {}),
        (table(300), {"compression": "none", "version": "1.0"}),
        (with_column(table(400), "x", pa.array(range(5), pa.int32())), {}),
        (with_column(table(500), "s", table(500)["s"].dictionary_encode()), {}),
        (with_column(table(600), "s", table(600)["s"].cast(pa.string_view())), {}),
        (table(700), {"use_deprecated_int96_timestamps": True}),
        (table(800).replace_schema_metadata(legacy), {"store_schema": False}),
        (table(900), {"row_group_size": 2}),
        (table(1000, 0), {}),
        (table(1100), {"use_compliant_nested_type": False}),
        (table(1200).append_column("more", pa.array(range(5))), {}),
        (table(1300).select([c for c in columns if c != "s"]), {}),
    ]
    found = []
    for number, (data, options) in enumerate(kinds):
        chosen = data.select([c for c in data.column_names if c in (*columns, "more")])
        for file, what in (
            ("a", (table(number).select(columns), {})),
            ("b", (chosen, options)),
            ("c", (chosen, options)),
        ):
            row = write(folder, what[0], f"{number}{file}.parquet", **what[1])
            found.append({**row, "partition_values": {"p": str((number + (file == "c")) // 4)}})
    for number in (4, 9):
        found[number]["deletion_vector"] = encode_inline(of_indexes([1, 3]))
    return found


@pytest.mark.parametrize("names", [FLAT, tuple(SCHEMA.names)])
@pytest.mark.parametrize("where", [None, "x % 2 = 0", "x is null or x > 300", "p = '1'", "s is null"])
@pytest.mark.parametrize("extra", [(), (RowIndex(StructField("i", LONG)),)])
def test_files_read_together_have_the_rows_of_each(
    tmp_path: Path, names: tuple[str, ...], where: str | None, extra: tuple[RowIndex, ...]
) -> None:
    given = many_kinds(tmp_path, names)
    schema = StructType(tuple(field for field in SCHEMA if field.name in names))
    plan = plan_of(tmp_path, schema, given, partitions=["p"], where=where, extra=extra)
    each = list(read_each(plan.context, list(tasks_of(plan.files)), lambda _, batch: (batch,)))
    together = read_plan(plan, threads=1).read_all()
    assert together == pa.Table.from_batches(each, together.schema)
    assert together.num_rows


def test_equal_files_are_converted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [write(tmp_path, table(i).select(["x"]), f"{i}.parquet") for i in range(20)]
    converted = []
    convert = files.read_column
    monkeypatch.setattr(
        files, "read_column", lambda column, array: converted.append(len(array)) or convert(column, array)
    )
    assert len(rows_of(tmp_path, schema_of(x=LONG), given)) == 100
    assert sum(converted) == 100
    assert len(converted) < 5


def test_columns_in_groups_are_not_columns(tmp_path: Path) -> None:
    """The leaves of both files are equal: the path of the first is `x`, that of the second `x.x`."""
    required = pa.schema([pa.field("x", pa.struct([pa.field("x", pa.int64())]), nullable=False)])
    flat = write(tmp_path, pa.table({"x": pa.array([1])}), "flat.parquet", store_schema=False)
    grouped = write(tmp_path, pa.table({"x": [{"x": 2}]}, schema=required), "grouped.parquet", store_schema=False)
    schemas = [pq.read_metadata(tmp_path / str(file["path"])).schema for file in (flat, grouped)]
    assert schemas[0].equals(schemas[1])
    with pytest.raises(DataFileError, match=r"grouped\.parquet' holds column 'x' as struct"):
        rows_of(tmp_path, schema_of(x=LONG), [flat, grouped])


def test_columns_that_only_one_file_has_in_a_group(tmp_path: Path) -> None:
    kind = pa.struct([pa.field("x", pa.int64())])
    flat = write(tmp_path, pa.table({"x": pa.array([1])}), "flat.parquet", store_schema=False)
    data = pa.table({"y": [{"x": 2}]}, schema=pa.schema([pa.field("y", kind, nullable=False)]))
    grouped = write(tmp_path, data, "grouped.parquet", store_schema=False)
    schema = schema_of(y=StructType((StructField("x", LONG),)))
    assert rows_of(tmp_path, schema, [flat, grouped]) == [{"y": None}, {"y": {"x": 2}}]


def test_the_file_with_a_wrong_value_is_named(tmp_path: Path) -> None:
    values = [[1], [2**63], [3]]
    given = [write(tmp_path, pa.table({"x": pa.array(v, pa.uint64())}), f"{i}.parquet") for i, v in enumerate(values)]
    with pytest.raises(DataFileError, match=r"'x' of data file '.*1\.parquet' contains a value"):
        rows_of(tmp_path, schema_of(x=LONG), given)
