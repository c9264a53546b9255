"""Every codec gives back what it was given."""

from __future__ import annotations

import json
import math
import tempfile
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st
from pyroaring import BitMap64

from pyspark_delta.deletion_vectors import (
    encode_inline,
    of_indexes,
    read_deletion_vector,
    read_deletion_vectors,
    to_indexes,
    to_words,
    write_deletion_vectors,
    z85,
)
from pyspark_delta.deletion_vectors.bitmap import deserialize, serialize
from pyspark_delta.errors import DeletionVectorError
from pyspark_delta.schema.arrow import schema_from_arrow, schema_to_arrow, to_arrow
from pyspark_delta.schema.json import parse_schema, schema_to_json
from pyspark_delta.schema.partition_values import parse_partition_column, serialize_partition_column
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    YEAR_MONTH_INTERVAL,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from pyspark_delta.storage import store_for

# Scattered values, dense blocks and runs, in several 32-bit buckets.
blocks = st.builds(
    lambda high, start, length, step: [(high << 32) + start + i * step for i in range(length)],
    st.integers(0, 2**31 - 1),
    st.integers(0, 200_000),
    st.integers(0, 9000),
    st.sampled_from([1, 2, 3, 1000]),
)
index_sets = st.lists(blocks | st.lists(st.integers(0, 2**63 - 1), max_size=20), max_size=4).map(
    lambda parts: sorted({i for part in parts for i in part})
)


@given(st.binary(max_size=200))
def test_z85(data: bytes) -> None:
    text = z85.encode(data)
    assert z85.decode(text)[: len(data)] == data
    assert len(text) == (len(data) + 3) // 4 * 5


@given(index_sets)
def test_bitmaps(indexes: list[int]) -> None:
    bitmap = of_indexes(np.array(indexes[::-1], np.int64))
    assert bitmap == BitMap64(indexes)
    assert to_indexes(deserialize(serialize(bitmap))).tolist() == indexes


@given(st.sets(st.integers(0, 5000)), st.none() | st.integers(0, 5000))
def test_packed_words(indexes: set[int], rows: int | None) -> None:
    words = to_words(BitMap64(indexes), rows)
    count = rows if rows is not None else max(indexes, default=-1) + 1
    assert len(words) == (count + 63) // 64
    for i in range(count):
        assert (int(words[i >> 6]) >> (i & 63) & 1 == 1) == (i in indexes)


@given(st.lists(index_sets, min_size=1, max_size=4))
def test_deletion_vector_files_and_inline_vectors(sets: list[list[int]]) -> None:
    vectors = [of_indexes(np.array(indexes, np.int64)) for indexes in sets]
    with tempfile.TemporaryDirectory() as folder:
        found = write_deletion_vectors(store_for(folder), folder, vectors)
        assert read_deletion_vectors(store_for, folder, found) == vectors
    for vector in vectors:
        assert read_deletion_vector(store_for, "/t", encode_inline(vector)) == vector


@given(st.binary(max_size=80), st.booleans())
def test_damaged_bitmaps_raise_or_read_but_never_crash(noise: bytes, framed: bool) -> None:
    data = bytearray(serialize(BitMap64([1, 70_000, 2**33])))
    data = data[:4] + noise if framed else bytearray(noise + bytes(data[len(noise) :]))
    try:
        indexes = to_indexes(deserialize(bytes(data)))
    except DeletionVectorError:
        return
    assert (np.diff(indexes) > 0).all()


def partition_arrays(values: st.SearchStrategy[Any], data_type: DataType, storage: pa.DataType) -> Any:
    columns = st.lists(st.none() | values, max_size=20)
    return st.tuples(st.just(data_type), columns.map(lambda v: pa.array(v, storage).cast(to_arrow(data_type))))


MICROS = st.integers(-(2**62), 2**62)
partition_columns = st.one_of(
    partition_arrays(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), STRING, pa.string()),
    partition_arrays(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(str.encode), BINARY, pa.binary()
    ),
    partition_arrays(st.booleans(), BOOLEAN, pa.bool_()),
    partition_arrays(st.integers(-128, 127), BYTE, pa.int8()),
    partition_arrays(st.integers(-(2**15), 2**15 - 1), SHORT, pa.int16()),
    partition_arrays(st.integers(-(2**31), 2**31 - 1), INTEGER, pa.int32()),
    partition_arrays(st.integers(-(2**63), 2**63 - 1), LONG, pa.int64()),
    partition_arrays(st.floats(width=32), FLOAT, pa.float32()),
    partition_arrays(st.floats(), DOUBLE, pa.float64()),
    partition_arrays(st.decimals(-(10**8), 10**8, places=2), DecimalType(12, 2), pa.decimal128(12, 2)),
    partition_arrays(
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda i: Decimal(f"{i}E-18")),
        DecimalType(38, 18),
        pa.decimal128(38, 18),
    ),
    partition_arrays(st.integers(-(2**31), 2**31 - 1), DATE, pa.int32()),
    partition_arrays(MICROS, TIMESTAMP, pa.int64()),
    partition_arrays(MICROS, TIMESTAMP_NTZ, pa.int64()),
    partition_arrays(st.integers(-(2**31), 2**31 - 1), YEAR_MONTH_INTERVAL, pa.int32()),
    partition_arrays(st.integers(-(2**63), 2**63 - 1), DAY_TIME_INTERVAL, pa.int64()),
)


@given(partition_columns)
@example((DATE, pa.array([-(2**31), 2**31 - 1], pa.int32()).cast(pa.date32())))
def test_partition_values(column: tuple[DataType, pa.Array]) -> None:
    data_type, values = column
    text = serialize_partition_column(values, data_type)
    found = parse_partition_column(text, data_type)
    assert found.type == values.type
    if data_type in (FLOAT, DOUBLE):
        for a, b in zip(found.to_pylist(), values.to_pylist(), strict=True):
            assert a == b or (a is not None and b is not None and math.isnan(a) and math.isnan(b))
    else:
        assert found.equals(values)


names = st.text(min_size=1, max_size=8)
leaves: st.SearchStrategy[DataType] = st.sampled_from(
    [STRING, LONG, INTEGER, SHORT, BYTE, FLOAT, DOUBLE, BOOLEAN, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VARIANT]
) | st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: DecimalType(p, s)))


def structs(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    return st.dictionaries(names, st.tuples(types, st.booleans()), max_size=4).map(
        lambda fields: StructType(tuple(StructField(n, t, nullable) for n, (t, nullable) in fields.items()))
    )


data_types: st.SearchStrategy[DataType] = st.recursive(
    leaves,
    lambda inner: (
        st.builds(ArrayType, inner, st.booleans()) | st.builds(MapType, inner, inner, st.booleans()) | structs(inner)
    ),
    max_leaves=8,
)


@given(structs(data_types), st.dictionaries(names, st.integers(-(2**63), 2**63 - 1) | st.text()))
def test_schemas_as_json_and_as_arrow(schema: StructType, metadata: dict[str, Any]) -> None:
    assert schema_from_arrow(schema_to_arrow(schema)) == schema
    with_metadata = StructType((*schema.fields, StructField("m", LONG, True, metadata)))
    text = schema_to_json(with_metadata)
    assert parse_schema(text) == with_metadata
    assert json.loads(schema_to_json(parse_schema(text))) == json.loads(text)
