"""Checklist area CM, writers: ids and physical names of columns, and what files and the log hold under them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.declarations import declare, field, protocol
from tests.evolving import PLAIN, changed, columns, created, features, stored, versions

from pyspark_delta.data.parts import write_files
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.column_ids import all_ids
from pyspark_delta.schema.column_mapping import ID, PHYSICAL_NAME
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.traversal import fields_in
from pyspark_delta.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from pyspark_delta.transaction.evolution import evolve
from pyspark_delta.transaction.write_plan import FileOptions, write_context

NAME = {"delta.columnMapping.mode": "name"}
NESTED = columns(
    id=INTEGER,
    a=ArrayType(columns(x=INTEGER, m=MapType(STRING, columns(y=INTEGER)))),
    s=columns(t=STRING),
)


def ids(table: TableConfiguration) -> dict[str, int]:
    """Column ids by logical name, of all levels."""
    return {f.name: f.metadata[ID] for f in fields_in(stored(table))}


def physical(table: TableConfiguration) -> dict[str, str]:
    """Physical by logical names, of all levels."""
    return {f.name: f.metadata[PHYSICAL_NAME] for f in fields_in(stored(table))}


@pytest.mark.parametrize("mode", ["name", "id"])
def test_c236_c239_every_field_of_a_new_table_gets_an_id_and_a_name(mode: str) -> None:
    table = created({"delta.columnMapping.mode": mode}, NESTED)
    assert ids(table) == {"id": 1, "a": 2, "x": 3, "m": 4, "y": 5, "s": 6, "t": 7}  # as delta-spark counts them
    names = list(physical(table).values())
    assert all(name.startswith("col-") and len(name) == 40 for name in names)
    assert len(set(names)) == len(names)
    assert table.properties["delta.columnMapping.maxColumnId"] == "7"


def test_c239_turning_on_at_writer_5_needs_metadata_only_and_at_7_both_lists() -> None:
    legacy = declare(protocol(2, 5), fields=[field("id")])
    assert changed(legacy, NAME).protocol == legacy.protocol
    listed = created({"delta.enableDeletionVectors": "true"})
    mapped = changed(listed, NAME)
    assert "columnMapping" in (features(mapped)[0] or ())
    assert "columnMapping" in (features(mapped)[1] or ())
    assert versions(changed(created(), NAME)) == (2, 7)


def test_c250_turning_on_for_an_existing_table_keeps_the_names_that_its_files_have() -> None:
    table = changed(created(schema=NESTED), NAME)
    assert physical(table) == {name: name for name in ("id", "a", "x", "m", "y", "s", "t")}
    assert table.properties["delta.columnMapping.maxColumnId"] == "7"


def test_c243_c244_new_columns_get_ids_above_all_given_before_and_names_of_their_own() -> None:
    before = created(NAME, NESTED)
    dropped = changed(before, schema=StructType(stored(before).fields[:1]))
    assert dropped.properties["delta.columnMapping.maxColumnId"] == "7"
    again = changed(dropped, schema=StructType((*stored(dropped), StructField("s", STRING))))
    assert ids(again) == {"id": 1, "s": 8}
    assert physical(again)["s"] not in physical(before).values()
    assert again.properties["delta.columnMapping.maxColumnId"] == "8"


def test_c244_the_largest_id_never_goes_down_though_properties_are_given_anew() -> None:
    before = created(NAME, NESTED)
    schema = schema_to_json(columns(other=INTEGER))
    anew = evolve(before, replace(before.metadata, schema_string=schema, configuration=NAME), keeps_files=False)
    assert ids(anew) == {"other": 8}
    assert anew.properties["delta.columnMapping.maxColumnId"] == "8"


def test_c244_a_largest_id_below_an_id_in_use_is_corrected() -> None:
    mapped = field("id", "long", **{"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "p"})
    table = declare(protocol(2, 5), {**NAME, "delta.columnMapping.maxColumnId": "3"}, [mapped])
    assert changed(table, {"mine": "1"}).properties["delta.columnMapping.maxColumnId"] == "9"


def test_c245_a_renamed_column_keeps_id_and_physical_name_and_another_of_its_old_name_gets_new_ones() -> None:
    before = created(NAME)
    id_field, s = stored(before)
    renamed = StructType((id_field, StructField("renamed", STRING, True, s.metadata), StructField("s", STRING)))
    after = changed(before, schema=renamed)
    assert ids(after) == {"id": 1, "renamed": 2, "s": 3}
    assert physical(after)["renamed"] == physical(before)["s"] != physical(after)["s"]


def test_c245_a_schema_from_elsewhere_finds_its_columns_by_name_and_type() -> None:
    before = created(NAME, NESTED)
    wider = columns(
        ID=LONG,
        a=ArrayType(columns(x=INTEGER, m=MapType(STRING, columns(y=INTEGER, z=STRING)))),
        s=STRING,  # was a struct: another column
    )
    after = changed(before, schema=wider, keeps_files=False)
    assert ids(after) == {"ID": 1, "a": 2, "x": 3, "m": 4, "y": 5, "z": 8, "s": 9}
    assert {physical(after)[n] for n in "axmy"} == {physical(before)[n] for n in "axmy"}


@pytest.mark.parametrize(
    ("before", "after"), [("none", "id"), ("name", "id"), ("id", "name"), ("name", "none"), ("id", "none")]
)
def test_the_mode_of_a_table_with_files_does_not_change(before: str, after: str) -> None:
    table = created({"delta.columnMapping.mode": before})
    with pytest.raises(InvalidOperationError, match=f"from '{before}' to '{after}'") as raised:
        changed(table, {"delta.columnMapping.mode": after})
    assert raised.value.error_class == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
    assert changed(table, {"delta.columnMapping.mode": after}, keeps_files=False) is not None


def test_mapping_goes_with_the_files_that_need_it() -> None:
    plain = changed(created(NAME), {"delta.columnMapping.mode": "none"}, keeps_files=False)
    assert plain.properties == {"delta.columnMapping.mode": "none"}
    assert stored(plain) == PLAIN


def test_ids_and_physical_names_of_another_column_are_refused() -> None:
    table = created(NAME)
    id_field, s = stored(table)
    copied = StructType((id_field, s, StructField("again", STRING, True, s.metadata)))
    with pytest.raises(InvalidOperationError, match="same physical name"):
        changed(table, schema=copied)
    same_id = {**s.metadata, PHYSICAL_NAME: "other"}
    with pytest.raises(InvalidOperationError, match="same id 2"):
        changed(table, schema=StructType((id_field, s, StructField("again", STRING, True, same_id))))


def test_names_are_free_where_columns_are_mapped() -> None:
    assert created(NAME, columns(**{"a b": STRING, "c.d": LONG, "e;(=": STRING})).schema.names == ("a b", "c.d", "e;(=")
    for name in ("a b", "e=", "tab\t"):
        with pytest.raises(InvalidOperationError, match=r"delta\.columnMapping\.mode"):
            created(schema=columns(**{name: STRING}))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_c240_c241_c242_files_partition_values_and_statistics_use_physical_names_and_ids(
    mode: str, tmp_path: Path
) -> None:
    schema = StructType((*NESTED, StructField("p", STRING)))
    table = created({"delta.columnMapping.mode": mode}, schema, ("p",))
    context = write_context(str(tmp_path), table, FileOptions())
    rows = [{"id": 7, "a": [{"x": 1, "m": [("k", {"y": 2})]}, None], "s": {"t": "u"}, "p": "part"}]
    batch = pa.RecordBatch.from_pylist(rows, schema_to_arrow(schema))
    (written,) = write_files(context, [batch])
    names = physical(table)

    assert written.partition_values == {names["p"]: "part"}
    stats = orjson.loads(written.stats)
    assert stats["minValues"] == {names["id"]: 7, names["s"]: {names["t"]: "u"}}
    assert stats["nullCount"][names["a"]] == 0

    parquet = pq.ParquetFile(tmp_path / written.path)
    assert parquet.read().to_pylist() == [
        {
            names["id"]: 7,
            names["a"]: [{names["x"]: 1, names["m"]: [("k", {names["y"]: 2})]}, None],
            names["s"]: {names["t"]: "u"},
        }
    ]
    assert _field_ids(parquet.schema_arrow) == {names[n]: ids(table)[n] for n in ("id", "a", "x", "m", "y", "s", "t")}


def test_c240_statistics_columns_are_named_by_logical_names(tmp_path: Path) -> None:
    table = created({**NAME, "delta.dataSkippingStatsColumns": "s.t"}, NESTED)
    (column,) = write_context(str(tmp_path), table, FileOptions()).stats_columns
    assert column.path == (physical(table)["s"], physical(table)["t"])


def test_every_id_is_there_once() -> None:
    table = created({"delta.enableIcebergCompatV2": "true"}, NESTED)
    assert sorted(all_ids(stored(table))) == list(range(1, 11))


def _field_ids(schema: pa.Schema) -> dict[str, int]:
    found: dict[str, int] = {}

    def visit(part: pa.Field) -> None:
        if (column_id := (part.metadata or {}).get(b"PARQUET:field_id")) is not None:
            found[part.name] = int(column_id)
        for i in range(part.type.num_fields):
            visit(part.type.field(i))

    for part in schema:
        visit(part)
    return found
