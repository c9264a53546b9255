"""Column mapping and missing columns as a reader meets them (CM, WGN)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.data.planned import mapped, rows_of, schema_of, write

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.errors import CorruptLogError, DataFileError, UnsupportedTableError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.column_mapping import field_id, mapping_mode, nested_ids, physical_schema
from pyspark_delta.schema.json import parse_schema
from pyspark_delta.schema.types import LONG, STRING, ArrayType, MapType, StructField, StructType

# The array of structs of the specification's example: the element has no id, its member has.
EXAMPLE = """{"type":"struct","fields":[{"name":"e","type":{"type":"array","elementType":{"type":"struct","fields":[
{"name":"d","type":"integer","nullable":false,"metadata":{"delta.columnMapping.id":5,
"delta.columnMapping.physicalName":"col-a7f4159c-53be-4cb0-b81a-f7e5240cfc49"}}]},"containsNull":true},
"nullable":true,"metadata":{"delta.columnMapping.id":4,
"delta.columnMapping.physicalName":"col-5f422f40-de70-45b2-88ab-1d5c90e94db1"}}]}"""


def configuration(mode: str | None, reader: int, reader_features: frozenset[str] | None = None) -> TableConfiguration:
    properties = {} if mode is None else {"delta.columnMapping.mode": mode}
    protocol = Protocol(
        min_reader_version=reader,
        min_writer_version=7 if reader == 3 else 5,
        reader_features=reader_features,
        writer_features=reader_features,
    )
    return TableConfiguration(
        protocol, Metadata(id="m", schema_string='{"type":"struct","fields":[]}', configuration=properties)
    )


@pytest.mark.parametrize("mode", ["none", "name", "id", "NAME"])
def test_c236_the_mode_is_a_table_property(mode: str) -> None:
    assert mapping_mode(configuration(mode, 2)) == mode.lower()


def test_c236_other_modes_are_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="must be one of none, name, id"):
        mapping_mode(configuration("position", 2))


def test_c236_every_field_needs_its_physical_name_and_id() -> None:
    with pytest.raises(CorruptLogError, match=r"Column 's\.x' has no delta\.columnMapping\.physicalName"):
        physical_schema(
            StructType((mapped("s", StructType((StructField("x", LONG),)), "p", 1),)),
            "name",
        )
    broken = StructField("x", LONG, True, {"delta.columnMapping.physicalName": "p", "delta.columnMapping.id": 2**31})
    with pytest.raises(CorruptLogError, match="not a 32-bit number"):
        field_id(broken)


@pytest.mark.parametrize(
    ("reader", "features", "honoured"),
    [
        (1, None, False),
        (2, None, True),
        (3, frozenset({"columnMapping"}), True),
        (3, frozenset({"deletionVectors"}), False),
    ],
)
def test_c237_the_property_counts_only_where_the_protocol_supports_it(
    reader: int, features: frozenset[str] | None, honoured: bool
) -> None:
    assert mapping_mode(configuration("name", reader, features)) == ("name" if honoured else "none")


def test_c238_physical_names_inside_arrays() -> None:
    physical = physical_schema(parse_schema(EXAMPLE), "id")
    outer = physical.fields[0]
    assert (outer.name, field_id(outer)) == ("col-5f422f40-de70-45b2-88ab-1d5c90e94db1", 4)
    assert isinstance(outer.type, ArrayType)
    assert isinstance(outer.type.element_type, StructType)
    inner = outer.type.element_type.fields[0]
    assert (inner.name, field_id(inner)) == ("col-a7f4159c-53be-4cb0-b81a-f7e5240cfc49", 5)
    assert nested_ids(outer) == {}


@pytest.mark.parametrize("key", ["delta.columnMapping.nested.ids", "parquet.field.nested.ids"])
@pytest.mark.parametrize("prefix", ["col-1", "m.x"])
def test_nested_ids_are_read_under_both_keys_and_prefixes(key: str, prefix: str) -> None:
    ids = {f"{prefix}.key": 7, f"{prefix}.value": 8, f"{prefix}.value.element": 9}
    found = nested_ids(mapped("m.x", MapType(STRING, ArrayType(LONG)), "col-1", 1, **{key: ids}))
    assert found == {"key": 7, "value": 8, "value.element": 9}


def test_c245_c249_mode_name_matches_physical_names_and_a_rename_changes_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"col-1": [1, 2], "old": ["a", "b"]}))
    before = StructType((mapped("number", LONG, "col-1", 1), mapped("new", STRING, "col-2", 2)))
    after = StructType((mapped("renamed", LONG, "col-1", 1),))
    assert rows_of(tmp_path, before, [file], mode="name") == [{"number": 1, "new": None}, {"number": 2, "new": None}]
    assert rows_of(tmp_path, after, [file], mode="name") == [{"renamed": 1}, {"renamed": 2}]


def test_c246_without_mapping_columns_match_by_display_name(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"x": [1], "col-1": [2]}))
    schema = StructType((mapped("x", LONG, "col-1", 1),))
    assert rows_of(tmp_path, schema, [file]) == [{"x": 1}]


def test_without_an_exact_match_case_does_not_matter(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"Alpha": [1], "S": pa.array([{"Inner": 2}])}))
    schema = schema_of(aLPHA=LONG, s=StructType((StructField("iNNER", LONG),)))
    assert rows_of(tmp_path, schema, [file]) == [{"aLPHA": 1, "s": {"iNNER": 2}}]


def with_id(name: str, kind: pa.DataType, identifier: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(identifier)})


def test_c247_mode_id_matches_field_ids_at_every_level_and_never_names(tmp_path: Path) -> None:
    inner = pa.struct([with_id("other", pa.int64(), 12)])
    arrow = pa.schema(
        [
            with_id("a", pa.int64(), 2),
            with_id("b", pa.int64(), 1),
            with_id("l", pa.list_(with_id("e", inner, 90)), 3),
            with_id("m", pa.map_(with_id("k", inner, 91).with_nullable(False), with_id("v", inner, 92)), 4),
        ]
    )
    stored = pa.table([[20], [10], [[{"other": 5}]], [[({"other": 6}, {"other": 7})]]], schema=arrow)
    member = StructType((mapped("x", LONG, "phys-x", 12),))
    schema = StructType(
        (
            mapped("a", LONG, "a", 1),
            mapped("b", LONG, "b", 2),
            mapped("l", ArrayType(member), "zz", 3),
            mapped("m", MapType(member, member), "yy", 4),
        )
    )
    rows = rows_of(tmp_path, schema, [write(tmp_path, stored)], mode="id")
    assert rows == [{"a": 10, "b": 20, "l": [{"x": 5}], "m": [({"x": 6}, {"x": 7})]}]


def test_c247_partition_values_stay_under_physical_names_in_mode_id(tmp_path: Path) -> None:
    arrow = pa.schema([with_id("a", pa.int64(), 1)])
    file = write(tmp_path, pa.table([[1]], schema=arrow)) | {"partition_values": {"col-p": "x", "p": "wrong"}}
    schema = StructType((mapped("a", LONG, "a", 1), mapped("p", STRING, "col-p", 2)))
    assert rows_of(tmp_path, schema, [file], mode="id", partitions=["p"]) == [{"a": 1, "p": "x"}]


def test_c248_an_id_that_the_file_lacks_is_null(tmp_path: Path) -> None:
    stored = pa.table([[1]], schema=pa.schema([with_id("a", pa.int64(), 1)]))
    schema = StructType((mapped("a", LONG, "a", 9), mapped("b", LONG, "a", 1)))
    assert rows_of(tmp_path, schema, [write(tmp_path, stored)], mode="id") == [{"a": None, "b": 1}]


def test_c248_a_file_without_any_ids_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"a": [1]}))
    with pytest.raises(DataFileError, match="has no field ids, but the table maps columns by id"):
        rows_of(tmp_path, StructType((mapped("a", LONG, "a", 1),)), [file], mode="id")


def test_c372_columns_beyond_the_schema_are_ignored(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"x": [1], "_change_type": ["insert"], "y": [2]}))
    assert rows_of(tmp_path, schema_of(x=LONG), [file]) == [{"x": 1}]


def test_c374_a_column_that_the_file_lacks_is_null_even_when_it_must_not_be(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"x": [1, 2]}))
    schema = StructType((StructField("x", LONG), StructField("required", STRING, nullable=False)))
    assert rows_of(tmp_path, schema, [file]) == [{"x": 1, "required": None}, {"x": 2, "required": None}]
