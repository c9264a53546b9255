"""Data of other libraries goes into tables and comes back, or is refused with what to do; nothing is lost silently."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from pyspark_delta.errors import ConstraintViolationError, DeltaError, InvalidOperationError, SchemaMismatchError
from pyspark_delta.table import Table

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

AT = datetime(2024, 1, 31, 12, 30, 15, 123456)
MOST, LEAST = Decimal("9" * 38), Decimal("-" + "9" * 38)
EXACT = Context(prec=38)
IDENTIFIER = uuid.UUID(int=1 << 100)
VARIANT_BYTES = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}


def arrow(values: list[Any], data_type: pa.DataType) -> pa.Table:
    return pa.table({"c": pa.array(values, data_type)})


def polars(values: list[Any], data_type: Any) -> Any:
    return pl.DataFrame({"c": values}, schema={"c": data_type}, strict=False)


def query(text: str) -> Any:
    return duckdb.connect().sql(f"SELECT {text} AS c")


def encoded() -> pa.Table:
    return pa.table({"c": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None]))})


def extension(data_type: Any, storage: pa.Array) -> pa.Table:
    return pa.table({"c": pa.ExtensionArray.from_storage(data_type, storage)})


def variants(order: tuple[str, ...] = ("metadata", "value"), mark: bool = True) -> pa.Table:
    struct = pa.struct([pa.field(name, pa.binary()) for name in order])
    field = pa.field("c", struct, metadata={"ARROW:extension:name": "arrow.parquet.variant"} if mark else None)
    return pa.table([pa.array([VARIANT_BYTES, None], struct)], schema=pa.schema([field]))


# Data, the Delta type it becomes, and the values that are read.
STORED: list[tuple[str, Callable[[], Any], str, list[Any]]] = [
    ("s", lambda: arrow([1, None], pa.timestamp("s")), "timestamp_ntz", [datetime(1970, 1, 1, 0, 0, 1), None]),
    ("ms", lambda: arrow([1], pa.timestamp("ms")), "timestamp_ntz", [datetime(1970, 1, 1, 0, 0, 0, 1000)]),
    ("us", lambda: arrow([AT], pa.timestamp("us")), "timestamp_ntz", [AT]),
    ("whole ns", lambda: arrow([1000], pa.timestamp("ns")), "timestamp_ntz", [datetime(1970, 1, 1, 0, 0, 0, 1)]),
    ("zone", lambda: arrow([AT], pa.timestamp("us", "Asia/Tokyo")), "timestamp", [AT.replace(tzinfo=UTC)]),
    ("date32", lambda: arrow([date(2024, 2, 29), None], pa.date32()), "date", [date(2024, 2, 29), None]),
    ("date64", lambda: arrow([date(2024, 2, 29)], pa.date64()), "date", [date(2024, 2, 29)]),
    ("bool", lambda: arrow([True, None], pa.bool_()), "boolean", [True, None]),
    ("uint8", lambda: arrow([255], pa.uint8()), "short", [255]),
    ("uint16", lambda: arrow([65535], pa.uint16()), "integer", [65535]),
    ("uint32", lambda: arrow([2**32 - 1], pa.uint32()), "long", [2**32 - 1]),
    ("uint64", lambda: arrow([2**64 - 1], pa.uint64()), "decimal(20,0)", [Decimal(2**64 - 1)]),
    ("float16", lambda: arrow([np.float16(1.5)], pa.float16()), "float", [1.5]),
    ("decimal 38", lambda: arrow([MOST, LEAST], pa.decimal128(38, 0)), "decimal(38,0)", [MOST, LEAST]),
    ("decimal256", lambda: arrow([MOST], pa.decimal256(38, 0)), "decimal(38,0)", [MOST]),
    ("decimal32", lambda: arrow([Decimal("1.5")], pa.decimal32(5, 2)), "decimal(5,2)", [Decimal("1.50")]),
    ("decimal64", lambda: arrow([Decimal("-1.5")], pa.decimal64(15, 2)), "decimal(15,2)", [Decimal("-1.50")]),
    ("binary", lambda: arrow([b"", None], pa.binary()), "binary", [b"", None]),
    ("fixed binary", lambda: arrow([b"abc"], pa.binary(3)), "binary", [b"abc"]),
    ("large string", lambda: arrow(["é"], pa.large_string()), "string", ["é"]),
    ("string view", lambda: arrow(["é", None], pa.string_view()), "string", ["é", None]),
    ("binary view", lambda: arrow([b"a"], pa.binary_view()), "binary", [b"a"]),
    ("dictionary", lambda: arrow(["a", None, "a"], pa.dictionary(pa.int8(), pa.string())), "string", ["a", None, "a"]),
    ("dictionary of times", lambda: pa.table({"c": pa.array([AT]).dictionary_encode()}), "timestamp_ntz", [AT]),
    ("run ends", encoded, "string", ["a", "a", None]),
    ("list view", lambda: arrow([[1], None], pa.list_view(pa.int32())), "array<integer>", [[1], None]),
    ("large list", lambda: arrow([[1, None]], pa.large_list(pa.int8())), "array<byte>", [[1, None]]),
    ("fixed list", lambda: arrow([[1, 2], None], pa.list_(pa.int32(), 2)), "array<integer>", [[1, 2], None]),
    ("map", lambda: arrow([[("a", None)]], pa.map_(pa.string(), pa.int8())), "map<string,byte>", [[("a", None)]]),
    (
        "nested",
        lambda: arrow(
            [{"a": [{"b": Decimal("0.5")}, None]}, None],
            pa.struct([("a", pa.list_(pa.struct([("b", pa.decimal128(5, 1))])))]),
        ),
        "struct<a:array<struct<b:decimal(5,1)>>>",
        [{"a": [{"b": Decimal("0.5")}, None]}, None],
    ),
    (
        "nested views",
        lambda: arrow([{"a": ["x"]}], pa.struct([("a", pa.list_(pa.string_view()))])),
        "struct<a:array<string>>",
        [{"a": ["x"]}],
    ),
    (
        "nested unsigned",
        lambda: arrow([[2**64 - 1]], pa.list_(pa.uint64())),
        "array<decimal(20,0)>",
        [[Decimal(2**64 - 1)]],
    ),
    ("uuid", lambda: extension(pa.uuid(), pa.array([IDENTIFIER.bytes], pa.binary(16))), "binary", [IDENTIFIER.bytes]),
    ("json", lambda: extension(pa.json_(), pa.array(["{}"])), "string", ["{}"]),
    (
        "tensor",
        lambda: extension(pa.fixed_shape_tensor(pa.int32(), [2]), pa.array([[1, 2]], pa.list_(pa.int32(), 2))),
        "array<integer>",
        [[1, 2]],
    ),
    ("variant", variants, "variant", [VARIANT_BYTES, None]),
    ("dataset", lambda: ds.dataset(arrow([1], pa.int8())), "byte", [1]),
    (
        "polars",
        lambda: polars([[{"a": 1}], None], pl.List(pl.Struct({"a": pl.Int16}))),
        "array<struct<a:short>>",
        [[{"a": 1}], None],
    ),
    ("polars categories", lambda: polars(["a", None, "b"], pl.Categorical), "string", ["a", None, "b"]),
    ("polars enum", lambda: polars(["b", "a"], pl.Enum(["a", "b"])), "string", ["b", "a"]),
    ("polars nested categories", lambda: polars([["a"], []], pl.List(pl.Categorical)), "array<string>", [["a"], []]),
    ("polars array", lambda: polars([[1, 2]], pl.Array(pl.Int8, 2)), "array<byte>", [[1, 2]]),
    (
        "polars zone",
        lambda: polars([AT.replace(tzinfo=UTC)], pl.Datetime("us", "UTC")),
        "timestamp",
        [AT.replace(tzinfo=UTC)],
    ),
    ("polars ms", lambda: polars([datetime(2024, 1, 1)], pl.Datetime("ms")), "timestamp_ntz", [datetime(2024, 1, 1)]),
    ("polars decimal", lambda: polars([Decimal("1.5")], pl.Decimal(38, 10)), "decimal(38,10)", [Decimal("1.5")]),
    ("polars binary", lambda: polars([b"\xff", None], pl.Binary), "binary", [b"\xff", None]),
    ("pandas", lambda: pd.DataFrame({"c": ["a", None]}), "string", ["a", None]),
    ("pandas categories", lambda: pd.DataFrame({"c": pd.Categorical(["b", None, "a"])}), "string", ["b", None, "a"]),
    ("pandas NaN", lambda: pd.DataFrame({"c": [1.0, float("nan")]}), "double", [1.0, None]),
    ("pandas Int64", lambda: pd.DataFrame({"c": pd.array([1, None], "Int64")}), "long", [1, None]),
    (
        "pandas zone",
        lambda: pd.DataFrame({"c": pd.to_datetime(["2024-01-01"]).tz_localize("Europe/Berlin")}),
        "timestamp",
        [datetime(2023, 12, 31, 23, tzinfo=UTC)],
    ),
    ("pandas filtered", lambda: pd.DataFrame({"c": [1, 2, 3]}).query("c > 1"), "long", [2, 3]),
    ("duckdb hugeint", lambda: query("-99999999999999999999999999999999999999::HUGEINT"), "decimal(38,0)", [LEAST]),
    ("duckdb ubigint", lambda: query("18446744073709551615::UBIGINT"), "decimal(20,0)", [Decimal(2**64 - 1)]),
    ("duckdb uuid", lambda: query(f"'{IDENTIFIER}'::UUID"), "string", [str(IDENTIFIER)]),
    ("duckdb enum", lambda: query("'b'::ENUM('a', 'b')"), "string", ["b"]),
    (
        "duckdb nested",
        lambda: query("{'a': [1, NULL], 'm': MAP {'k': 1::TINYINT}}"),
        "struct<a:array<integer>,m:map<string,byte>>",
        [{"a": [1, None], "m": [("k", 1)]}],
    ),
    (
        "duckdb times",
        lambda: query("TIMESTAMPTZ '2024-01-31 12:30:15.123456+00'"),
        "timestamp",
        [AT.replace(tzinfo=UTC)],
    ),
    ("duckdb seconds", lambda: query("'2024-01-01'::TIMESTAMP_S"), "timestamp_ntz", [datetime(2024, 1, 1)]),
    ("duckdb json", lambda: query("'{}'::JSON"), "string", ["{}"]),
    ("duckdb variant", lambda: query("1::TINYINT::VARIANT"), "variant", [VARIANT_BYTES]),
]

# Data that is refused, the error, and what its text says.
REFUSED: list[tuple[str, Callable[[], Any], type[DeltaError], str]] = [
    ("odd ns", lambda: arrow([1001], pa.timestamp("ns")), ConstraintViolationError, "column 'c'.*would lose data"),
    (
        "odd ns in a struct",
        lambda: arrow([{"a": 1}], pa.struct([("a", pa.timestamp("ns", "UTC"))])),
        ConstraintViolationError,
        "column 'c.a'",
    ),
    ("far s", lambda: arrow([2**60], pa.timestamp("s")), ConstraintViolationError, "out of bounds timestamp"),
    (
        "part of a day",
        lambda: pa.table({"c": pa.array([1], pa.int64()).view(pa.date64())}),
        ConstraintViolationError,
        "would lose data",
    ),
    ("time32", lambda: arrow([1], pa.time32("s")), SchemaMismatchError, "time32.*Cast it to a string, or to a number"),
    ("time in a list", lambda: arrow([[1]], pa.list_(pa.time64("ns"))), SchemaMismatchError, "column 'c'.element"),
    ("duration", lambda: arrow([1], pa.duration("ns")), SchemaMismatchError, "cannot store. Cast it to a number"),
    ("interval", lambda: arrow([(1, 2, 3)], pa.month_day_nano_interval()), SchemaMismatchError, "number of months"),
    (
        "union",
        lambda: pa.table({"c": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])}),
        SchemaMismatchError,
        "Cast it to a struct",
    ),
    ("only nulls", lambda: pa.table({"c": pa.nulls(2)}), SchemaMismatchError, "no columns to store"),
    (
        "list of nulls",
        lambda: arrow([[]], pa.list_(pa.null())),
        SchemaMismatchError,
        "no values that a data file can store",
    ),
    ("50 digits", lambda: arrow([Decimal("9" * 50)], pa.decimal256(50, 0)), SchemaMismatchError, "at most 38 digits"),
    ("negative scale", lambda: arrow([Decimal("1E3")], pa.decimal128(5, -2)), SchemaMismatchError, "scale from 0 on"),
    ("too many digits", lambda: pa.table({"c": decimals_beyond()}), ConstraintViolationError, "does not fit its type"),
    (
        "opaque",
        lambda: extension(pa.opaque(pa.int32(), "x", "y"), pa.array([1], pa.int32())),
        SchemaMismatchError,
        "extension type 'arrow.opaque'",
    ),
    (
        "opaque in a list",
        lambda: pa.table(
            {
                "c": pa.ListArray.from_arrays(
                    [0, 1], pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8()))
                )
            }
        ),
        SchemaMismatchError,
        "of column 'c' has the extension type 'arrow.bool8'",
    ),
    ("shredded variant", lambda: shredded(), SchemaMismatchError, "has no 'value'"),
    ("polars time", lambda: polars([time(1)], pl.Time), SchemaMismatchError, "Cast it to a string"),
    ("polars duration", lambda: polars([timedelta(1)], pl.Duration), SchemaMismatchError, "Cast it to a number"),
    ("polars int128", lambda: polars([10**30], pl.Int128), SchemaMismatchError, r"Decimal\(38, 0\)"),
    (
        "polars objects",
        lambda: pl.DataFrame({"c": [object()]}, schema={"c": pl.Object}),
        SchemaMismatchError,
        "Polars type Object",
    ),
    ("polars series", lambda: pl.Series("c", [1]), InvalidOperationError, "Correct the source"),
    ("pandas mixed", lambda: pd.DataFrame({"c": [1, "a"]}), SchemaMismatchError, r"column c with type object.*astype"),
    ("pandas twice", lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), SchemaMismatchError, "Duplicate column names"),
    ("pandas complex", lambda: pd.DataFrame({"c": [1j]}), SchemaMismatchError, "type complex128"),
    (
        "pandas period",
        lambda: pd.DataFrame({"c": pd.period_range("2024", "2025", freq="Y")}),
        SchemaMismatchError,
        "pandas.period",
    ),
    (
        "pandas timedelta",
        lambda: pd.DataFrame({"c": pd.to_timedelta([1], "s")}),
        SchemaMismatchError,
        "Cast it to a number",
    ),
    (
        "pandas odd ns",
        lambda: pd.DataFrame({"c": pd.array(["2024-01-01T00:00:00.000000001"], dtype="datetime64[ns]")}),
        ConstraintViolationError,
        "would lose data",
    ),
    (
        "pandas index of the same name",
        lambda: pd.DataFrame({"c": [1]}, index=pd.Index([5], name="c")),
        SchemaMismatchError,
        "reset_index",
    ),
    (
        "pandas index with half a name",
        lambda: pd.DataFrame({"c": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)], names=["a", None])),
        SchemaMismatchError,
        "rename_axis",
    ),
    (
        "duckdb hugeint",
        lambda: query("170141183460469231731687303715884105727::HUGEINT"),
        ConstraintViolationError,
        "does not fit its type",
    ),
    ("duckdb time", lambda: query("TIME '01:02:03'"), SchemaMismatchError, "Cast it to a string"),
    ("duckdb interval", lambda: query("INTERVAL 1 DAY"), SchemaMismatchError, "Cast it to a string"),
    (
        "duckdb bignum",
        lambda: query("12345678901234567890123456789012345678901234::BIGNUM"),
        SchemaMismatchError,
        "arrow.opaque",
    ),
]


def decimals_beyond() -> pa.Array:
    """A decimal of 39 digits in the type for 38, as only a faulty library makes it."""
    return pa.Array.from_buffers(pa.decimal128(38, 0), 1, [None, pa.py_buffer((10**38).to_bytes(16, "little"))])


def shredded() -> pa.Table:
    struct = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    field = pa.field("c", struct, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    return pa.table([pa.array([{"metadata": b"\x01\x00\x00", "value": None}], struct)], schema=pa.schema([field]))


def names(cases: list[Any]) -> list[str]:
    return [case[0] for case in cases]


@pytest.mark.parametrize(("_", "make", "data_type", "values"), STORED, ids=names(STORED))
def test_values_are_stored_and_read(
    tmp_path: Path, _: str, make: Callable[[], Any], data_type: str, values: list[Any]
) -> None:
    table = Table.write(tmp_path, make())
    assert str(table.schema) == f"struct<c:{data_type}>"
    assert table.to_arrow()["c"].to_pylist() == values
    table.append(make())  # into a table that has the types
    assert table.count() == 2 * len(values)


WIDE: dict[str, tuple[list[Any], pa.DataType]] = {
    "z": ([AT.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    "n": ([AT, None], pa.timestamp("us")),
    "d": ([date(1, 1, 1), date(9999, 12, 31)], pa.date32()),
    "x": ([MOST, None], pa.decimal128(38, 0)),
    "y": ([Decimal("-0.01"), None], pa.decimal128(5, 2)),
    "b": ([b"\x00\xff", None], pa.binary()),
    "s": (["", "é𝄞"], pa.string()),
    "t": ([-128, 127], pa.int8()),
    "f": ([float("inf"), None], pa.float64()),
    "o": ([True, None], pa.bool_()),
    "l": ([[{"a": [None, "x"]}, None], []], pa.list_(pa.struct([("a", pa.list_(pa.string()))]))),
    "m": ([[("k", [1, None])], []], pa.map_(pa.string(), pa.list_(pa.int16()))),
    "r": ([{"p": {"q": date(2024, 1, 1)}}, {"p": None}], pa.struct([("p", pa.struct([("q", pa.date32())]))])),
}


@pytest.mark.parametrize("library", ["polars", "duckdb", "pandas", "reader", "dataset", "capsule"])
def test_rows_that_another_library_read_can_be_written_back(tmp_path: Path, library: str) -> None:
    made = pa.table({name: pa.array(*given) for name, given in WIDE.items()})
    table = Table.write(tmp_path / "t", made)
    handed = {
        "polars": table.to_polars,
        "duckdb": table.to_duckdb,
        "pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
        "reader": table.to_reader,
        "dataset": lambda: ds.dataset(table.to_arrow()),
        "capsule": lambda: pl.DataFrame(table),
    }[library]()
    again = Table.create(tmp_path / "again", table.schema)
    again.append(handed)
    assert again.to_arrow().equals(table.to_arrow())
    assert again.to_arrow().to_pylist() == made.to_pylist()


@pytest.mark.parametrize(("_", "make", "kind", "text"), REFUSED, ids=names(REFUSED))
def test_what_delta_cannot_hold_is_refused(
    tmp_path: Path, _: str, make: Callable[[], Any], kind: type[DeltaError], text: str
) -> None:
    with pytest.raises(kind, match=f"(?s){text}"):
        Table.write(tmp_path / "t", make())
    assert not list(tmp_path.rglob("*.parquet"))
    assert not list(tmp_path.rglob("*.json"))


def test_columns_of_nulls_are_given_the_type_of_the_table(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT, at TIMESTAMP, l ARRAY<INT>")
    table.append(
        pa.table({"id": pa.array([1], pa.int32()), "at": pa.nulls(1), "l": pa.array([[]], pa.list_(pa.null()))})
    )
    table.append(pl.DataFrame({"id": [2], "at": [None]}))
    assert table.to_arrow().to_pylist() == [{"id": 1, "at": None, "l": []}, {"id": 2, "at": None, "l": None}]


@pytest.mark.parametrize("scale", [0, 18, 38])
def test_conditions_name_decimals_of_all_38_digits(tmp_path: Path, scale: int) -> None:
    values = [MOST.scaleb(-scale, EXACT), LEAST.scaleb(-scale, EXACT)]
    table = Table.create(tmp_path, f"d DECIMAL(38, {scale})", properties={"delta.checkpointInterval": "1"})
    table.append(pa.table({"d": pa.array(values, pa.decimal128(38, scale))}))
    for value in values:
        for text in (f"{value:f}", f"CAST('{value:f}' AS DECIMAL(38, {scale}))"):
            assert table.scan(where=f"d = {text}").to_arrow()["d"].to_pylist() == [value]


def runs(values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), values).slice(1)


def indexed(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int8()), values)


@pytest.mark.parametrize("place", ["column", "struct", "list", "map"])
@pytest.mark.parametrize("encode", [runs, indexed])
@pytest.mark.parametrize(
    ("values", "sql"),
    [
        (pa.array([None, 7]), "BIGINT"),
        (pa.array([None, "text that is too long for a view"], pa.string_view()), "STRING"),
        (pa.array([None, [1, None]], pa.list_(pa.int64())), "ARRAY<BIGINT>"),
        (pa.array([None, [1, None]], pa.list_view(pa.int64())), "ARRAY<BIGINT>"),
        (pa.array([None, {"a": 1}]), "STRUCT<a: BIGINT>"),
        (pa.array([None, [("a", 1)]], pa.map_(pa.string(), pa.int64())), "MAP<STRING, BIGINT>"),
        (pa.array([None, "a"]).dictionary_encode(), "STRING"),
    ],
    ids=["number", "view", "list", "list view", "struct", "map", "dictionary"],
)
def test_encoded_values_of_every_type_are_appended_and_merged(
    tmp_path: Path, values: pa.Array, sql: str, encode: Callable[[pa.Array], pa.Array], place: str
) -> None:
    column = encode(values)
    match place:
        case "struct":
            column, sql = pa.StructArray.from_arrays([column], ["f"]), f"STRUCT<f: {sql}>"
        case "list":
            column, sql = pa.ListArray.from_arrays(pa.array([0, 0, 2], pa.int32()), column), f"ARRAY<{sql}>"
        case "map":
            keys = pa.array(["x", "y"])
            column, sql = pa.MapArray.from_arrays(pa.array([0, 0, 2], pa.int32()), keys, column), f"MAP<STRING, {sql}>"
    table = Table.create(tmp_path, f"id BIGINT, c {sql}")
    table.append(pa.table({"id": [1, 2], "c": column}))
    table.merge(pa.table({"id": [3, 4], "c": column}), "source.id = target.id").when_not_matched_insert_all().execute()
    found = table.to_arrow().sort_by("id")["c"].to_pylist()
    assert found == 2 * column.to_pylist()
    assert found[1] is not None


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    table = Table.write(tmp_path, pd.DataFrame({"c": [1]}, index=pd.Index([5], name="k")))
    assert table.to_arrow().to_pylist() == [{"c": 1, "k": 5}]


def test_variants_are_structs_by_choice(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "c VARIANT, i INT")
    for order in (("metadata", "value"), ("value", "metadata")):
        table.append(variants(order, mark=False))  # the table knows that they are variants
    for handed in (table.to_polars, table.to_pandas):
        with pytest.raises(InvalidOperationError, match=r"column 'c' holds variants.*variants='struct'"):
            handed()
    frame = table.to_polars(variants="struct").collect()
    assert frame["c"].to_list() == [VARIANT_BYTES, None] * 2
    assert table.to_pandas(variants="struct")["c"].tolist() == [VARIANT_BYTES, None] * 2
    assert table.to_duckdb().project("c::INT").fetchall() == [(1,), (None,)] * 2
    other = Table.create(tmp_path / "other", table.schema)
    for source in (frame, table.scan(["c"]).to_pandas(variants="struct"), table.to_duckdb(), table):
        other.append(source)
    assert other.to_arrow()["c"].to_pylist() == [VARIANT_BYTES, None] * 8
    assert table.scan(["i"]).to_polars().collect().height == 4
    with pytest.raises(DeltaError, match="variants is 'struct' or None"):
        table.to_polars(variants="json")  # type: ignore[arg-type]


class TestReadersAreReadOnce:
    def test_a_reader_that_was_written_is_refused(self, tmp_path: Path) -> None:
        table = Table.create(tmp_path, "c INT")
        for reader in (
            arrow([1], pa.int32()).to_reader(),
            pa.RecordBatchReader.from_batches(
                pa.schema([("c", pa.int32())]), iter(arrow([1], pa.int32()).to_batches())
            ),
            query("1").to_arrow_reader(),
        ):
            table.append(reader)
            with pytest.raises(InvalidOperationError, match="can be read only once"):
                table.append(reader)
        assert table.count() == 3

    def test_a_reader_that_failed_half_way_is_refused(self, tmp_path: Path) -> None:
        table = Table.create(tmp_path, "c TINYINT")
        reader = arrow([1, 300], pa.int32()).to_reader()
        with pytest.raises(ConstraintViolationError):
            table.append(reader)
        with pytest.raises(InvalidOperationError, match="can be read only once"):
            table.append(reader)

    def test_a_plan_reads_no_rows(self, tmp_path: Path) -> None:
        table = Table.create(tmp_path, "c INT")
        reader = arrow([1], pa.int32()).to_reader()
        table.append(reader, plan=True)
        table.append(reader)
        assert table.count() == 1
