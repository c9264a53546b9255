"""Schema serialization (SCH), Parquet type mapping (PQT), type widening, variants, void, row tracking as read (RT)."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import hand_made
from tests.golden.catalogue import assert_content
from tests.hand_made import HandMade
from tests.unit.data.planned import plan_of, rows_of, schema_of, write

from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import CorruptLogError, DataFileError, UnsupportedTableError
from pyspark_delta.scan.plan import RowCommitVersion, RowId
from pyspark_delta.schema.arrow import from_arrow, schema_from_arrow, schema_to_arrow, to_arrow
from pyspark_delta.schema.json import parse_schema, schema_to_json
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
    VOID,
    YEAR_MONTH_INTERVAL,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from pyspark_delta.schema.widening import check_type_changes, is_lossless, is_widening
from pyspark_delta.table import Table

# The example at the end of the section Schema Serialization Format.
EXAMPLE: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"name": "a", "type": "integer", "nullable": False, "metadata": {}},
        {
            "name": "b",
            "type": {
                "type": "struct",
                "fields": [{"name": "d", "type": "integer", "nullable": False, "metadata": {}}],
            },
            "nullable": True,
            "metadata": {},
        },
        {
            "name": "c",
            "type": {"type": "array", "elementType": "integer", "containsNull": False},
            "nullable": True,
            "metadata": {},
        },
        {
            "name": "e",
            "type": {
                "type": "array",
                "elementType": {
                    "type": "struct",
                    "fields": [{"name": "d", "type": "integer", "nullable": False, "metadata": {}}],
                },
                "containsNull": True,
            },
            "nullable": True,
            "metadata": {},
        },
        {
            "name": "f",
            "type": {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
            "nullable": True,
            "metadata": {},
        },
    ],
}


def field_json(kind: Any, **metadata: Any) -> str:
    field = {"name": "x", "type": kind, "nullable": True, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})


# -------------------------------------------------------------------------------------------------------- SCH
@pytest.mark.parametrize(
    "name",
    ["string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp",
     "timestamp_ntz", "decimal(38,18)", "decimal(1,0)", "void", "variant"],
)  # fmt: skip
def test_c320_c426_every_primitive_name_is_known_and_kept(name: str) -> None:
    schema = parse_schema(field_json(name))
    assert str(schema.fields[0].type) == name
    assert parse_schema(schema_to_json(schema)) == schema


@pytest.mark.parametrize(("written", "meant"), [("null", "void"), ("timestamp_ltz", "timestamp")])
def test_c426_other_names_that_spark_knows_for_a_type(written: str, meant: str) -> None:
    assert str(parse_schema(field_json(written)).fields[0].type) == meant


@pytest.mark.parametrize("name", ["decimal(39,0)", "decimal(5,6)", "decimal(0,0)"])
def test_c426_decimals_have_at_most_38_digits(name: str) -> None:
    with pytest.raises(CorruptLogError, match="not a decimal of 1 to 38 digits"):
        parse_schema(field_json(name))


def test_c427_c428_timestamps_are_microseconds_with_and_without_zone() -> None:
    assert to_arrow(TIMESTAMP) == pa.timestamp("us", tz="UTC")
    assert to_arrow(TIMESTAMP_NTZ) == pa.timestamp("us")


def test_c429_void_columns_are_null_on_read(tmp_path: Path) -> None:
    assert to_arrow(VOID) == pa.null()
    file = write(tmp_path, pa.table({"v": pa.array([True, False]), "x": [1, 2]}))
    assert rows_of(tmp_path, schema_of(x=LONG, v=VOID), [file]) == [{"x": 1, "v": None}, {"x": 2, "v": None}]


def test_c430_c431_c432_c433_c435_the_example_round_trips() -> None:
    schema = parse_schema(json.dumps(EXAMPLE))
    assert json.loads(schema_to_json(schema)) == EXAMPLE
    arrow = schema_to_arrow(schema)
    assert not arrow.field("a").nullable
    assert not arrow.field("c").type.value_field.nullable
    assert arrow.field("f").type == pa.map_(pa.string(), pa.string())
    assert schema_from_arrow(arrow) == schema


def test_c431_unknown_metadata_is_kept() -> None:
    text = field_json("long", comment="c", **{"delta.reserved.x": {"y": [1]}})
    assert json.loads(schema_to_json(parse_schema(text))) == json.loads(text)


@pytest.mark.parametrize(
    "data_type",
    [STRING, LONG, INTEGER, SHORT, BYTE, FLOAT, DOUBLE, BOOLEAN, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID, VARIANT,
     DAY_TIME_INTERVAL, DecimalType(38, 10), ArrayType(LONG, False), MapType(STRING, ArrayType(DATE)),
     StructType((StructField("a", VARIANT, False), StructField("b", LONG)))],
    ids=str,
)  # fmt: skip
def test_every_type_has_an_arrow_type_and_comes_back(data_type: DataType) -> None:
    assert from_arrow(to_arrow(data_type)) == data_type


# -------------------------------------------------------------------------------------------------------- PQT
def read_one(tmp_path: Path, data_type: DataType, array: pa.Array, **options: Any) -> list[Any]:
    file = write(tmp_path, pa.table({"x": array}), **options)
    return [row["x"] for row in rows_of(tmp_path, schema_of(x=data_type), [file])]


@pytest.mark.parametrize(
    ("data_type", "arrow_type"),
    [(BYTE, pa.int8()), (SHORT, pa.int16()), (INTEGER, pa.int32()), (LONG, pa.int64())],
    ids=str,
)
def test_c436_integers_with_and_without_annotation(tmp_path: Path, data_type: DataType, arrow_type: Any) -> None:
    assert read_one(tmp_path, data_type, pa.array([1, -2, None], arrow_type)) == [1, -2, None]
    if arrow_type.bit_width < 32:
        assert read_one(tmp_path, data_type, pa.array([1, -2, None], pa.int32())) == [1, -2, None]


def test_c436_booleans(tmp_path: Path) -> None:
    assert read_one(tmp_path, BOOLEAN, pa.array([True, None])) == [True, None]


def test_c437_dates_and_floating_numbers(tmp_path: Path) -> None:
    days = [dt.date(1, 1, 1), dt.date(9999, 12, 31)]
    assert read_one(tmp_path, DATE, pa.array(days)) == days
    assert read_one(tmp_path, FLOAT, pa.array([1.5], pa.float32())) == [1.5]
    assert read_one(tmp_path, DOUBLE, pa.array([1.5])) == [1.5]


FAR = [
    dt.datetime(1, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
]


@pytest.mark.parametrize("data_type", [TIMESTAMP, TIMESTAMP_NTZ], ids=str)
@pytest.mark.parametrize("int96", [True, False])
def test_c438_timestamps_as_int96_or_int64_over_the_whole_calendar(
    tmp_path: Path, data_type: DataType, int96: bool
) -> None:
    stored = pa.array(FAR, pa.timestamp("us", tz="UTC" if data_type == TIMESTAMP else None))
    options: dict[str, Any] = {"use_deprecated_int96_timestamps": int96, "store_schema": False}
    found = read_one(tmp_path, data_type, stored, **options)
    if int96:
        assert pq.ParquetFile(tmp_path / "f.parquet").schema.column(0).physical_type == "INT96"
    assert [v.replace(tzinfo=None) for v in found] == FAR


def test_c438_other_units_and_writers_that_forget_the_zone(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC)
    micros = int(moment.timestamp()) * 1_000_000 + 678_000
    for unit, count in (("ms", micros // 1000), ("us", micros), ("ns", micros * 1000)):
        for zone in ("UTC", None):
            stored = pa.array([count], pa.int64()).view(pa.timestamp(unit, tz=zone))
            assert read_one(tmp_path, TIMESTAMP, stored) == [moment]
            assert read_one(tmp_path, TIMESTAMP_NTZ, stored) == [moment.replace(tzinfo=None)]


def test_c438_nanoseconds_are_cut_towards_the_past(tmp_path: Path) -> None:
    stored = pa.array([-1, 1999, None], pa.int64()).view(pa.timestamp("ns", tz="UTC"))
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    found = read_one(tmp_path, TIMESTAMP, stored, version="2.6")
    assert found == [epoch - dt.timedelta(microseconds=1), epoch + dt.timedelta(microseconds=1), None]


@pytest.mark.parametrize(("precision", "physical"), [(9, "INT32"), (18, "INT64"), (38, "FIXED_LEN_BYTE_ARRAY")])
@pytest.mark.parametrize("as_integer", [True, False])
def test_c440_decimals_in_every_physical_form(tmp_path: Path, precision: int, physical: str, as_integer: bool) -> None:
    values = [Decimal("-1.25"), Decimal("12345.67"), None]
    stored = pa.array(values, pa.decimal128(precision, 2))
    found = read_one(tmp_path, DecimalType(precision, 2), stored, store_decimal_as_integer=as_integer)
    assert found == values
    expected = physical if as_integer else "FIXED_LEN_BYTE_ARRAY"
    assert pq.ParquetFile(tmp_path / "f.parquet").schema.column(0).physical_type == expected


def test_c441_strings_and_binaries(tmp_path: Path) -> None:
    assert read_one(tmp_path, STRING, pa.array(["ü", None])) == ["ü", None]
    assert read_one(tmp_path, STRING, pa.array(["ü".encode()])) == ["ü"]
    assert read_one(tmp_path, BINARY, pa.array([b"\xff"])) == [b"\xff"]
    assert read_one(tmp_path, BINARY, pa.array([b"abcd"], pa.binary(4))) == [b"abcd"]
    with pytest.raises(DataFileError, match="not of type string"):
        read_one(tmp_path, STRING, pa.array([b"\xff"]))


@pytest.mark.parametrize("compliant", [True, False])
def test_c442_lists_structs_and_maps(tmp_path: Path, compliant: bool) -> None:
    lists = pa.array([[1, None], [], None])
    assert read_one(tmp_path, ArrayType(LONG), lists, use_compliant_nested_type=compliant) == [[1, None], [], None]
    pairs = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
    assert read_one(tmp_path, MapType(STRING, LONG), pairs) == [[("a", 1)], None]
    entries = pa.array([[{"key": "a", "value": 1}], None])
    assert read_one(tmp_path, MapType(STRING, LONG), entries) == [[("a", 1)], None]
    kind = StructType((StructField("b", STRING), StructField("a", LONG)))
    assert read_one(tmp_path, kind, pa.array([{"a": 1, "b": "x"}, None])) == [{"b": "x", "a": 1}, None]


def test_c442_lists_and_maps_with_the_names_of_old_writers(golden_table: Callable[[str], Path]) -> None:
    folder = golden_table("delta-golden/parquet-all-types-legacy-format")
    expected = json.loads((folder.parent / f"{folder.name}.expected.json").read_text())
    files = [{"path": f.name, "size": 0} for f in sorted(folder.glob("*.parquet"))]
    assert "repeated group field_id=-1 bag" in str(pq.ParquetFile(folder / files[0]["path"]).schema)
    assert_content(
        read_plan(plan_of(folder, parse_schema(json.dumps(expected["schema_json"])), files)).read_all(), expected
    )


def test_c443_files_of_several_writers_mix_in_one_table(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    files = [
        write(tmp_path, pa.table({"x": pa.array([moment])}), "a.parquet", use_deprecated_int96_timestamps=True),
        write(tmp_path, pa.table({"x": pa.array([moment], pa.timestamp("ms", tz="UTC"))}), "b.parquet"),
        write(tmp_path, pa.table({"y": [1]}), "c.parquet"),
    ]
    rows = rows_of(tmp_path, schema_of(x=TIMESTAMP), files)
    assert rows == [{"x": moment}, {"x": moment}, {"x": None}]


def test_c318_timestamp_ntz_inside_arrays_is_read(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 1, 1, 12)
    assert read_one(tmp_path, ArrayType(TIMESTAMP_NTZ), pa.array([[moment]])) == [[moment]]


# ----------------------------------------------------------------------------------------------- type widening
WIDENINGS: list[tuple[DataType, DataType, Any, Any]] = [
    (BYTE, SHORT, 1, 1),
    (BYTE, INTEGER, 1, 1),
    (BYTE, LONG, 1, 1),
    (SHORT, INTEGER, 2, 2),
    (SHORT, LONG, 2, 2),
    (INTEGER, LONG, 3, 3),
    (FLOAT, DOUBLE, 1.5, 1.5),
    (BYTE, DOUBLE, 1, 1.0),
    (SHORT, DOUBLE, 2, 2.0),
    (INTEGER, DOUBLE, 3, 3.0),
    (DATE, TIMESTAMP_NTZ, dt.date(2020, 1, 2), dt.datetime(2020, 1, 2)),
    (DecimalType(6, 2), DecimalType(10, 4), Decimal("1.25"), Decimal("1.2500")),
    (DecimalType(6, 2), DecimalType(7, 2), Decimal("1.25"), Decimal("1.25")),
    (BYTE, DecimalType(10, 0), 1, Decimal(1)),
    (INTEGER, DecimalType(12, 2), 2**31 - 1, Decimal("2147483647.00")),
    (LONG, DecimalType(20, 0), -(2**63), Decimal(-(2**63))),
    (LONG, DecimalType(22, 2), 5, Decimal("5.00")),
]
# Changes that other writers make: they are read, and not made.
LOSSLESS: list[tuple[DataType, DataType, Any, Any]] = [
    (BYTE, DecimalType(4, 1), -128, Decimal("-128.0")),
    (BYTE, DecimalType(3, 0), 127, Decimal(127)),
    (SHORT, DecimalType(7, 2), -(2**15), Decimal("-32768.00")),
    (LONG, DecimalType(19, 0), -(2**63), Decimal(-(2**63))),
    (BYTE, FLOAT, -128, -128.0),
    (SHORT, FLOAT, 2**15 - 1, 32767.0),
]
NARROWINGS: list[tuple[DataType, DataType]] = [
    (LONG, INTEGER),
    (LONG, DOUBLE),
    (INTEGER, FLOAT),
    (DOUBLE, FLOAT),
    (DATE, TIMESTAMP),
    (STRING, LONG),
    (LONG, STRING),
    (DecimalType(10, 2), DecimalType(10, 4)),
    (DecimalType(10, 2), DecimalType(9, 2)),
    (LONG, DecimalType(10, 0)),
    (LONG, DecimalType(17, 0)),
    (BYTE, DecimalType(3, 1)),
    (SHORT, DecimalType(4, 0)),
    (LONG, FLOAT),
    (BOOLEAN, INTEGER),
]


@pytest.mark.parametrize(("narrow", "wide", "stored", "value"), [*WIDENINGS, *LOSSLESS], ids=str)
def test_a1_old_files_are_widened_at_every_level(
    tmp_path: Path, narrow: DataType, wide: DataType, stored: Any, value: Any
) -> None:
    assert is_lossless(narrow, wide)
    assert is_widening(narrow, wide) == ((narrow, wide, stored, value) not in LOSSLESS)
    array = pa.array([stored, None], to_arrow(narrow))
    assert read_one(tmp_path, wide, array) == [value, None]
    assert read_one(tmp_path, ArrayType(wide), pa.array([[stored]], pa.list_(array.type))) == [[value]]
    assert read_one(tmp_path, MapType(wide, wide), pa.array([[(stored, stored)]], pa.map_(array.type, array.type))) == [
        [(value, value)]
    ]


@pytest.mark.parametrize(("narrow", "wide"), NARROWINGS, ids=str)
def test_a1_other_changes_are_refused(tmp_path: Path, narrow: DataType, wide: DataType) -> None:
    assert not is_lossless(narrow, wide)
    with pytest.raises(DataFileError, match="cannot be widened"):
        read_one(tmp_path, wide, pa.nulls(1, to_arrow(narrow)))


@pytest.mark.parametrize(("narrow", "wide", "stored", "value"), LOSSLESS, ids=str)
def test_a1_files_are_skipped_by_statistics_of_the_narrower_type(
    tmp_path: Path, narrow: DataType, wide: DataType, stored: Any, value: Any
) -> None:
    """In the log, in typed statistics of a checkpoint, and in footers; partition values are texts of that type."""
    made = HandMade(tmp_path / "t")
    changes = {"delta.typeChanges": [{"fromType": str(narrow), "toType": str(wide)}]}
    columns = [hand_made.field("x", str(narrow)), hand_made.field("p", str(narrow)), hand_made.field("n")]
    typed = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    describe = {"partition": ["p"], "configuration": typed}
    made.commit(0, hand_made.features("typeWidening"), hand_made.metadata(*columns, **describe))
    for version, number in enumerate((stored, 1, 2), 1):
        rows = pa.table({"x": pa.array([number, None], to_arrow(narrow)), "n": [version, -version]})
        bounds = {"minValues": {"x": number}, "maxValues": {"x": number}, "nullCount": {"x": 1}}
        stats = json.dumps({"numRecords": 2, **bounds})
        added = made.data(f"{version}.parquet", rows, {"p": str(number)})
        made.commit(version, {"add": {**added["add"], "stats": stats}})
    wider = [hand_made.field(name, str(wide), **changes) for name in ("x", "p")]
    made.commit(4, hand_made.metadata(*wider, hand_made.field("n"), **describe))
    for _ in range(2):
        table = Table.open(made.path)
        for column in ("x", "p"):
            scan = table.scan(where=f"{column} = {value}")
            assert scan.files().num_rows == 1, column
            assert {"x": value, "p": value, "n": 1} in scan.to_arrow().to_pylist()
        assert sorted(r["x"] for r in table.scan().to_arrow().to_pylist() if r["x"] is not None) == sorted(
            [value, 1, 2]
        )
        table.snapshot.checkpoint()


def test_a1_the_recorded_history_is_checked() -> None:
    good = [
        [{"fromType": "short", "toType": "integer"}, {"fromType": "integer", "toType": "long"}],
        [{"fromType": "float", "toType": "double", "fieldPath": "key"}],
        [{"fromType": "decimal(6,2)", "toType": "decimal(10,4)", "fieldPath": "element.value"}],
    ]
    for changes in good:
        check_type_changes(parse_schema(field_json("long", **{"delta.typeChanges": changes})))
    bad = field_json("string", **{"delta.typeChanges": [{"fromType": "long", "toType": "string", "fieldPath": "key"}]})
    outer = {"type": "array", "elementType": json.loads(bad), "containsNull": True}
    with pytest.raises(UnsupportedTableError, match=r"Column 'x\.element\.x\.key' was changed from long to string"):
        check_type_changes(parse_schema(field_json(outer)))
    with pytest.raises(CorruptLogError, match=r"delta\.typeChanges of column 'x'"):
        check_type_changes(parse_schema(field_json("long", **{"delta.typeChanges": [{"toType": "long"}]})))


@pytest.mark.parametrize(("features", "refused"), [(["typeWidening"], True), (["timestampNtz"], False)])
def test_a1_a_scan_refuses_a_history_it_cannot_read(tmp_path: Path, features: list[str], refused: bool) -> None:
    schema = field_json("string", **{"delta.typeChanges": [{"fromType": "long", "toType": "string"}]})
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    metadata = {"id": "m", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
                "partitionColumns": [], "configuration": {}}  # fmt: skip
    (tmp_path / "_delta_log").mkdir()
    lines = [json.dumps({"protocol": protocol}), json.dumps({"metaData": metadata})]
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("\n".join(lines))
    table = Table.open(tmp_path)
    if refused:
        with pytest.raises(UnsupportedTableError, match="Column 'x' was changed from long to string"):
            table.scan()
    else:
        assert table.scan().to_arrow().num_rows == 0


def test_a5_void_widens_to_anything() -> None:
    assert is_widening(VOID, STRING)
    assert not is_widening(STRING, VOID)


def test_b5_intervals_are_numbers_in_files(tmp_path: Path) -> None:
    assert read_one(tmp_path, YEAR_MONTH_INTERVAL, pa.array([14], pa.int32())) == [14]
    assert read_one(tmp_path, DAY_TIME_INTERVAL, pa.array([1_500_000])) == [dt.timedelta(seconds=1.5)]


# ------------------------------------------------------------------------------------------------ row tracking
ROW_ID, VERSION = StructField("_row_id", LONG), StructField("_row_commit_version", LONG)


def tracked(tmp_path: Path, table: pa.Table, id_name: str | None, version_name: str | None) -> list[dict[str, Any]]:
    file = write(tmp_path, table) | {"base_row_id": 100, "default_row_commit_version": 5}
    extra = [RowId(ROW_ID, id_name), RowCommitVersion(VERSION, version_name)]
    return rows_of(tmp_path, schema_of(x=LONG), [file], extra=extra)


def test_c323_c326_c327_c328_fresh_ids_and_versions(tmp_path: Path) -> None:
    rows = tracked(tmp_path, pa.table({"x": [1, 2]}), None, None)
    assert rows == [
        {"x": 1, "_row_id": 100, "_row_commit_version": 5},
        {"x": 2, "_row_id": 101, "_row_commit_version": 5},
    ]


def test_c324_c327_c328_materialised_values_win_where_they_are_not_null(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2, 3], "m-id": [7, None, None], "m-version": pa.array([None, 2, None], pa.int64())})
    rows = tracked(tmp_path, table, "m-id", "m-version")
    assert [(r["_row_id"], r["_row_commit_version"]) for r in rows] == [(7, 5), (101, 2), (102, 5)]
    assert set(rows[0]) == {"x", "_row_id", "_row_commit_version"}


def test_c324_the_materialised_column_may_be_absent_from_a_file(tmp_path: Path) -> None:
    rows = tracked(tmp_path, pa.table({"x": [1]}), "m-id", "m-version")
    assert rows == [{"x": 1, "_row_id": 100, "_row_commit_version": 5}]


def test_unknown_types_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedTableError, match=r"'geometry\(SRID:0\)' at schema\.x is not supported"):
        parse_schema(field_json("geometry(SRID:0)"))
    assert PrimitiveType("variant") == VARIANT


def test_c442_two_level_lists() -> None:
    folder = Path(__file__).parents[1] / "unit" / "data" / "vectors"
    schema = schema_of(
        a=ArrayType(LONG),
        b=ArrayType(StructType((StructField("y", STRING),))),
        c=ArrayType(ArrayType(INTEGER)),
        m=MapType(STRING, ArrayType(INTEGER)),
    )
    rows = rows_of(folder, schema, [{"path": "two_level_lists.parquet"}])
    assert rows == [
        {"a": [1, 2, 3], "b": [{"y": "y"}], "c": [[1], [2, 3]], "m": [("k", [1])]},
        {"a": [4], "b": [{"y": "z"}], "c": [[9]], "m": [("l", [5, 6])]},
    ]
