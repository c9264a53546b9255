"""Arrow batches become files: names, partitions, row groups, limits, and what happens when it goes wrong."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta.data.partition_paths import NULL_DIRECTORY, partition_directory
from pyspark_delta.data.parts import write_all, write_files, write_in_any_order, write_side_by_side
from pyspark_delta.data.writer import WriteContext, WrittenFile, written_files
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.schema.arrow import schema_from_arrow
from pyspark_delta.schema.types import (
    BINARY,
    INTEGER,
    LONG,
    STRING,
    VARIANT,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from pyspark_delta.stats.indexed_columns import stats_columns


def context(location: Path | str, table: pa.Table, *partition: str, **options: Any) -> WriteContext:
    schema = schema_from_arrow(table.schema)
    data = StructType(tuple(f for f in schema if f.name not in partition))
    return WriteContext(str(location), schema, data, partition, partition, stats_columns=stats_columns(data), **options)


def contents(location: Path | str, file: WrittenFile) -> list[dict[str, Any]]:
    return pq.read_table(f"{location}/{unquote(file.path)}", partitioning=None).to_pylist()


def test_c014_c138_a_file_has_a_unique_name_and_its_size(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2]})
    files = [file for _ in range(3) for file in write_files(context(tmp_path, table), table.to_batches(), part=7)]
    assert len({file.path for file in files}) == 3
    for file in files:
        assert file.path.startswith("part-00007-")
        assert file.path.endswith(".c000.snappy.parquet")
        assert file.size == (tmp_path / file.path).stat().st_size
        assert file.num_records == 2
        assert contents(tmp_path, file) == table.to_pylist()


def test_no_rows_no_file(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([], pa.int32())})
    assert list(write_files(context(tmp_path, table), [])) == []
    assert list(write_files(context(tmp_path, table), [pa.RecordBatch.from_pylist([], table.schema)])) == []
    assert list(tmp_path.iterdir()) == []


def test_small_batches_are_gathered_into_large_row_groups(tmp_path: Path) -> None:
    table = pa.table({"x": range(1000)})
    [file] = write_files(context(tmp_path, table, row_group_rows=400), table.to_batches(max_chunksize=50))
    footer = pq.read_metadata(tmp_path / file.path)
    assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [400, 400, 200]


def test_row_groups_are_limited_in_bytes(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(range(1000), pa.int64())})
    [file] = write_files(context(tmp_path, table, row_group_bytes=8 * 250), table.to_batches(max_chunksize=50))
    assert pq.read_metadata(tmp_path / file.path).num_row_groups == 4


def test_footers_have_no_bounds_of_numbers_that_may_be_nan(tmp_path: Path) -> None:
    """They would not count NaN, which Spark takes for the greatest number when it skips row groups."""
    rows = {"x": [8.0, float("nan"), None], "n": [1, 2, 3], "s": [{"f": -1.5, "l": [2.5]}, None, {"f": 3.0, "l": []}]}
    [file] = write_files(context(tmp_path, table := pa.table(rows)), table.to_batches())
    group = pq.read_metadata(tmp_path / file.path).row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    assert [c.path_in_schema for c in columns if c.statistics is not None] == ["n"]
    stats = json.loads(file.stats)
    assert stats["minValues"] == {"x": 8.0, "n": 1, "s": {"f": -1.5}}
    assert stats["maxValues"] == {"n": 3, "s": {"f": 3.0}}
    assert stats["nullCount"] == {"x": 1, "n": 0, "s": {"f": 1, "l": 1}}


def test_files_are_limited_in_rows_and_bytes(tmp_path: Path) -> None:
    table = pa.table({"x": range(1000)})
    files = list(write_files(context(tmp_path, table, max_records_per_file=300), table.to_batches(max_chunksize=70)))
    assert [file.num_records for file in files] == [300, 300, 300, 100]
    assert [file.path.rpartition(".c")[2] for file in files] == [f"{i:03d}.snappy.parquet" for i in range(4)]
    limited = context(tmp_path, table, target_file_size=1000, row_group_rows=500)
    assert [file.num_records for file in write_files(limited, table.to_batches(max_chunksize=50))] == [500, 500]


def test_c139_c373_partitions_get_files_of_their_own(tmp_path: Path) -> None:
    table = pa.table({"p": ["a", "a", None, "b/c"], "x": [1, 2, 3, 4], "q": [1, 1, 1, 1]})
    files = list(write_files(context(tmp_path, table, "q", "p"), table.to_batches()))
    assert [dict(file.partition_values) for file in files] == [
        {"q": "1", "p": "a"},
        {"q": "1", "p": None},
        {"q": "1", "p": "b/c"},
    ]
    assert [contents(tmp_path, file) for file in files] == [[{"x": 1}, {"x": 2}], [{"x": 3}], [{"x": 4}]]
    assert files[2].path.startswith("q=1/p=b%252Fc/part-")


def test_a_partition_goes_on_over_batches(tmp_path: Path) -> None:
    table = pa.table({"p": [1] * 5 + [2] * 5, "x": range(10)})
    files = list(write_files(context(tmp_path, table, "p"), table.to_batches(max_chunksize=3)))
    assert [file.num_records for file in files] == [5, 5]


def test_types_of_the_table_win_over_types_of_the_batches(tmp_path: Path) -> None:
    schema = StructType((StructField("x", INTEGER),))
    wide = pa.table({"x": pa.array([1, 2], pa.int64())})
    [file] = write_files(WriteContext(str(tmp_path), schema, schema), wide.to_batches())
    assert pq.read_schema(tmp_path / file.path).field("x").type == pa.int32()
    large = pa.table({"x": pa.array([2**40], pa.int64())})
    with pytest.raises(ConstraintViolationError, match="does not fit the type int32 of the column 'x'"):
        list(write_files(WriteContext(str(tmp_path), schema, schema), large.to_batches()))


def test_a_failure_leaves_no_half_written_file(tmp_path: Path) -> None:
    table = pa.table({"x": range(10)})

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        list(write_files(context(tmp_path, table, row_group_rows=2), batches()))
    assert list(tmp_path.rglob("*")) == []
    schema = StructType((StructField("x", INTEGER),))
    unfit = pa.table({"x": [1, 2, 2**40]}).to_batches(max_chunksize=2)  # seen when the file ends
    with pytest.raises(ConstraintViolationError, match="'x'"):
        list(write_files(WriteContext(str(tmp_path), schema, schema, row_group_rows=2), unfit))
    assert list(tmp_path.rglob("*")) == []


def test_null_in_a_not_null_column(tmp_path: Path) -> None:
    inner = StructType((StructField("a", LONG, nullable=False), StructField("b", LONG)))
    schema = StructType((StructField("s", inner), StructField("x", LONG, nullable=False)))
    write = WriteContext(str(tmp_path), schema, schema)
    arrow = pa.schema([("s", pa.struct([("a", pa.int64()), ("b", pa.int64())])), ("x", pa.int64())])
    good = pa.Table.from_pylist([{"s": None, "x": 1}, {"s": {"a": 1, "b": None}, "x": 2}], arrow)
    assert len(list(write_files(write, good.to_batches()))) == 1
    for row, column in (({"s": None, "x": None}, "x"), ({"s": {"a": None, "b": 1}, "x": 1}, "s.a")):
        with pytest.raises(ConstraintViolationError) as caught:
            list(write_files(write, pa.Table.from_pylist([row], arrow).to_batches()))
        assert caught.value.facts["column"] == column


@pytest.mark.parametrize("write", [write_all, write_in_any_order, write_side_by_side])
@pytest.mark.parametrize("empty", ["", b""])
def test_c416_empty_partition_values_are_null_before_not_null_is_checked(
    tmp_path: Path, write: Callable[..., list[WrittenFile]], empty: str | bytes
) -> None:
    kind = STRING if isinstance(empty, str) else BINARY
    for nullable in (False, True):
        schema = StructType((StructField("p", kind, nullable), StructField("x", kind, nullable=False)))
        partition = ("p",)
        stored = StructType(schema.fields[::-1])
        context = WriteContext(str(tmp_path), schema, stored, partition, partition, stores_partition_columns=True)
        rows = pa.table({"p": [empty, None][: nullable + 1], "x": [empty, empty][: nullable + 1]}).to_batches()
        if nullable:
            [file] = write(context, rows)
            assert file.partition_values == {"p": None}
            assert (
                pq.read_table(tmp_path / unquote(file.path), partitioning=None).to_pylist()
                == [{"p": None, "x": empty}] * 2
            )
        else:
            with pytest.raises(ConstraintViolationError) as caught:
                write(context, rows)
            assert caught.value.facts["column"] == "p"
            assert list(tmp_path.rglob("*.parquet")) == []


def test_null_inside_collections_counts_where_the_collection_is_there(tmp_path: Path) -> None:
    """Maps and lists that are null may have entries beneath, as masked arrays do."""
    schema = StructType((StructField("m", MapType(STRING, LONG, False)), StructField("l", ArrayType(LONG, False))))
    write = WriteContext(str(tmp_path), schema, schema)
    offsets, keys, items = pa.array([0, 1, 2, 3], pa.int32()), pa.array(["a", "b", "c"]), pa.array([1, None, 3])

    def batch(*null: bool) -> pa.RecordBatch:
        mask = pa.array(null)
        lists = pa.ListArray.from_arrays(offsets, items, mask=mask)
        return pa.RecordBatch.from_arrays([pa.MapArray.from_arrays(offsets, keys, items, mask=mask), lists], ["m", "l"])

    good = batch(False, True, False)
    [file] = write_files(write, [good, good.slice(1)])
    assert pq.read_table(tmp_path / file.path)["m"].to_pylist() == [[("a", 1)], None, [("c", 3)], None, [("c", 3)]]
    for column, other in (("m", "l"), ("l", "m")):
        mixed = batch(True, False, True)
        mixed = mixed.set_column(mixed.schema.get_field_index(other), other, good[other])
        with pytest.raises(ConstraintViolationError, match=f"'{column}.(value|element)' is NOT NULL, but 1 of"):
            list(write_files(write, [mixed]))


@pytest.mark.parametrize("present", [[True, False], [False, False], [True, True]])
def test_null_variants_below_renamed_structs(tmp_path: Path, present: list[bool]) -> None:
    """Of a null struct Spark hands over null binaries, though they are declared without; one row is a slice of two."""
    binaries = [
        pa.array([part if here else None for here in present], pa.binary()) for part in (b"\x0c\x01", b"\1\0\0")
    ]
    storage = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")])
    nulls = binaries[0].buffers()[0]
    variant = pa.Array.from_buffers(storage, 2, [nulls], -1, 0, binaries)
    column = pa.Array.from_buffers(pa.struct([("v", storage)]), 2, [nulls], -1, 0, [variant])
    logical, physical = (StructType((StructField(s, StructType((StructField(v, VARIANT),))),)) for s, v in ("sv", "xy"))
    whole, read = pa.table({"s": column}), []
    for rows in (whole, whole.slice(0, 1), whole.slice(1)):
        [file] = write_files(WriteContext(str(tmp_path), logical, physical), rows.to_batches())
        stored = pq.ParquetFile(tmp_path / file.path, arrow_extensions_enabled=False).read()
        read += [row["x"] and row["x"]["y"]["value"] for row in stored.to_pylist()]
    values = [b"\x0c\x01" if here else None for here in present]
    assert read == [*values, *values]


def test_memory_store(tmp_path: Path) -> None:
    table = pa.table({"x": [1]})
    location = f"memory://{tmp_path.name}/t"
    [file] = write_files(context(location, table), table.to_batches())
    assert file.size > 0


def test_context_travels_to_workers(tmp_path: Path) -> None:
    table = pa.table({"x": [1], "p": [1]})
    write = context(tmp_path, table, "p")
    assert pickle.loads(pickle.dumps(write)) == write


def test_files_as_columns(tmp_path: Path) -> None:
    table = pa.table({"x": [1], "p": [1]})
    files = list(write_files(context(tmp_path, table, "p"), table.to_batches()))
    [row] = written_files(files).to_pylist(maps_as_pydicts="strict")
    assert row["partition_values"] == {"p": "1"}
    assert json.loads(row["stats"])["numRecords"] == row["num_records"] == 1


@pytest.mark.parametrize(
    ("value", "directory"),
    [
        ("plain", "p=plain"),
        (None, f"p={NULL_DIRECTORY}"),
        ("", f"p={NULL_DIRECTORY}"),
        ("a/b=c", "p=a%2Fb%3Dc"),
        ("100%", "p=100%25"),
        ("a b", "p=a b"),
        ("ü\U0001f600", "p=ü\U0001f600"),
        ("\x00\x01\x1f\x7f", "p=%00%01%1F%7F"),
        ("\"#'*:?\\{[]^", "p=%22%23%27%2A%3A%3F%5C%7B%5B%5D%5E"),
    ],
)
def test_c006_directories_as_hive_escapes_them(value: str | None, directory: str) -> None:
    assert partition_directory([("p", value)]) == directory


def test_directories_fit_a_file_system() -> None:
    assert len(partition_directory([("p", "ü" * 500)]).encode()) < 255
    assert partition_directory([("a", "1"), ("b", "2")]) == "a=1/b=2"
