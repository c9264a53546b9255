"""Columns that are renamed, dropped, moved and retyped: what else of a table names them follows, or forbids it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.declarations import field, with_features

from pyspark_delta.ddl.column_changes import NewColumn, add_columns, drop_columns, move, rename
from pyspark_delta.ddl.types import change_type
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.column_mapping import nested_ids
from pyspark_delta.schema.edits import First, find_column
from pyspark_delta.schema.json import parse_schema
from pyspark_delta.schema.merge import keep_identities
from pyspark_delta.schema.text_lengths import length_condition
from pyspark_delta.schema.types import LONG, STRING, StructField, StructType

DECLARED, COLLATIONS = "__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS"
IDS, LEGACY_IDS = "delta.columnMapping.nested.ids", "parquet.field.nested.ids"
ARRAY = {"type": "array", "elementType": "string", "containsNull": True}


def struct(*members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(members)}


def mapped(*fields: dict[str, Any], partition: tuple[str, ...] = (), **properties: str) -> TableConfiguration:
    """A table with column mapping by name, whose columns have other names in files."""
    count = 0

    def number(value: Any) -> Any:
        nonlocal count
        if isinstance(value, list):
            return [number(member) for member in value]
        if not isinstance(value, dict):
            return value
        value = {key: number(member) if key != "metadata" else member for key, member in value.items()}
        if "metadata" in value:
            count += 1
            ids = {"delta.columnMapping.id": count, "delta.columnMapping.physicalName": f"col-{count}"}
            value["metadata"] = {**ids, **value["metadata"]}
        return value

    given = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    given |= {key.replace("__", "."): value for key, value in properties.items()}
    names = ("columnMapping", "typeWidening", "invariants", "checkConstraints")
    table = with_features(*names, properties=given, fields=number(list(fields)))
    return replace(table, metadata=replace(table.metadata, partition_columns=partition))


def after(change: Any) -> StructType:
    return parse_schema(change.metadata.schema_string)


NAMES = field("s", struct(field("a", "string"), field("n", "integer"), field("b", ARRAY)))
NAMES["metadata"] = {DECLARED: "struct<a:varchar(3),n:int,b:array<char(2)>>"}


@pytest.mark.parametrize(
    ("change", "column", "declared"),
    [
        (lambda t: rename(t, ["s", "a"], "z"), "s", "struct<z:varchar(3),n:int,b:array<char(2)>>"),
        (lambda t: rename(t, ["S"], "t"), "t", "struct<a:varchar(3),n:int,b:array<char(2)>>"),
        (lambda t: drop_columns(t, [["s", "a"]]), "s", "struct<n:int,b:array<char(2)>>"),
        (lambda t: drop_columns(t, [["s", "a"], ["s", "b"]]), "s", None),
        (lambda t: change_type(t, ["s", "n"], LONG), "s", "struct<a:varchar(3),n:bigint,b:array<char(2)>>"),
        (lambda t: move(t, ["s", "b"], First()), "s", "struct<b:array<char(2)>,a:varchar(3),n:int>"),
        (
            lambda t: add_columns(t, [NewColumn(StructField("x y", STRING), ("s",), First())]),
            "s",
            "struct<`x y`:string,a:varchar(3),n:int,b:array<char(2)>>",
        ),
    ],
)
def test_declared_lengths_inside_structs_follow_their_columns(change: Any, column: str, declared: str | None) -> None:
    found = find_column(after(change(mapped(NAMES, field("id")))), [column])
    assert found.metadata.get(DECLARED) == declared
    if declared and "z" in declared:
        assert "length(`s`.`z`) <= 3" in length_condition(found)


def test_declared_lengths_that_cannot_be_parsed_stay() -> None:
    odd = field("s", struct(field("a", "string"), field("n", "integer")))
    odd["metadata"] = {DECLARED: "struct<"}
    assert find_column(after(rename(mapped(odd), ["s", "a"], "z")), ["s"]).metadata[DECLARED] == "struct<"


def test_collations_follow_their_columns() -> None:
    text = field("c", ARRAY)
    text["metadata"] = {COLLATIONS: {"c.element": "icu.UNICODE_CI", "odd": "spark.UTF8_LCASE"}}
    outer = field("s", struct(text, field("d.e", "string"), field("f", "string")))
    outer["metadata"] = {COLLATIONS: {"s.d.e": "spark.UTF8_LCASE", "s.f": "icu.DE"}}
    table = mapped(outer, field("id"))
    schema = after(rename(table, ["s", "c"], "k"))
    moved = {"k.element": "icu.UNICODE_CI", "odd": "spark.UTF8_LCASE"}
    assert find_column(schema, ["s", "k"]).metadata[COLLATIONS] == moved
    renamed = find_column(after(rename(table, ["s"], "t")), ["t"])
    assert renamed.metadata[COLLATIONS] == {"t.d.e": "spark.UTF8_LCASE", "t.f": "icu.DE"}
    inner = find_column(after(rename(table, ["s", "d.e"], "g")), ["s"])
    assert inner.metadata[COLLATIONS] == {"s.g": "spark.UTF8_LCASE", "s.f": "icu.DE"}
    assert find_column(after(drop_columns(table, [["s", "f"]])), ["s"]).metadata[COLLATIONS] == {
        "s.d.e": "spark.UTF8_LCASE"
    }
    assert COLLATIONS not in find_column(after(drop_columns(table, [["s", "f"], ["s", "d.e"]])), ["s"]).metadata


@pytest.mark.parametrize("key", [IDS, LEGACY_IDS])
@pytest.mark.parametrize("prefix", ["c", "col-1"])
def test_c293_ids_of_elements_stay_where_their_column_is_renamed(key: str, prefix: str) -> None:
    ids = field("c", ARRAY)
    ids["metadata"] = {key: {f"{prefix}.element": 7}}
    table = mapped(ids, field("id"))
    renamed = find_column(after(rename(table, ["c"], "k")), ["k"])
    assert nested_ids(renamed) == {"element": 7}
    assert renamed.metadata[key] == {("col-1.element" if prefix == "col-1" else "k.element"): 7}
    replacement = StructType((StructField("C", table.schema.fields[0].type),))
    assert nested_ids(keep_identities(replacement, table.schema).fields[0]) == {"element": 7}


def test_c379_columns_that_invariants_name_stay() -> None:
    condition = json.dumps({"expression": {"expression": "a > s.b"}})
    inside = struct(field("b", "integer"), field("c", "integer", delta__invariants="s.c < 5"))
    table = mapped(field("a", "integer", delta__invariants=condition), field("s", inside), field("id"))
    for change in (
        lambda: rename(table, ["a"], "z"),
        lambda: rename(table, ["s"], "z"),
        lambda: rename(table, ["s", "c"], "z"),
        lambda: drop_columns(table, [["s", "b"]]),
        lambda: drop_columns(table, [["s"]]),
        lambda: change_type(table, ["a"], LONG),
    ):
        with pytest.raises(InvalidOperationError, match=r"column invariants use it: (a \(a > s\.b\)|s\.c)"):
            change()
    assert after(drop_columns(table, [["s", "c"]])).names == ("a", "s", "id")  # its own invariant goes with it
    assert after(rename(table, ["id"], "z")).names == ("a", "s", "z")


def test_c134_partition_columns_are_found_whatever_their_case() -> None:
    table = mapped(field("p", "string"), field("id"), partition=("P",))
    assert rename(table, ["p"], "q").metadata.partition_columns == ("q",)
    with pytest.raises(InvalidOperationError, match="partitioned by it"):
        drop_columns(table, [["p"]])
