"""Changes to a schema at every nesting level."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.schema.column_paths import column_path_text, parse_column_path
from pyspark_delta.schema.edits import (
    After,
    First,
    add_column,
    change_column,
    drop_column,
    find_column,
    move_column,
    rename_column,
    spelled,
    type_at,
)
from pyspark_delta.schema.types import INTEGER, LONG, STRING, ArrayType, MapType, StructField, StructType

POINT = StructType((StructField("x", INTEGER), StructField("Y", INTEGER)))
SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("point", POINT),
        StructField("track", ArrayType(POINT)),
        StructField("places", MapType(POINT, ArrayType(POINT))),
    )
)


@pytest.mark.parametrize("parent", [(), ("point",), ("track", "element"), ("places", "value", "element")])
def test_a_column_is_added_at_the_end_first_or_after_another(parent: tuple[str, ...]) -> None:
    new = StructField("new", STRING)
    before = type_at(SCHEMA, parent)
    assert isinstance(before, StructType)
    last = type_at(add_column(SCHEMA, parent, new), parent)
    first = type_at(add_column(SCHEMA, parent, new, First()), parent)
    second = type_at(add_column(SCHEMA, parent, new, After(before.names[0].upper())), parent)
    assert last == StructType((*before, new))
    assert first == StructType((new, *before))
    assert second == StructType((before.fields[0], new, *before.fields[1:]))


def test_a_name_in_use_is_refused_regardless_of_case() -> None:
    with pytest.raises(InvalidOperationError, match="a column 'Y' already exists"):
        add_column(SCHEMA, ("point",), StructField("y", STRING))


def test_the_column_to_be_behind_must_be_there() -> None:
    with pytest.raises(InvalidOperationError, match=r"no column 'point\.z'"):
        add_column(SCHEMA, ("point",), StructField("new", STRING), After("z"))


@pytest.mark.parametrize("path", [("id",), ("point", "y"), ("track", "element", "X"), ("places", "key", "x")])
def test_a_column_is_dropped(path: tuple[str, ...]) -> None:
    changed = drop_column(SCHEMA, path)
    with pytest.raises(InvalidOperationError, match="There is no column"):
        find_column(changed, path)
    assert len(changed) == len(SCHEMA) - (len(path) == 1)


def test_the_only_column_of_a_struct_stays() -> None:
    one = drop_column(SCHEMA, ("point", "x"))
    with pytest.raises(InvalidOperationError, match="only one of the struct 'point'"):
        drop_column(one, ("point", "Y"))


def test_a_column_is_renamed_also_to_another_case_of_its_name() -> None:
    assert spelled(rename_column(SCHEMA, ("places", "value", "element", "y"), "z"), ("places", "value", "element", "Z"))
    assert rename_column(SCHEMA, ("ID",), "Id").names[0] == "Id"
    with pytest.raises(InvalidOperationError, match="a column 'point' already exists"):
        rename_column(SCHEMA, ("id",), "POINT")


def test_a_column_is_moved() -> None:
    assert move_column(SCHEMA, ("track",), First()).names == ("track", "id", "point", "places")
    assert move_column(SCHEMA, ("id",), After("places")).names == ("point", "track", "places", "id")
    assert move_column(SCHEMA, ("id",), After("ID")) == SCHEMA


def test_a_change_touches_nothing_else() -> None:
    changed = change_column(SCHEMA, ("track", "element", "x"), lambda f: replace(f, type=LONG))
    assert type_at(changed, ("track", "element", "x")) == LONG
    assert change_column(changed, ("track", "element", "x"), lambda f: replace(f, type=INTEGER)) == SCHEMA


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("idd",), "Did you mean 'id'"),
        (("id", "x"), "inside a column of type long there is nothing"),
        (("track", "x"), "inside a column of type array.* there is 'element'"),
        (("places", "element"), "there is 'key' and 'value'"),
    ],
)
def test_an_unknown_path_is_refused_with_a_hint(path: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidOperationError, match=message):
        type_at(SCHEMA, path)


def test_paths_are_spelled_as_in_the_schema() -> None:
    assert spelled(SCHEMA, ("PLACES", "Value", "ELEMENT", "y")) == ("places", "value", "element", "Y")


@pytest.mark.parametrize("path", [("a",), ("a", "b c"), ("a.b", "`"), ("ü", "element"), (" a", "b ")])
def test_the_text_of_a_path_parses_to_the_path(path: tuple[str, ...]) -> None:
    assert parse_column_path(column_path_text(path)) == path
    assert parse_column_path(f" {column_path_text(path)} ") == path


@pytest.mark.parametrize("text", ["", "a..b", ".a", "a.", "`a", 3])
def test_a_malformed_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidOperationError, match="not a valid column name"):
        parse_column_path(text)
