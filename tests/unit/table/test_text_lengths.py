"""Longer limits for the texts of char and varchar columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_delta import InvalidOperationError, SchemaMismatchError, Table
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.schema.text_lengths import length_condition

DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
COLUMNS = "v VARCHAR(2), c CHAR(2), s STRING, st STRUCT<a: VARCHAR(2), b: CHAR(3)>, items ARRAY<VARCHAR(2)>"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(str(tmp_path / "t"), COLUMNS)


def declared(table: Table, name: str) -> object:
    [field] = [field for field in table.snapshot.schema.fields if field.name == name]
    return field.metadata.get(DECLARED)


@pytest.mark.parametrize(
    ("name", "wider", "column", "after"),
    [
        ("v", "varchar(3)", "v", "varchar(3)"),
        ("v", "string", "v", None),
        ("c", "varchar(2)", "c", "varchar(2)"),
        ("c", "string", "c", None),
        ("st.a", "varchar(7)", "st", "struct<a:varchar(7),b:char(3)>"),
        ("st.a", "string", "st", "struct<a:string,b:char(3)>"),
        ("items.element", "varchar(3)", "items", "array<varchar(3)>"),
        ("items.element", "string", "items", None),
    ],
)
def test_a_limit_becomes_longer_or_ends(table: Table, name: str, wider: str, column: str, after: str | None) -> None:
    table.alter().change_type(name, wider)
    assert declared(Table.open(table.location), column) == after


def test_longer_texts_are_written_up_to_the_limit(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), "v VARCHAR(2)")
    with pytest.raises(ConstraintViolationError):
        table.append({"v": ["abc"]})
    table.alter().change_type("v", "varchar(3)")
    table.append({"v": ["abc"]})
    with pytest.raises(ConstraintViolationError):
        table.append({"v": ["abcd"]})
    table.alter().change_type("v", "string")
    table.append({"v": ["abcd"]})
    assert sorted(Table.open(table.location).scan(columns=["v"]).to_arrow()["v"].to_pylist()) == ["abc", "abcd"]


@pytest.mark.parametrize(
    ("name", "other"),
    [("v", "varchar(1)"), ("v", "char(2)"), ("c", "varchar(1)"), ("c", "char(3)"), ("s", "varchar(9)")],
)
def test_texts_in_data_files_may_be_longer(table: Table, name: str, other: str) -> None:
    with pytest.raises(SchemaMismatchError, match=rf"cannot become {other[:-1].replace('(', '.')}"):
        table.alter().change_type(name, other)
    assert Table.open(table.location).version == 0


@pytest.mark.parametrize(("name", "same"), [("v", "varchar(2)"), ("c", "char(2)"), ("s", "string")])
def test_the_same_type_is_refused(table: Table, name: str, same: str) -> None:
    with pytest.raises(InvalidOperationError, match="already has the type"):
        table.alter().change_type(name, same)


@pytest.mark.parametrize("struct", ["STRUCT<a: VARCHAR(2)>", "STRUCT<a: STRING>", "ARRAY<STRUCT<a: STRING>>"])
def test_a_column_that_is_added_inside_has_its_limit(tmp_path: Path, struct: str) -> None:
    """Its own field declares it, and so does the column if it has limits: Spark reads that alone."""
    table = Table.create(str(tmp_path / "t"), f"s {struct}")
    table.alter().add_column("s.element.new" if "ARRAY" in struct else "s.new", "varchar(1)")
    expected = "struct<a:varchar(2),new:varchar(1)>" if "VARCHAR" in struct else None
    assert declared(table, "s") == expected
    [field] = table.snapshot.schema
    assert "<= 1" in length_condition(field)


def test_a_limit_of_an_added_column_is_kept(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), "s STRUCT<a: INT>")
    table.alter().add_column("s.new", "varchar(1)")
    table.append(pa.table({"s": [{"a": 1, "new": "1"}]}))
    with pytest.raises(ConstraintViolationError, match="'s'"):
        table.append(pa.table({"s": [{"a": 1, "new": "12"}]}))
    table.alter().change_type("s.new", "varchar(2)")
    table.append(pa.table({"s": [{"a": 1, "new": "12"}]}))
