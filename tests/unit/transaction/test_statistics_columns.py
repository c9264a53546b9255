"""`delta.dataSkippingStatsColumns` names columns that exist and can have statistics, as in delta-spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.evolving import changed, created

from pyspark_delta import Table
from pyspark_delta.errors import InvalidOperationError, SchemaMismatchError
from pyspark_delta.schema.types import BINARY, BOOLEAN, INTEGER, VARIANT, ArrayType, StructField, StructType
from pyspark_delta.transaction.new_table import new_table

PROPERTY = "delta.dataSkippingStatsColumns"
INNER = StructType((StructField("x", INTEGER), StructField("y", ArrayType(INTEGER))))
SCHEMA = StructType(
    (
        StructField("a", INTEGER),
        StructField("p", INTEGER),
        StructField("s", INNER),
        StructField("arr", ArrayType(INTEGER)),
        StructField("bo", BOOLEAN),
        StructField("bin", BINARY),
        StructField("v", VARIANT),
    )
)
REFUSED = {
    "nope": ("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "no column 'nope'"),
    "s.nope": ("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "'s.nope'"),
    "`s.x`": ("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "'`s.x`'"),
    "P": ("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN", "'P'"),
    "arr": ("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE", "'arr'"),
    "bo": ("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE", "'bo'"),
    "bin": ("DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE", "'bin'"),
    "a,a": ("DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS", "'a' twice"),
    "s, s.x": ("DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS", "'s.x' twice"),
    "a,": ("DELTA_ILLEGAL_OPTION", "a comma without a name"),
    "a,,s": ("DELTA_ILLEGAL_OPTION", "a comma without a name"),
}


@pytest.mark.parametrize("value", ["", "a", "A", "s", "s.x", "S.X", "s.y", "arr.element", "v", " a , s.`x`"])
def test_columns_that_can_have_statistics(value: str) -> None:
    table = new_table(SCHEMA, ["p"], {PROPERTY: value}, declared=True)
    assert table.properties[PROPERTY] == value
    before = created(schema=SCHEMA, partition_columns=("p",))
    assert changed(before, {PROPERTY: value}).properties[PROPERTY] == value


@pytest.mark.parametrize("value", REFUSED)
def test_other_columns_are_refused_when_a_table_is_created_or_altered(value: str, tmp_path: Path) -> None:
    error_class, text = REFUSED[value]
    schema = StructType(tuple(field for field in SCHEMA if field.type != VARIANT))
    with pytest.raises(InvalidOperationError, match=text) as raised:
        new_table(schema, ["p"], {PROPERTY: value}, declared=True)
    assert (raised.value.error_class, PROPERTY in raised.value.message) == (error_class, True)

    location = tmp_path / "t"
    columns = "a INT, p INT, s STRUCT<x: INT, y: ARRAY<INT>>, arr ARRAY<INT>, bo BOOLEAN, bin BINARY"
    with pytest.raises(InvalidOperationError, match=text):
        Table.create(location, columns, partition_by=["p"], properties={PROPERTY: value})
    assert not location.exists()
    table = Table.create(location, columns, partition_by=["p"])
    with pytest.raises(InvalidOperationError, match=text):
        table.alter().set_properties({PROPERTY: value})
    assert Table.open(location).version == 0


def test_a_schema_without_a_named_column_is_refused(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", "a INT, b INT", properties={PROPERTY: "a"})
    rows = pa.table({"z": [1]})
    with pytest.raises(InvalidOperationError, match="no column 'a'"):
        Table.open(tmp_path / "t").overwrite(rows, overwrite_schema=True)
    table = Table.open(tmp_path / "t")
    assert table.version == 0
    table.alter().set_properties({PROPERTY: "b"})
    with pytest.raises(SchemaMismatchError):
        table.append(rows)


def test_tables_with_a_wrong_property_can_be_changed() -> None:
    """delta-spark stores a session's default unchecked, and then refuses every change of such a table."""
    table = new_table(SCHEMA, ["p"], defaults={"dataSkippingStatsColumns": "nope"}, declared=True)
    assert table.properties[PROPERTY] == "nope"
    assert changed(table, {"mine": "x"}).properties["mine"] == "x"
    assert len(changed(table, schema=StructType((*SCHEMA.fields, StructField("n", INTEGER)))).schema.names) == 8
    with pytest.raises(InvalidOperationError, match="'neither'"):
        changed(table, {PROPERTY: "neither"})
    assert changed(table, {PROPERTY: "a"}).properties[PROPERTY] == "a"
