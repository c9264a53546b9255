"""Variants that the writer shreds, and what is left of them unshredded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.data.planned import plan_of, schema_of
from tests.unit.data.test_variants import Decoder, decoded, stored

from pyspark_delta.data.parts import write_files
from pyspark_delta.data.reader import read_plan
from pyspark_delta.data.writer import WriteContext, WrittenFile
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.schema.arrow import VARIANT_STORAGE, schema_to_arrow
from pyspark_delta.schema.types import INTEGER, LONG, VARIANT
from pyspark_delta.stats.indexed_columns import stats_columns

SCHEMA = schema_of(before=LONG, v=VARIANT, after=INTEGER)
NULL, TRUE, FALSE, TEN, NOTHING = b"\x00", b"\x04", b"\x08", b"\x0c\x0a", b"\x02\x00\x00"
_NO_NAMES = b"\x01\x00\x00"


def number(value: int, width: int = 8) -> bytes:
    return bytes([{1: 3, 2: 4, 4: 5, 8: 6}[width] << 2]) + value.to_bytes(width, "little", signed=True)


def decimal(unscaled: int, scale: int, width: int = 4) -> bytes:
    return bytes([{4: 8, 8: 9}[width] << 2, scale]) + unscaled.to_bytes(width, "little", signed=True)


def text(value: str) -> bytes:
    content = value.encode()
    return bytes([len(content) << 2 | 1]) + content


def fields(*values: bytes) -> bytes:
    """An object whose dictionary has just its names, in order."""
    offsets = [sum(map(len, values[:i])) for i in range(len(values) + 1)]
    return b"\x02" + bytes([len(values), *range(len(values)), *offsets]) + b"".join(values)


def names(*values: str) -> bytes:
    offsets = [sum(map(len, values[:i])) for i in range(len(values) + 1)]
    return b"\x11" + bytes([len(values), *offsets]) + "".join(values).encode()


def variants(values: Sequence[bytes | None], metadata: bytes = _NO_NAMES) -> pa.Array:
    rows = [None if value is None else {"value": value, "metadata": metadata} for value in values]
    return pa.array(rows, VARIANT_STORAGE)


def write(folder: Path, column: pa.Array, *, shreds: bool = True, rows: int = 1_000_000) -> WrittenFile:
    """A file with the variants between two columns of numbers."""
    count = range(len(column))
    table = pa.Table.from_arrays([pa.array(count), column, pa.array(count, pa.int32())], schema=schema_to_arrow(SCHEMA))
    context = WriteContext(
        str(folder),
        SCHEMA,
        SCHEMA,
        stats_columns=stats_columns(SCHEMA),
        shreds_variants=shreds,
        row_group_rows=rows,
    )
    [file] = write_files(context, table.to_batches(max_chunksize=rows))
    return file


def shape(folder: Path, file: WrittenFile) -> Any:
    """The type of the column `typed_value`, None where the variants are not shredded."""
    kind = pq.read_schema(folder / file.path).field("v").type
    if {field.name for field in kind} == {"value", "metadata"}:
        return None
    assert [(field.name, field.nullable) for field in kind][:2] == [("metadata", False), ("value", True)]
    typed = kind.field("typed_value").type
    if not pa.types.is_struct(typed):
        return typed
    assert not any(field.nullable for field in typed)
    return {field.name: inner(field.type) for field in typed}


def inner(kind: pa.DataType) -> Any:
    """The type of a field, or those of the fields in it."""
    assert [(field.name, field.nullable) for field in kind] == [("value", True), ("typed_value", True)]
    typed = kind.field("typed_value").type
    return {field.name: inner(field.type) for field in typed} if pa.types.is_struct(typed) else typed


def left(folder: Path, file: WrittenFile) -> list[bytes | None]:
    """What stays encoded of each value."""
    return [None if v is None else v["value"] for v in pq.read_table(folder / file.path)["v"].to_pylist()]


def read(folder: Path, file: WrittenFile) -> pa.Array:
    found = read_plan(plan_of(folder, SCHEMA, [{"path": file.path, "size": file.size}])).read_all()
    assert found["before"].to_pylist() == found["after"].to_pylist() == list(range(len(found)))
    return found["v"].combine_chunks()


@pytest.mark.parametrize("name", ["plain", "every_type_plain"])
@pytest.mark.parametrize("rows", [5, 1000])
def test_a3_shredded_variants_are_the_same_when_read(tmp_path: Path, decode: Decoder, name: str, rows: int) -> None:
    column = stored(name)
    expected = decoded(column, decode)
    column = column.cast(VARIANT_STORAGE)
    file = write(tmp_path, column, rows=rows)
    assert decoded(read(tmp_path, file), decode) == expected
    typed = shape(tmp_path, file)
    if name == "plain":
        scale = 1 if rows == 5 else 2  # of the first rows
        assert typed == {"a": pa.int64(), "b": pa.string(), "c": {"d": pa.decimal128(18, scale)}, "t": pa.bool_()}
    else:
        whole, times = dict.fromkeys(("i8", "i16", "i32", "i64"), pa.int64()), pa.timestamp("us")
        assert typed == whole | {
            "b": pa.bool_(),
            "bin": pa.binary(),
            "d": pa.float64(),
            "f": pa.float32(),
            "dec9": pa.decimal128(18, 2),
            "dec18": pa.decimal128(18, 4),
            "dt": pa.date32(),
            "ntz": times,
            "ts": pa.timestamp("us", "UTC"),
            "s": pa.string(),
        }
    plain = write(tmp_path, column, shreds=False)
    assert shape(tmp_path, plain) is None


def test_a3_statistics_are_those_of_files_that_are_not_shredded(tmp_path: Path) -> None:
    column = variants([*[fields(TEN, text("x"))] * 9, None], names("a", "b"))
    shredded, plain = write(tmp_path, column, rows=4), write(tmp_path, column, shreds=False)
    assert json.loads(shredded.stats) == json.loads(plain.stats)
    assert json.loads(shredded.stats)["nullCount"] == {"before": 0, "v": 1, "after": 0}
    assert json.loads(shredded.stats)["maxValues"] == {"before": 9, "after": 9}


@pytest.mark.parametrize(
    ("values", "kind", "encoded"),
    [
        ([number(1, 1), number(-300, 2), None, NULL], pa.int64(), [None, None, None, NULL]),
        ([TRUE, FALSE, NULL], pa.bool_(), [None, None, NULL]),
        ([text("a"), text(""), bytes([64]) + b"\x46\x00\x00\x00" + b"x" * 70], pa.string(), [None] * 3),
        # decimals, and whole numbers among them, take the largest scale
        ([decimal(-125, 2), decimal(5, 0, 8), number(7, 4)], pa.decimal128(18, 2), [None] * 3),
        # one of another type is left as it was
        ([*[number(1)] * 9, text("x")], pa.int64(), [*[None] * 9, text("x")]),
        ([*[TRUE] * 9, text("x")], pa.bool_(), [*[None] * 9, text("x")]),
        # a number that has no room for the fractions of others
        (
            [*[decimal(1, 10)] * 10, number(10**8), decimal(10**17, 1, 8), decimal(-(10**17), 1, 8), number(1 - 10**8)],
            pa.decimal128(18, 10),
            [*[None] * 10, number(10**8), decimal(10**17, 1, 8), decimal(-(10**17), 1, 8), None],
        ),
        ([decimal(1, 19)], None, [decimal(1, 19)]),
        ([number(1), text("x")], None, [number(1), text("x")]),
        ([NULL, None], None, [NULL, None]),
        ([None], None, [None]),
    ],
)
def test_a3_plain_values_of_one_type(
    tmp_path: Path,
    decode: Decoder,
    values: list[bytes | None],
    kind: pa.DataType,
    encoded: list[bytes | None],
) -> None:
    file = write(tmp_path, variants(values))
    assert shape(tmp_path, file) == kind
    assert left(tmp_path, file) == encoded
    assert decoded(read(tmp_path, file), decode) == decoded(variants(values), decode)


def test_a3_what_later_rows_have_else_stays_encoded(tmp_path: Path, decode: Decoder) -> None:
    metadata = names("a", "b")
    first = [fields(number(i), text("x")) for i in range(4)]
    later = [fields(text("no"), text("y")), text("z"), NOTHING, None, fields(NULL, NULL), b"\x03\x00\x00", fields(TEN)]
    column = variants([*first, *later], metadata)
    file = write(tmp_path, column, rows=4)
    assert shape(tmp_path, file) == {"a": pa.int64(), "b": pa.string()}
    assert left(tmp_path, file)[4:] == [None, text("z"), None, None, None, b"\x03\x00\x00", None]
    of_a = pq.read_table(tmp_path / file.path)["v"].combine_chunks().field("typed_value").field("a").field("value")
    assert of_a.to_pylist()[4:] == [text("no"), None, None, None, NULL, None, None]
    assert decoded(read(tmp_path, file), decode) == decoded(column, decode)


def test_a3_objects_in_objects(tmp_path: Path, decode: Decoder) -> None:
    metadata = names("a", "b", "c")
    deep = [fields(number(i), fields(text("x"), fields(number(i), TRUE, TEN))) for i in range(12)]
    odd = [
        fields(number(1), fields(text("x"), TEN)),
        fields(number(1), text("no object")),
        fields(number(1), fields()),
        fields(number(1), NULL),
        None,
        fields(number(1), fields(TEN, fields(text("y"), TRUE, fields(TEN, TEN)))),
    ]
    column = variants([*deep, *odd], metadata)
    file = write(tmp_path, column, rows=5)
    assert shape(tmp_path, file) == {
        "a": pa.int64(),
        "b": {"a": pa.string(), "b": {"a": pa.int64(), "b": pa.bool_(), "c": pa.int64()}},
    }
    assert decoded(read(tmp_path, file), decode) == decoded(column, decode)
    assert json.loads(file.stats)["maxValues"] == {"before": 17, "after": 17}


def test_a3_fields_that_get_no_column(tmp_path: Path, decode: Decoder) -> None:
    """Rare ones, those of several types, names that differ in case only, and empty objects."""
    metadata = names("a", "A", "b", "c")
    often = [fields(TEN, TEN, text("x") if i % 2 else TEN, fields()) for i in range(20)]
    column = variants(often, metadata)
    file = write(tmp_path, column)
    assert shape(tmp_path, file) == {"A": pa.int64()}
    assert decoded(read(tmp_path, file), decode) == decoded(column, decode)
    rare = variants([*[fields(TEN)] * 19, fields(TEN, text("once"))], names("a", "b"))
    assert shape(tmp_path, write(tmp_path, rare)) == {"a": pa.int64()}
    enough = variants([*[fields(TEN)] * 18, *[fields(TEN, text("twice"))] * 2], names("a", "b"))
    assert shape(tmp_path, write(tmp_path, enough)) == {"a": pa.int64(), "b": pa.string()}
    each = pa.concat_arrays([variants([fields(TEN, TEN)], names("a", f"key{i}")) for i in range(40)])
    assert shape(tmp_path, write(tmp_path, each)) is None
    nameless = variants([fields(TEN, TEN)], names("", "a"))
    assert shape(tmp_path, write(tmp_path, nameless)) == {"a": pa.int64()}


def test_the_most_frequent_of_very_many_fields_get_a_column(tmp_path: Path, decode: Decoder) -> None:
    metadata = names(*(f"{i:02x}" for i in range(101)))
    column = variants([*[fields(*[TEN] * 100)] * 5, *[fields(*[TEN] * 101)] * 5], metadata)
    file = write(tmp_path, column)
    assert shape(tmp_path, file) == {f"{i:02x}": pa.int64() for i in range(100)}
    assert decoded(read(tmp_path, file), decode) == decoded(column, decode)


def test_objects_are_taken_apart_to_a_depth_and_where_they_are_half_of_the_values(
    tmp_path: Path, decode: Decoder
) -> None:
    deep = TEN
    for _ in range(10):
        deep = fields(deep)
    file = write(tmp_path, variants([deep], names("a")))
    found = shape(tmp_path, file)
    assert found is None  # no field is known to the last level
    flat = [fields(TEN)] * 3
    for others, expected in ((3, {"a": pa.int64()}), (4, None)):
        # the metadata of what is no object is never looked at
        column = pa.concat_arrays([variants(flat, names("a")), variants([text("x")] * others, b"")])
        file = write(tmp_path, column)
        assert shape(tmp_path, file) == expected
        assert left(tmp_path, file)[3:] == [text("x")] * others
        if expected:
            assert read(tmp_path, file).field("value").to_pylist()[3:] == [text("x")] * others


def test_what_is_no_variant_is_refused(tmp_path: Path) -> None:
    short = [fields(TEN), b"\x02\x01\x00\x00\x05"]
    wrong = (
        (short, names("a")),
        ([fields(TEN)], b"\x00"),
        ([b"\x18\x01"], _NO_NAMES),
        ([number(1)[:-1], number(1)], _NO_NAMES),
        ([text("ab")[:-1], text("ab")], _NO_NAMES),
        ([text("a")[:1] + b"\xff"], _NO_NAMES),
        ([fields(TEN)], b"\x11\x01\x00\x01\xff"),
    )
    for values, metadata in wrong:
        with pytest.raises(ConstraintViolationError, match="'v' is not a valid variant") as caught:
            write(tmp_path, variants(values, metadata))
        assert caught.value.error_class == "MALFORMED_VARIANT"
    assert list(tmp_path.iterdir()) == []


def test_a_decimal_is_read_as_the_number_it_was(tmp_path: Path, decode: Decoder) -> None:
    values = [decimal(-(10**9 - 1), 9), decimal(10**18 - 1, 9, 8), decimal(-(10**18) + 1, 9, 8)]
    file = write(tmp_path, variants(values))
    stored_values = pq.read_table(tmp_path / file.path)["v"].combine_chunks().field("typed_value").to_pylist()
    assert stored_values == [Decimal("-0.999999999"), Decimal("999999999.999999999"), Decimal("-999999999.999999999")]
    later = variants([*[decimal(15, 1)] * 4, decimal(5, 3), number(2)])  # more fractions than the first rows have
    assert left(tmp_path, write(tmp_path, later, rows=4)) == [*[None] * 4, decimal(5, 3), None]
