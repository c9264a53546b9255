"""Shredded variants, as Spark writes them, put together again."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.data.planned import plan_of, rows_of, schema_of, write

from pyspark_delta.data.reader import read_plan
from pyspark_delta.data.variants import reassemble
from pyspark_delta.errors import DataFileError
from pyspark_delta.schema.types import VARIANT

VECTORS = Path(__file__).parent / "vectors"
Decoder = Callable[[bytes, bytes], Any]


def stored(name: str) -> pa.Array:
    return pq.read_table(VECTORS / f"variant_{name}.parquet").column("v").combine_chunks()


def decoded(array: pa.Array, decode: Decoder) -> list[Any]:
    return [None if row is None else plain(decode(row["metadata"], row["value"])) for row in array.to_pylist()]


def plain(value: Any) -> Any:
    """Decimals as numbers: a shredded decimal takes the scale of its column."""
    if isinstance(value, dict):
        if set(value) == {"$dec"}:
            return Decimal(value["$dec"])
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


@pytest.mark.parametrize("name", ["object", "strings", "other_object", "array_of_objects", "string"])
def test_a3_shredded_variants_equal_the_unshredded_ones(name: str, decode: Decoder) -> None:
    expected = decoded(stored("plain"), decode)
    found = reassemble(stored(name))
    assert decoded(found, decode) == expected
    assert decoded(reassemble(stored(name).slice(7, 9)), decode) == expected[7:16]
    assert any(value is None for value in expected)


def test_a3_fields_of_every_type(decode: Decoder) -> None:
    expected = decoded(stored("every_type_plain"), decode)
    assert decoded(reassemble(stored("every_type")), decode) == expected
    assert len(expected[0]) == 16


def test_a2_a3_shredded_and_plain_files_mix(tmp_path: Path, decode: Decoder) -> None:
    files = []
    for name in ("plain", "object"):
        table = pq.read_table(VECTORS / f"variant_{name}.parquet", columns=["v"])
        files.append(write(tmp_path, table, f"{name}.parquet"))
    table = read_plan(plan_of(tmp_path, schema_of(v=VARIANT), files)).read_all()
    half = table.num_rows // 2
    found = decoded(table.column("v").combine_chunks(), decode)
    assert found[:half] == found[half:]


def shredded(typed: pa.Array, value: list[bytes | None], metadata: bytes = b"\x01\x01\x00\x01a") -> pa.Array:
    arrays = [pa.array([metadata] * len(typed)), pa.array(value, pa.binary()), typed]
    return pa.StructArray.from_arrays(arrays, names=["metadata", "value", "typed_value"])


def test_a_variant_in_neither_form_is_the_variant_null(decode: Decoder) -> None:
    found = reassemble(shredded(pa.array([None, 5], pa.int64()), [None, None])).to_pylist()
    assert [row["value"] for row in found] == [b"\x00", b"\x18" + (5).to_bytes(8, "little")]


def test_long_strings_and_many_elements(decode: Decoder) -> None:
    texts = ["x" * n for n in (0, 63, 64, 70_000)]
    assert decoded(reassemble(shredded(pa.array(texts), [None] * 4)), decode) == texts
    element = pa.array([{"typed_value": i} for i in range(600)])
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 300, 600], pa.int32()), element)
    found = decoded(reassemble(shredded(lists, [None] * 3)), decode)
    assert found == [[], list(range(300)), list(range(300, 600))]


def test_the_fields_of_an_object_are_sorted_by_name() -> None:
    metadata = b"\x11\x03\x00\x01\x02\x03" + b"cab"
    typed = pa.array([{"c": {"typed_value": 1}, "b": {"typed_value": 2}}])
    rest = b"\x02\x01\x01\x00\x02" + b"\x0c\x07"  # {"a": 7}
    (row,) = reassemble(shredded(typed, [rest], metadata)).to_pylist()
    count = int.from_bytes(row["value"][1:5], "little")
    ids = [int.from_bytes(row["value"][5 + 4 * i : 9 + 4 * i], "little") for i in range(count)]
    assert ids == [1, 2, 0]


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (pa.array([{"b": {"typed_value": 1}}]), None),  # a name that the metadata does not have
        (pa.array([{"a": {"typed_value": 1}}]), b"\x0c\x05"),  # the rest is no object
        (pa.array([{"a": {"typed_value": 1}}]), b"\x02\x01\x07\x00\x01\x00"),  # an id beyond the names
        (pa.array([{"a": {"typed_value": 1}}]), b"\x02\x05\x00"),  # ends too early
        (pa.array([1], pa.time32("s")), None),  # a type that is never shredded
    ],
)
def test_files_that_break_the_rules_are_named(tmp_path: Path, typed: pa.Array, value: bytes | None) -> None:
    file = write(tmp_path, pa.table({"v": shredded(typed, [value])}))
    with pytest.raises(DataFileError, match=r"Column 'v' of data file .*f\.parquet"):
        rows_of(tmp_path, schema_of(v=VARIANT), [file])
