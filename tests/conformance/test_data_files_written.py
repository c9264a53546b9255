"""What data files look like that are written here: names, ids, types, places (CM, IC1, IC2, PQT, VAR, void)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.declarations import READER_WRITER, declare, field, protocol

from pyspark_delta.data.parts import write_files
from pyspark_delta.data.writer import WrittenFile
from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.transaction.write_plan import FileOptions, write_context

ID, PHYSICAL = "delta.columnMapping.id", "delta.columnMapping.physicalName"


def mapped(name: str, data_type: Any, number: int, **nested: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {ID: number, PHYSICAL: f"col-{number}"}
    if nested:
        ids = {f"col-{number}.{path.replace('_', '.')}": n for path, n in nested.items()}
        metadata["delta.columnMapping.nested.ids"] = ids
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def mapping(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def written(
    location: Path,
    rows: list[dict[str, Any]],
    *fields: dict[str, Any],
    features: tuple[str, ...] = (),
    properties: dict[str, str] | None = None,
    partition: tuple[str, ...] = (),
    options: FileOptions | None = None,
) -> list[WrittenFile]:
    """The files that the rows become."""
    listed = protocol(3, 7, [name for name in features if name in READER_WRITER], features)
    context = write_context(str(location), declare(listed, properties, fields, partition), options or FileOptions())
    table = pa.Table.from_pylist(rows, schema_to_arrow(context.schema, all_nullable=True))
    return list(write_files(context, table.to_batches()))


def ids_in(location: Path, file: WrittenFile) -> dict[str, int]:
    """The field ids of a file, by the dotted path of Parquet, groups of lists and maps included."""
    found: dict[str, int] = {}

    def walk(name: str, arrow_field: pa.Field) -> None:
        found[name] = int((arrow_field.metadata or {}).get(b"PARQUET:field_id", b"-1"))
        for i in range(arrow_field.type.num_fields):
            child = arrow_field.type.field(i)
            walk(f"{name}.{child.name}", child)

    for arrow_field in pq.read_schema(location / unquote(file.path)):
        walk(arrow_field.name, arrow_field)
    return found


NESTED = (
    mapped("a", "long", 1),
    mapped("s", struct(mapped("x", "string", 3), mapped("l", array("integer"), 4, element=5)), 2),
    mapped("m", mapping("string", struct(mapped("d", "double", 9))), 6, key=7, value=8),
    mapped("ll", array(array("date")), 10, element=11, element_element=12),
)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_c240_c241_c242_files_have_physical_names_and_ids_at_every_level(tmp_path: Path, mode: str) -> None:
    row = {"a": 1, "s": {"x": "t", "l": [1, None]}, "m": [("k", {"d": 0.5}), ("n", None)], "ll": [[None], None]}
    [file] = written(
        tmp_path,
        [row, {"a": None, "s": None, "m": None, "ll": None}],
        *NESTED,
        features=("columnMapping",),
        properties={"delta.columnMapping.mode": mode},
    )
    assert ids_in(tmp_path, file) == {  # the group of a map's entries is called by the name of the map
        "col-1": 1, "col-2": 2, "col-2.col-3": 3, "col-2.col-4": 4, "col-2.col-4.element": 5,
        "col-6": 6, "col-6.col-6": -1, "col-6.col-6.key": 7, "col-6.col-6.value": 8,
        "col-6.col-6.value.col-9": 9, "col-10": 10, "col-10.element": 11, "col-10.element.element": 12,
    }  # fmt: skip
    first, second = pq.read_table(tmp_path / file.path).to_pylist()
    assert first == {
        "col-1": 1,
        "col-2": {"col-3": "t", "col-4": [1, None]},
        "col-6": [("k", {"col-9": 0.5}), ("n", None)],
        "col-10": [[None], None],
    }
    assert set(second.values()) == {None}
    stats = json.loads(file.stats)
    assert stats["minValues"] == {"col-1": 1, "col-2": {"col-3": "t"}}
    assert stats["nullCount"] == {"col-1": 1, "col-2": {"col-3": 1, "col-4": 1}, "col-6": 1, "col-10": 1}


def test_c240_c245_physical_names_may_be_the_logical_names_of_others(tmp_path: Path) -> None:
    def renamed(name: str, number: int, physical: str) -> dict[str, Any]:
        return {**mapped(name, "long", number), "metadata": {ID: number, PHYSICAL: physical}}

    swapped = mapped("s", struct(renamed("y", 2, "x"), renamed("x", 3, "y")), 1)
    [file] = written(
        tmp_path, [{"s": {"y": 1, "x": 2}}], swapped, features=("columnMapping",),
        properties={"delta.columnMapping.mode": "name"},
    )  # fmt: skip
    assert pq.read_table(tmp_path / file.path).to_pylist() == [{"col-1": {"x": 1, "y": 2}}]


def test_c242_partition_values_go_by_physical_name_and_files_below_random_prefixes(tmp_path: Path) -> None:
    files = [
        file
        for _ in range(9)
        for file in written(
            tmp_path, [{"p": "x", "a": 1}], mapped("p", "string", 1), mapped("a", "long", 2),
            features=("columnMapping",), properties={"delta.columnMapping.mode": "name"}, partition=("p",),
        )
    ]  # fmt: skip
    assert all(file.partition_values == {"col-1": "x"} for file in files)
    prefixes = {file.path.split("/")[0] for file in files}
    assert len(prefixes) > 1
    assert all(len(prefix) == 2 and prefix.isalnum() for prefix in prefixes)


def test_random_prefixes_are_a_property_of_their_own(tmp_path: Path) -> None:
    properties = {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "5"}
    [file] = written(tmp_path, [{"p": 1, "a": 1}], field("p"), field("a"), properties=properties, partition=("p",))
    assert len(file.path.split("/")[0]) == 5


@pytest.mark.parametrize(
    ("features", "properties", "option", "expected"),
    [
        (("materializePartitionColumns",), {}, False, True),
        (("columnMapping", "icebergCompatV1"), {"delta.enableIcebergCompatV1": "true"}, None, True),
        (("columnMapping", "icebergCompatV2"), {"delta.enableIcebergCompatV2": "true"}, None, True),
        (("columnMapping", "icebergCompatV2"), {}, None, False),
        ((), {"delta.writePartitionColumnsToParquet": "true"}, None, True),
        ((), {"delta.writePartitionColumnsToParquet": "true"}, False, False),
        ((), {}, None, False),
    ],
)
def test_c288_c299_partition_columns_in_files(
    tmp_path: Path, features: tuple[str, ...], properties: dict[str, str], option: bool | None, expected: bool
) -> None:
    [file] = written(
        tmp_path, [{"p": "x", "a": 1}], field("p", "string"), field("a"), features=features, properties=properties,
        partition=("p",), options=FileOptions(partition_columns=option),
    )  # fmt: skip
    row = pq.ParquetFile(tmp_path / file.path).read().to_pylist()
    assert row == [{"a": 1, "p": "x"} if expected else {"a": 1}]
    assert file.partition_values == {"p": "x"}
    assert json.loads(file.stats)["nullCount"] == {"a": 0}


def test_c318_c436_c437_c438_c440_c441_physical_types(tmp_path: Path) -> None:
    types = {
        "boolean": ("BOOLEAN", ""), "byte": ("INT32", "Int(bitWidth=8, isSigned=true)"),
        "short": ("INT32", "Int(bitWidth=16, isSigned=true)"), "integer": ("INT32", ""), "long": ("INT64", ""),
        "float": ("FLOAT", ""), "double": ("DOUBLE", ""), "string": ("BYTE_ARRAY", "String"),
        "binary": ("BYTE_ARRAY", ""), "date": ("INT32", "Date"),
        "timestamp": ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds"),
        "timestamp_ntz": ("INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=microseconds"),
        "decimal(9,2)": ("INT32", "Decimal(precision=9, scale=2)"),
        "decimal(18,0)": ("INT64", "Decimal(precision=18, scale=0)"),
        "decimal(38,9)": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=9)"),
    }  # fmt: skip
    fields = [field(f"c{i}", name) for i, name in enumerate(types)]
    [file] = written(tmp_path, [{}], *fields, features=("timestampNtz",))
    schema = pq.ParquetFile(tmp_path / file.path).schema
    for i, (physical, logical) in enumerate(types.values()):
        column = schema.column(i)
        assert column.physical_type == physical
        assert str(column.logical_type).startswith(logical or "None"), column


def test_variants_are_two_binaries_and_only_their_nulls_are_counted(tmp_path: Path) -> None:
    variant = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    nested = (
        field("s", struct(field("w", "variant"))),
        field("l", array("variant")),
        field("m", mapping("string", "variant")),
    )
    rows = [
        {"v": variant, "a": 5, "s": {"w": None}, "l": [None, variant], "m": [("k", None)]},
        {"v": None, "a": 6, "s": None, "l": None, "m": None},
        {"v": None, "a": 7, "s": {"w": variant}, "l": [], "m": [("k", variant)]},
    ]
    columns = (field("v", "variant"), field("a"), *nested)
    [file] = written(tmp_path, rows, *columns, features=("variantType",))
    assert pq.read_table(tmp_path / file.path).to_pylist() == rows
    stats = json.loads(file.stats)
    assert stats["nullCount"] == {"v": 2, "a": 0, "s": {"w": 2}, "l": 1, "m": 1}
    assert (stats["minValues"], stats["maxValues"]) == ({"a": 5}, {"a": 7})
    files = written(tmp_path / "p", rows, *columns, features=("variantType",), partition=("a",))
    assert [pq.ParquetFile(tmp_path / "p" / f.path).read().to_pylist()[0]["l"] for f in files] == [
        [None, variant], None, []
    ]  # fmt: skip


def test_void_is_never_stored(tmp_path: Path) -> None:
    nested = struct(field("x"), field("v", "void"))
    [file] = written(tmp_path, [{"a": 1, "s": {"x": 2}}], field("v", "void"), field("a"), field("s", nested))
    assert pq.read_table(tmp_path / file.path).to_pylist() == [{"a": 1, "s": {"x": 2}}]


@pytest.mark.parametrize(
    "data_type",
    ["void", array("void"), mapping("string", "void"), struct(field("v", "void")), "interval year to month"],
)
def test_schemas_that_no_file_can_hold(tmp_path: Path, data_type: Any) -> None:
    with pytest.raises(SchemaMismatchError):
        written(tmp_path, [], field("x", data_type))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("version", "expected"), [("1.0.0", "1.0"), ("2.4.0", "2.6"), (None, "1.0")])
def test_the_parquet_format_version_is_a_property(tmp_path: Path, version: str | None, expected: str) -> None:
    properties = {} if version is None else {"delta.parquet.format.version": version}
    [file] = written(tmp_path, [{"a": 1}], field("a"), properties=properties)
    assert pq.read_metadata(tmp_path / file.path).format_version == expected


@pytest.mark.parametrize(("codec", "expected"), [(None, "ZSTD"), ("SNAPPY", "SNAPPY"), ("none", "UNCOMPRESSED")])
def test_files_are_compressed_as_the_table_says(tmp_path: Path, codec: str | None, expected: str) -> None:
    properties = {} if codec is None else {"delta.parquet.compression.codec": codec}
    [file] = written(tmp_path, [{"a": 1}], field("a"), properties=properties)
    assert pq.read_metadata(tmp_path / file.path).row_group(0).column(0).compression == expected
