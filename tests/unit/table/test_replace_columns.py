"""`Table.alter().replace_columns(...)`: all columns at once, matched by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_delta import Table, sql
from pyspark_delta.errors import ConstraintViolationError, DeltaError


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table with mapped columns of types that may become wider, and one row."""
    sql(
        "CREATE TABLE t (id INT NOT NULL COMMENT 'key', v VARCHAR(3), s STRUCT<x: VARCHAR(2) COMMENT 'of x', y: INT>, "
        "items ARRAY<STRUCT<n: SMALLINT, t: STRING>>, m MAP<STRING, FLOAT>, d INT DEFAULT 7) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')",
        location=str(tmp_path),
    )
    sql(
        "INSERT INTO t VALUES (1, 'abc', named_struct('x', 'fg', 'y', 3), "
        "array(named_struct('n', 4, 't', 'de')), map('k', 1.5), 6)",
        location=str(tmp_path),
    )
    return Table.open(tmp_path / "t")


def test_columns_keep_values_comments_and_defaults_by_name(table: Table) -> None:
    table.alter().replace_columns(
        "items ARRAY<STRUCT<t: STRING, n: INT, new: DATE>>, D BIGINT, "
        "s STRUCT<y: INT COMMENT 'of y', new: VARCHAR(1), x: VARCHAR(4)>, "
        "m MAP<STRING, DOUBLE>, v STRING, id BIGINT, `a b` DATE COMMENT 'day'"
    )
    assert table.scan().to_arrow().to_pylist() == [
        {
            "items": [{"t": "de", "n": 4, "new": None}],
            "d": 6,
            "s": {"y": 3, "new": None, "x": "fg"},
            "m": [("k", 1.5)],
            "v": "abc",
            "id": 1,
            "a b": None,
        }
    ]
    columns = {field.name: field for field in table.snapshot.schema}
    assert [columns[name].metadata.get("comment") for name in ("id", "a b", "v")] == ["key", "day", None]
    assert columns["id"].nullable
    assert [f.metadata.get("comment") for f in columns["s"].type] == ["of y", None, "of x"]  # type: ignore[union-attr]
    table.append(pa.table({"v": ["abcdef"], "s": [{"x": "1234", "new": "1", "y": None}]}))
    assert table.scan(columns=["d"]).to_arrow()["d"].to_pylist() == [6, 7]
    for longer in ({"x": "12345", "new": "1", "y": 1}, {"x": "1", "new": "12", "y": 1}):
        with pytest.raises(ConstraintViolationError, match="A text in the column 's' is longer"):
            table.append(pa.table({"s": [longer]}))
    assert table.history(limit=2)[1]["operation"] == "REPLACE COLUMNS"


ALL = "v VARCHAR(3), items ARRAY<STRUCT<n: SMALLINT, t: STRING>>, m MAP<STRING, FLOAT>, d INT"
S = "s STRUCT<x: VARCHAR(2), y: INT>"


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (f"id INT, {ALL}, s STRUCT<x: VARCHAR(2), z: INT>", "drop the columns 'y' of the struct 's' and add 'z'"),
        (f"key INT, {ALL}, {S}", "drop the columns 'id' and add 'key'"),
        (f"id STRING, {ALL}, {S}", "'id' of type integer cannot become string"),
        (f"id INT, {ALL}, s STRUCT<x: VARCHAR(1), y: INT>", "texts in data files may be longer"),
        (f"id INT, {ALL}, s STRUCT<x: VARCHAR(2), y: INT NOT NULL>", "'s.y' would become NOT NULL"),
        (f"id INT, {ALL}, {S}, ID INT", "two columns with the same name"),
        (f"id INT DEFAULT 1, {ALL}, {S}", "'id' has a default or is generated"),
        (f"id INT, {ALL}, {S}, n INT NOT NULL", "'n' is NOT NULL"),
    ],
)
def test_changes_that_rows_need_not_meet_are_refused(table: Table, columns: str, why: str) -> None:
    with pytest.raises(DeltaError, match=why):
        table.alter().replace_columns(columns)
    assert Table.open(table.location).version == 1


def test_columns_are_dropped_where_they_are_mapped(table: Table) -> None:
    table.alter().add_constraint("c", "d > 0").replace_columns(f"{ALL}, {S}").replace_columns(f"{ALL}, {S}, id INT")
    assert table.scan(columns=["id", "v"]).to_arrow().to_pylist() == [{"id": None, "v": "abc"}]
    with pytest.raises(DeltaError, match=r"these CHECK constraints use it: c \(d > 0\)"):
        table.alter().replace_columns("v VARCHAR(3)")


def test_columns_without_mapping_are_not_dropped(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "a INT, s STRUCT<x: INT, y: INT>")
    with pytest.raises(DeltaError, match=r"drop the columns 's\.x'\. Name all"):
        table.alter().replace_columns("a INT, s STRUCT<y: INT>")
