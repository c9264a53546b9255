"""Columns whose values repeat get a dictionary; those of distinct values are written as they are."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.data.dictionaries import dictionary_columns

ROWS = 200_000


def chosen(values: pa.Array | pa.ChunkedArray) -> bool:
    return dictionary_columns(pa.table({"x": values})) == ["x"]


def test_values_that_repeat_get_a_dictionary() -> None:
    mixed = np.random.default_rng(1)
    assert chosen(pa.array(mixed.integers(0, 500, ROWS)))
    assert chosen(pa.array(np.arange(ROWS) // 20))  # in runs
    assert chosen(pa.array([1.5] * 10))
    assert chosen(pa.array(np.where(mixed.random(ROWS) < 0.99, 0, np.arange(ROWS))))  # one value nearly everywhere
    assert chosen(pa.array([f"city {i % 997}" for i in range(ROWS)]))
    assert chosen(pa.nulls(10, pa.int32()))
    assert chosen(
        pa.array(np.random.default_rng(1).permutation(np.arange(ROWS) // 3))
    )  # three of each, which a sample hardly shows
    long = pa.array(["x" * 2000, "y" * 2000])
    assert chosen(long.take(pa.array(np.arange(20_000) % 2)))  # two of many bytes


def test_distinct_values_and_those_that_fill_a_page_get_none() -> None:
    mixed = np.random.default_rng(1)
    assert not chosen(pa.array(np.arange(ROWS)))
    assert not chosen(pa.array(np.arange(100)))
    assert not chosen(pa.array(mixed.random(ROWS)))
    assert not chosen(pa.array([f"{i // 4:0100d}" for i in range(ROWS)]))  # 50,000 values of a hundred bytes
    assert not chosen(pa.array([None, *range(5000)]))
    for size in (1000, 50):  # many batches, and more than rows in a sample
        parts = [pa.array(np.arange(start, start + size)) for start in range(0, ROWS, size)]
        assert not chosen(pa.chunked_array(parts))


def test_nested_columns_are_named_as_in_the_file() -> None:
    inner = pa.struct([("z", pa.int32())])
    nested = pa.struct(
        [("a", pa.int64()), ("l", pa.list_(pa.field("element", inner))), ("m", pa.map_("string", inner))]
    )
    value = {"a": 1, "l": [{"z": 2}], "m": [("k", {"z": 3})]}
    rows = pa.table({"s": pa.array([value] * 3, nested), "id": [1, 2, 3]})
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, rows.schema, use_dictionary=dictionary_columns(rows)) as writer:
        writer.write_table(rows)
    group = pq.read_metadata(sink).row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    with_dictionary = {column.path_in_schema for column in columns if "RLE_DICTIONARY" in column.encodings}
    assert with_dictionary == {c.path_in_schema for c in columns} - {"id"}
    assert len(with_dictionary) == 4
