"""The schema that a table has after data of another schema was written to it."""

from __future__ import annotations

import pytest

from pyspark_delta.schema.merge import is_same_shape, keep_identities, merge_schemas
from pyspark_delta.schema.traversal import fields_in
from pyspark_delta.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from pyspark_delta.schema.widening import TYPE_CHANGES


def struct(**fields: DataType) -> StructType:
    return StructType(tuple(StructField(name, data_type) for name, data_type in fields.items()))


def test_new_columns_come_last_and_names_match_whatever_their_case() -> None:
    table = StructType((StructField("Id", LONG, False, {"comment": "key"}), StructField("name", STRING)))
    merged = merge_schemas(table, struct(extra=INTEGER, ID=LONG, NAME=STRING, more=VOID))
    assert merged.names == ("Id", "name", "extra")
    assert merged.fields[:2] == table.fields
    assert merge_schemas(table, struct(name=STRING)) == table


def test_nested_columns_are_added_in_structs_lists_and_maps() -> None:
    table = struct(s=struct(a=LONG), l=ArrayType(struct(a=LONG), False), m=MapType(STRING, struct(a=LONG)))
    wider = struct(b=STRING, A=LONG)
    merged = merge_schemas(
        table, struct(s=wider, l=ArrayType(wider), m=MapType(STRING, wider), n=struct(x=VOID, y=BYTE))
    )
    both = struct(a=LONG, b=STRING)
    assert merged == struct(s=both, l=ArrayType(both, False), m=MapType(STRING, both), n=struct(y=BYTE))


@pytest.mark.parametrize(
    ("table", "data", "wide"),
    [
        (INTEGER, LONG, LONG),
        (BYTE, INTEGER, INTEGER),
        (FLOAT, DOUBLE, DOUBLE),
        (DecimalType(5, 2), DecimalType(10, 4), DecimalType(10, 4)),
        (DecimalType(9, 2), DecimalType(4, 3), DecimalType(10, 3)),
        (LONG, INTEGER, LONG),
        # What values mean would change, so a write does not do it on its own.
        (INTEGER, DOUBLE, INTEGER),
        (BYTE, DecimalType(10, 0), BYTE),
        (DATE, TIMESTAMP_NTZ, DATE),
        (STRING, LONG, STRING),
        (DecimalType(38, 0), DecimalType(38, 10), DecimalType(38, 0)),
    ],
)
def test_types_widen_only_where_the_table_allows(table: DataType, data: DataType, wide: DataType) -> None:
    for wrap in (lambda t: t, ArrayType, lambda t: MapType(STRING, t), lambda t: struct(x=t)):
        widened = merge_schemas(struct(c=wrap(table)), struct(c=wrap(data)), widen=True)
        assert [str(f.type) for f in widened] == [str(wrap(wide))]
        recorded = [change for f in fields_in(widened) for change in f.metadata.get(TYPE_CHANGES, ())]
        assert [(c["fromType"], c["toType"]) for c in recorded] == ([(str(table), str(wide))] if wide != table else [])
        assert merge_schemas(struct(c=wrap(table)), struct(c=wrap(data))) == struct(c=wrap(table))


def test_a_void_column_gets_a_type_without_type_widening() -> None:
    assert merge_schemas(struct(v=VOID), struct(v=STRING)) == struct(v=STRING)
    assert merge_schemas(struct(v=VOID), struct(v=VOID)) == struct(v=VOID)


def test_columns_keep_their_column_mapping_when_the_schema_is_replaced() -> None:
    mapped = {"delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "col-1", "comment": "old"}
    before = StructType((StructField("a", LONG, True, mapped), StructField("b", struct(x=LONG), True, mapped)))
    kept = keep_identities(struct(A=LONG, b=struct(y=LONG), c=LONG), before)
    assert [dict(f.metadata) for f in kept] == [
        {"delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "col-1"},
        {"delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "col-1"},
        {},
    ]
    assert dict(keep_identities(struct(a=STRING), before).fields[0].metadata) == {}


def test_shapes_compare_names_order_and_types_alone() -> None:
    one = StructType((StructField("a", ArrayType(LONG, False), False, {"comment": "x"}), StructField("b", LONG)))
    assert is_same_shape(one, struct(a=ArrayType(LONG), b=LONG))
    assert not is_same_shape(one, struct(b=LONG, a=ArrayType(LONG)))
    assert not is_same_shape(one, struct(a=ArrayType(INTEGER), b=LONG))
    assert not is_same_shape(one, struct(a=ArrayType(LONG)))
