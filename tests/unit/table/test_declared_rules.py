"""Rules of declared columns as in delta-spark: types of generated columns, NOT NULL members of structs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta import Table
from pyspark_delta.errors import ConstraintViolationError, InvalidOperationError

# ----------------------------------------------------------------------------------------------- generated columns
OTHER_TYPES = [
    ("INT", "CAST(b AS STRING)"),
    ("STRING", "b"),
    ("INT", "b"),
    ("BIGINT", "1"),
    ("DOUBLE", "CAST(b AS FLOAT)"),
    ("DECIMAL(10, 2)", "CAST(b AS DECIMAL(8, 1))"),
    ("DATE", "date_trunc('day', t)"),
    ("TIMESTAMP", "CAST(t AS DATE)"),
    ("INT", "NULL"),
    ("BIGINT", "length('a')"),
]
SAME_TYPES = [
    ("BIGINT", "b * 2"),
    ("INT", "1"),
    ("DATE", "CAST(t AS DATE)"),
    ("VARCHAR(3)", "CAST(b AS STRING)"),
    ("ARRAY<INT>", "array(1)"),
    ("STRUCT<x: INT>", "named_struct('x', 1)"),
    ("STRUCT<x: INT>", "named_struct('y', b)"),  # only Spark knows the type of a struct
]


@pytest.mark.parametrize(("column", "expression"), OTHER_TYPES)
def test_a_generated_column_of_another_type_is_refused(tmp_path: Path, column: str, expression: str) -> None:
    location = tmp_path / "t"
    with pytest.raises(InvalidOperationError, match=r"generated column 'c' is of type .*, but the column is") as raised:
        Table.create(location, f"b BIGINT, t TIMESTAMP, c {column} GENERATED ALWAYS AS ({expression})")
    assert raised.value.error_class == "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"
    assert not location.exists()


@pytest.mark.parametrize(("column", "expression"), SAME_TYPES)
def test_a_generated_column_of_the_same_type(tmp_path: Path, column: str, expression: str) -> None:
    location = tmp_path / "t"
    table = Table.create(location, f"b BIGINT, t TIMESTAMP, c {column} GENERATED ALWAYS AS ({expression})")
    table.alter().set_properties({"mine": "x"})


# -------------------------------------------------------------------------------------------- NOT NULL in structs
STRUCTS: list[tuple[str, Any, Any, str]] = [
    ("STRUCT<x: INT NOT NULL, y: INT>", {"x": 1, "y": None}, None, "s.x"),
    ("STRUCT<x: STRUCT<z: INT NOT NULL>>", {"x": {"z": 1}}, {"x": None}, "s.x.z"),
    ("STRUCT<x: STRUCT<z: INT NOT NULL>>", {"x": {"z": 1}}, None, "s.x.z"),
    ("STRUCT<x: STRUCT<z: INT NOT NULL> NOT NULL>", {"x": {"z": 1}}, None, "s.x"),
    ("STRUCT<`x.1`: INT NOT NULL>", {"x.1": 1}, None, "s.`x.1`"),
]


@pytest.mark.parametrize(("column", "good", "bad", "member"), STRUCTS)
def test_a_null_struct_has_no_not_null_member(tmp_path: Path, column: str, good: Any, bad: Any, member: str) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    table = Table.create(tmp_path / "t", f"id INT, s {column}", properties=properties)
    table.append([{"id": 1, "s": good}])
    match = rf"The column '{member}' is NOT NULL, but the struct around it is null"
    source = [{"id": 2, "s": bad}]
    for change in (
        lambda: table.append(source),
        lambda: table.overwrite(source),
        lambda: table.update({"s": "NULL"}),
        lambda: table.merge(source, "target.id = source.id").when_not_matched_insert_all().execute(),
    ):
        with pytest.raises(ConstraintViolationError, match=match) as raised:
            change()
        assert raised.value.error_class == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
        assert raised.value.sqlstate == "23502"
    assert Table.open(tmp_path / "t").version == 1
    assert table.scan().to_arrow()["s"].to_pylist() == [good]


def test_elements_of_arrays_may_be_null(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "a ARRAY<STRUCT<x: INT NOT NULL>>, m MAP<STRING, STRUCT<x: INT NOT NULL>>")
    table.append([{"a": [None], "m": {"k": None}}, {"a": None, "m": None}])
    assert table.count() == 2


def test_rows_of_other_writers_with_null_structs_stay(tmp_path: Path) -> None:
    """Rewriting files does not check the rows that stay; delta-spark would refuse it."""
    table = Table.create(tmp_path / "t", "id INT, s STRUCT<x: INT>", properties={"delta.enableDeletionVectors": False})
    table.append([{"id": 1, "s": None}, {"id": 2, "s": {"x": 1}}])
    table.append([{"id": 3, "s": None}])
    with pytest.raises(ConstraintViolationError, match=r"'s\.x'"):
        table.alter().set_not_null("s.x")
    other = shutil.copytree(tmp_path / "t", tmp_path / "other", ignore=shutil.ignore_patterns("*.crc"))
    log = other / "_delta_log" / f"{0:020}.json"
    nullable = r"{\"name\":\"x\",\"type\":\"integer\",\"nullable\":"
    text = log.read_text()
    assert f"{nullable}true" in text
    log.write_text(text.replace(f"{nullable}true", f"{nullable}false"))
    table = Table.open(other)
    assert "x: integer (nullable = false)" in table.schema.tree()
    table.delete("id = 2")
    table.optimize()
    assert table.scan().to_arrow()["s"].to_pylist() == [None, None]
