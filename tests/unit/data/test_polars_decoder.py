"""Polars decodes the same rows as PyArrow, bit by bit, or declines and PyArrow reads them."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.decoders import assert_decoded, recorder
from tests.unit.data.planned import mapped, plan_of, schema_of, write

from pyspark_delta.data import files, polars_decoder
from pyspark_delta.data.reader import read_batches
from pyspark_delta.deletion_vectors import encode_inline, of_indexes
from pyspark_delta.errors import DataFileError, DeletionVectorError
from pyspark_delta.scan.plan import Missing
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
)


@pytest.fixture(params=[True, False], ids=["unopened", "opened"], autouse=True)
def unopened(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let Polars decode files of any size, with and without a look at their footers."""
    monkeypatch.setattr(polars_decoder, "_FEWEST_BYTES", 0)
    monkeypatch.setattr(polars_decoder, "_REFUSALS", 2 if request.param else 0)
    monkeypatch.setattr(files, "_SMALL_ROWS", 0)  # PyArrow converts no files together
    return bool(request.param)


def values_of(kind: DataType) -> pa.Array:
    """The values of a type at its limits, and nulls among them."""
    match kind:
        case DecimalType(precision, scale):
            digits = [10**precision - 1, None, 1 - 10**precision, 0, 1]
            exact = [None if n is None else Decimal(f"{n}e-{scale}") for n in digits]
            return pa.array(exact, pa.decimal128(precision, scale))
    first = datetime(1, 1, 1)
    by_type: dict[DataType, tuple[pa.DataType, list[Any]]] = {
        BOOLEAN: (pa.bool_(), [True, None, False, True, None]),
        BYTE: (pa.int8(), [-128, None, 127, 0, 1]),
        SHORT: (pa.int16(), [-(2**15), None, 2**15 - 1, 0, 1]),
        INTEGER: (pa.int32(), [-(2**31), None, 2**31 - 1, 0, 1]),
        LONG: (pa.int64(), [-(2**63), None, 2**63 - 1, 0, 1]),
        FLOAT: (pa.float32(), [math.nan, None, -0.0, math.inf, 1e-45]),
        DOUBLE: (pa.float64(), [math.nan, None, -0.0, -math.inf, 5e-324]),
        DATE: (pa.date32(), [date(1, 1, 1), None, date(9999, 12, 31), date(1582, 10, 4), date(1970, 1, 1)]),
        TIMESTAMP_NTZ: (pa.timestamp("us"), [first, None, datetime(9999, 12, 31, 23, 59, 59, 999999), first, first]),
        TIMESTAMP: (pa.timestamp("us", "UTC"), [first, None, datetime(9999, 12, 31, tzinfo=UTC), first, first]),
        STRING: (pa.string(), ["", None, "a text that is longer than twelve bytes", "ü\U0001f600", "short"]),
        BINARY: (pa.binary(), [b"", None, bytes(range(256)), b"\xff", b"\0"]),
    }
    arrow_type, values = by_type[kind]
    return pa.array(values, arrow_type)


NUMBERS: list[DataType] = [BOOLEAN, BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE]
DECIMALS = [DecimalType(p, s) for p, s in ((1, 0), (9, 2), (10, 9), (18, 18), (19, 0), (38, 0), (38, 38))]
TIMES: list[DataType] = [DATE, TIMESTAMP, TIMESTAMP_NTZ]
TEXTS: list[DataType] = [STRING, BINARY]
WAYS: list[dict[str, Any]] = [
    {},
    {"use_dictionary": False, "compression": "none"},
    {"compression": "zstd", "data_page_version": "2.0", "version": "1.0"},
    {"store_schema": False, "compression": "gzip", "data_page_size": 64, "row_group_size": 7},
    {"store_decimal_as_integer": True, "write_statistics": False, "compression": "lz4"},
]


@pytest.mark.parametrize("options", WAYS, ids=lambda way: ",".join(way) or "default")
@pytest.mark.parametrize("views", [True, False], ids=["views", "arrow"])
def test_all_types_in_all_forms(tmp_path: Path, unopened: bool, views: bool, options: dict[str, Any]) -> None:
    """What Polars is expected to decode, it decodes: times only of files whose footers are known."""
    kinds = [*NUMBERS, *DECIMALS, *([] if unopened else TIMES), *(TEXTS if views else [])]
    columns = {f"c{i}": values_of(kind).take(pa.array([*range(5)] * 4)) for i, kind in enumerate(kinds)}
    row = write(tmp_path, pa.table(columns), **options)
    schema = StructType(tuple(StructField(name, kind) for name, kind in zip(columns, kinds, strict=True)))
    assert assert_decoded(plan_of(tmp_path, schema, [row]), views=views) == []


ENCODINGS = {
    "x": ("DELTA_BINARY_PACKED", pa.array([*range(900), None])),
    "r": ("BYTE_STREAM_SPLIT", pa.array([0.5] * 901)),
}


def test_encodings_other_than_the_usual(tmp_path: Path) -> None:
    data = pa.table({name: values for name, (_, values) in ENCODINGS.items()})
    data = data.append_column("s", pa.array([f"text {i // 3}" for i in range(901)]))
    encodings = {name: encoding for name, (encoding, _) in ENCODINGS.items()} | {"s": "DELTA_BYTE_ARRAY"}
    row = write(tmp_path, data, use_dictionary=False, column_encoding=encodings)
    assert assert_decoded(plan_of(tmp_path, schema_of(x=LONG, r=DOUBLE, s=STRING), [row])) == []


def many(folder: Path, count: int = 6, rows: int = 50, **options: Any) -> list[dict[str, Any]]:
    """Files with some rows each, one without rows, in partitions that are not in order, some with deleted rows."""
    found = []
    for k in range(count):
        ids = np.arange(k * rows, (k + 1) * rows)[: 0 if k == 2 else rows]
        data = pa.table(
            {
                "x": pa.array(ids, mask=ids % 7 == 3),
                "y": pa.array(ids * 0.5),
                "s": [f"the text of row {i}" if i % 5 else None for i in ids],
            }
        )
        row = write(folder, data, f"{k} *[{k}]%20.parquet", **options)
        row |= {"path": row["path"].replace("%", "%25"), "partition_values": {"p": [None, "1", "2"][k % 3]}}
        if k in (1, 4):
            row["deletion_vector"] = encode_inline(of_indexes([0, 7, 20, rows - 1]))
        found.append(row)
    return found


FULL = schema_of(p=INTEGER, x=LONG, y=DOUBLE, s=STRING)
CONDITIONS = [
    None,
    "x % 3 = 0",
    "x is null or y > 100",
    "s like '%2' and p = 1",
    "p is null",
    "x > 10000",
    "x + 1 > 140 and s is null",
]


@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("output", [None, ["y"], ["s", "p"]], ids=str)
@pytest.mark.parametrize("late", [0, 1 << 30], ids=["late", "at once"])
def test_conditions_partitions_and_deleted_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str | None, output: list[str] | None, late: int
) -> None:
    monkeypatch.setattr(files, "_LATE_BYTES", late)
    plan = plan_of(tmp_path, FULL, many(tmp_path, row_group_size=20), partitions=["p"], where=where, output=output)
    assert assert_decoded(plan) == []


def test_only_the_rows_of_a_vector(tmp_path: Path) -> None:
    given = [row | {"selects_rows": True} for row in many(tmp_path)]
    plan = plan_of(tmp_path, FULL, given, partitions=["p"])
    plan = plan.__class__(plan.version, plan.schema, plan.context, with_selections(plan.files))
    assert assert_decoded(plan) == []


def with_selections(found: pa.Table) -> pa.Table:
    return found.append_column("selects_rows", found["deletion_vector"].is_valid())


def test_a_vector_with_rows_that_the_file_does_not_have(tmp_path: Path) -> None:
    row = write(tmp_path, pa.table({"x": [1, 2]}))
    plan = plan_of(tmp_path, schema_of(x=LONG), [row | {"deletion_vector": encode_inline(of_indexes([2]))}])
    with pytest.raises(DeletionVectorError, match="has only 2 rows"):
        list(read_batches(plan, decoder=recorder(plan)))


def test_mapped_columns_and_columns_that_no_file_has(tmp_path: Path) -> None:
    schema = StructType((mapped("x", LONG, "col-1", 1), mapped("s", STRING, "col-2", 2)))
    row = write(tmp_path, pa.table({"col-2": ["a", None], "col-1": [1, 2], "x": [8, 9]}))
    extra = [Missing(StructField("v", DOUBLE))]
    assert assert_decoded(plan_of(tmp_path, schema, [row], mode="name", extra=extra)) == []


def int96(folder: Path) -> dict[str, Any]:
    at = pa.array([datetime(2024, 1, 1), datetime(9000, 1, 1)], pa.timestamp("us"))
    return write(folder, pa.table({"x": at}), use_deprecated_int96_timestamps=True)


def legacy(folder: Path) -> dict[str, Any]:
    footer = {"org.apache.spark.version": "2.4.8"}
    days = pa.array([-719164, 0], pa.int32()).cast(pa.date32())
    return write(folder, pa.table({"x": days}).replace_schema_metadata(footer))


def stored(*columns: tuple[str, pa.Array], **options: Any) -> Callable[[Path], dict[str, Any]]:
    def made(folder: Path) -> dict[str, Any]:
        arrays = [array for _, array in columns]
        data = pa.Table.from_arrays(arrays, schema=pa.schema([(name, array.type) for name, array in columns]))
        return write(folder, data, **options)

    return made


DAY = timedelta(days=1)
# Files that are not of the types of the table: how they are stored, the type of the table, and who decodes them when
# they are opened first. Unopened, Polars declines all of them.
OTHER: dict[str, tuple[Callable[[Path], dict[str, Any]], DataType, bool]] = {
    "widened integers": (stored(("x", pa.array([1, None], pa.int32()))), LONG, True),
    "widened floats": (stored(("x", pa.array([0.1, math.nan], pa.float32()))), DOUBLE, True),
    "widened decimals": (stored(("x", pa.array([Decimal("1.5")], pa.decimal128(5, 1)))), DecimalType(20, 3), True),
    "integers as decimals": (stored(("x", pa.array([7], pa.int32()))), DecimalType(20, 3), True),
    "unsigned integers": (stored(("x", pa.array([2**32 - 1], pa.uint32()))), LONG, True),
    "half floats": (stored(("x", pa.array([np.float16(0.5)], pa.float16()))), FLOAT, False),
    "dates as timestamps": (stored(("x", pa.array([date(2024, 1, 1)]))), TIMESTAMP_NTZ, True),
    "milliseconds": (stored(("x", pa.array([1], pa.timestamp("ms")))), TIMESTAMP_NTZ, False),
    "nanoseconds": (stored(("x", pa.array([-1], pa.timestamp("ns", "UTC")))), TIMESTAMP, False),
    "another zone": (stored(("x", pa.array([1], pa.timestamp("us", "Europe/Paris")))), TIMESTAMP, False),
    "no zone": (stored(("x", pa.array([1], pa.timestamp("us")))), TIMESTAMP, True),
    "INT96": (int96, TIMESTAMP_NTZ, False),
    "legacy calendar": (legacy, DATE, False),
    "bytes as text": (stored(("x", pa.array([b"a"])), store_schema=False), STRING, False),
    "text as bytes": (stored(("x", pa.array(["a"]))), BINARY, False),
    "dictionaries": (stored(("x", pa.array(["a", None]).dictionary_encode())), STRING, False),
    "another case": (stored(("X", pa.array([1, 2]))), LONG, True),
    "no such column": (stored(("y", pa.array([1, 2]))), LONG, True),
}


@pytest.mark.parametrize("name", OTHER)
def test_files_of_other_types(tmp_path: Path, unopened: bool, name: str) -> None:
    make, kind, if_opened = OTHER[name]
    declined = assert_decoded(plan_of(tmp_path, schema_of(x=kind), [make(tmp_path)]))
    takes_unopened = unopened and kind not in TIMES  # else the footer is read first
    assert bool(declined) is (takes_unopened or not if_opened)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_texts_of_other_arrow_types_are_the_same_in_polars(tmp_path: Path, kind: pa.DataType) -> None:
    row = write(tmp_path, pa.table({"x": pa.array(["a", None, "b" * 20], kind)}))
    assert assert_decoded(plan_of(tmp_path, schema_of(x=STRING), [row])) == []


def damage(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[4:200] = bytes(196)
    path.write_bytes(raw)


BROKEN: dict[str, Callable[[Path], Any]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "damaged": damage,
    "no Parquet": lambda path: path.write_bytes(b"PAR1" + b"x" * 100 + b"PAR1"),
}


@pytest.mark.parametrize("way", BROKEN)
def test_the_error_of_a_broken_file_is_that_of_pyarrow(tmp_path: Path, way: str) -> None:
    rows = [
        write(tmp_path, pa.table({"x": range(100)}), name, compression="none") for name in ("a.parquet", "b.parquet")
    ]
    BROKEN[way](tmp_path / "b.parquet")
    plan = plan_of(tmp_path, schema_of(x=LONG), rows)
    errors = []
    for decoder in (None, recorder(plan)):
        with pytest.raises(DataFileError, match=r"b\.parquet") as raised:
            list(read_batches(plan, decoder=decoder))
        errors.append(str(raised.value))
    assert errors[0] == errors[1]


def test_a_value_that_does_not_fit_is_an_error_with_its_column(tmp_path: Path) -> None:
    row = write(tmp_path, pa.table({"x": pa.array([2**63], pa.uint64())}))
    plan = plan_of(tmp_path, schema_of(x=LONG), [row])
    with pytest.raises(DataFileError, match=r"'x' of data file .* contains a value"):
        list(read_batches(plan, decoder=recorder(plan)))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    columns = pa.schema([("x", pa.int64()), ("x", pa.int64())])
    row = write(tmp_path, pa.Table.from_arrays([pa.array([1]), pa.array([2])], schema=columns))
    plan = plan_of(tmp_path, schema_of(x=LONG), [row])
    with pytest.raises(DataFileError, match="has 2 columns that match 'x'"):
        list(read_batches(plan, decoder=recorder(plan)))


def test_after_refusals_files_are_opened_first(tmp_path: Path, unopened: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of another type cost a scan two attempts, not one for each group of files."""
    monkeypatch.setattr(polars_decoder, "_UNIT_FILES", 5)
    given = [write(tmp_path, pa.table({"x": pa.array([i], pa.int32())}), f"{i}.parquet") for i in range(20)]
    plan = plan_of(tmp_path, schema_of(x=LONG), given)
    decoder = recorder(plan)
    assert sum(b.num_rows for b in read_batches(plan, 1, decoder)) == 20
    assert len([a for a in decoder.answers if a is not True]) == (2 if unopened else 0)


# ------------------------------------------------------------------------------------------ what is decoded at once
@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
    """How many files and which columns of them each call of Polars reads."""
    found: list[tuple[int, list[str]]] = []
    scan = polars_decoder.pl.scan_parquet

    def recorded(paths: list[str], schema: dict[str, Any], **options: Any) -> Any:
        found.append((len(paths), list(schema)))
        return scan(paths, schema=schema, **options)

    monkeypatch.setattr(polars_decoder.pl, "scan_parquet", recorded)
    return found


def test_row_groups_without_rows_of_the_condition_are_not_decoded(
    tmp_path: Path, unopened: bool, scans: list[tuple[int, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LATE_BYTES", 0)
    data = pa.table({"x": range(1000), "y": [i % 10 for i in range(1000)], "s": [f"s{i}" for i in range(1000)]})
    row = write(tmp_path, data, row_group_size=100)
    where = "x >= 250 and y * x = 9 * 259"  # the bounds of x leave out two row groups; one row meets it
    plan = plan_of(tmp_path, schema_of(x=LONG, y=LONG, s=STRING), [row], where=where)
    assert assert_decoded(plan) == []
    if unopened:
        assert scans == [(1, ["x", "y", "s"])]
    else:
        assert scans == [(1, ["x", "y"]), (1, ["s"]), *[(1, ["x", "y"])] * 7]


def test_files_and_row_groups_are_decoded_in_parts(
    tmp_path: Path, unopened: bool, scans: list[tuple[int, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded: by the bytes of files and their rows, and by the bytes of the columns of row groups."""
    given = [write(tmp_path, pa.table({"x": range(1000)}), f"{i}.parquet", row_group_size=100) for i in range(4)]
    plan = plan_of(tmp_path, schema_of(x=LONG), given)
    monkeypatch.setattr(polars_decoder, "_UNIT_BYTES", 2 * given[0]["size"])
    monkeypatch.setattr(polars_decoder, "_MOST_BYTES", 8000 if unopened else 1 << 20)  # unopened, the rows of one file
    assert assert_decoded(plan) == []
    assert sorted(count for count, _ in scans) == [1, 1, 1, 1, *([2, 2] if unopened else [])]
    monkeypatch.setattr(polars_decoder, "_MOST_BYTES", 100)
    assert len(assert_decoded(plan)) == (6 if unopened else 4)


def test_batches_for_arrow_are_bounded(tmp_path: Path) -> None:
    row = write(tmp_path, pa.table({"x": np.arange(600_000)}))
    plan = plan_of(tmp_path, schema_of(x=LONG), [row])
    batches = list(read_batches(plan, decoder=recorder(plan, views=False)))
    assert [len(batch) for batch in batches] == [262_144, 262_144, 75_712]


def test_texts_for_polars_are_views(tmp_path: Path) -> None:
    row = write(tmp_path, pa.table({"s": ["a"], "b": [b"a"]}))
    plan = plan_of(tmp_path, schema_of(s=STRING, b=BINARY), [row])
    [batch] = read_batches(plan, decoder=recorder(plan))
    assert batch.schema.types == [pa.string_view(), pa.binary_view()]


@pytest.mark.parametrize("wrong", ["order", "null", "sign"])
def test_the_comparison_sees_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """A decoder that swaps rows, invents a value for a null, or loses the sign of a zero is found."""
    row = write(tmp_path, pa.table({"x": [1.0, None, -0.0, 2.0]}))
    plan = plan_of(tmp_path, schema_of(x=DOUBLE), [row])
    change = {
        "order": lambda frame: frame.reverse(),
        "null": lambda frame: frame.fill_null(0.0),
        "sign": lambda frame: frame.select(polars_decoder.pl.col("x").abs()),
    }[wrong]
    batches = polars_decoder.PolarsDecoder._batches
    monkeypatch.setattr(
        polars_decoder.PolarsDecoder,
        "_batches",
        lambda self, sources, frame, constants: batches(self, sources, change(frame), constants),
    )
    with pytest.raises(AssertionError, match="instead of"):
        assert_decoded(plan)
