"""Texts of char(n) columns without Spark: padded when they are written, and in comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.char_tables import KINDS, char_table

from pyspark_delta import Table
from pyspark_delta.errors import ConstraintViolationError


def stored(table: Table) -> list[tuple[object, ...]]:
    """The id and the text of each row, as in the files."""
    rows = Table.open(table.location).to_arrow().select(["id", "c"]).to_pylist()
    return sorted((row["id"], row["c"]) for row in rows)


@pytest.mark.parametrize("partition", [[], ["c"]])
def test_texts_are_padded_when_they_are_written(tmp_path: Path, partition: list[str]) -> None:
    columns = "id BIGINT, c CHAR(3), g CHAR(2) GENERATED ALWAYS AS (CAST(id AS STRING)), s STRUCT<c: CHAR(3)>"
    table = Table.create(str(tmp_path / "t"), columns, partition_by=partition)
    table.append({"id": [1, 2, 3], "c": ["x", "é€😀", None], "s": [{"c": "u"}, None, None]})
    table.append({"id": [4], "c": ["x  "], "g": ["4"]})
    with pytest.raises(ConstraintViolationError, match="longer than its declared type"):
        table.append({"id": [5], "c": ["x   "]})
    table.update({"c": "'q'"}, "id = 2")
    assert stored(table) == [(1, "x  "), (2, "q  "), (3, None), (4, "x  ")]
    found = {row["id"]: (row["g"], row["s"]) for row in table.to_arrow().to_pylist()}
    assert found == {1: ("1 ", {"c": "u"}), 2: ("2 ", None), 3: ("3 ", None), 4: ("4 ", None)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("condition", "matching"),
    [
        ("c = 'x'", [1]),
        ("'x    ' = c", [1]),
        ("c IN ('x ', 'yy')", [1, 2]),
        ("c > 'x'", [2]),
        ("c BETWEEN 'x' AND 'yy'", [1, 2]),
        ("c <> 'x'", [2]),
        ("c <=> null", [3]),
        ("c = d", [1, 2]),
        ("c IN ('z', null)", []),
        ("s.c = 'x'", [1]),
    ],
)
def test_comparisons_pad_columns_and_constants(tmp_path: Path, kind: str, condition: str, matching: list[int]) -> None:
    table = char_table(tmp_path / "t", kind)
    assert sorted(table.scan(where=condition).to_arrow()["id"].to_pylist()) == matching
    table.delete(condition)
    assert [row[0] for row in stored(table)] == [number for number in (1, 2, 3) if number not in matching]


def test_constraints_see_padded_texts(tmp_path: Path) -> None:
    table = char_table(tmp_path / "t", **{"delta.constraints.known": "c IS NULL OR c IN ('x', 'yy')"})
    table.append({"id": [4], "c": ["x"]})
    table.update({"d": "'new'"})
    assert stored(table) == [(1, "x  "), (2, "yy "), (3, None), (4, "x  ")]
    with pytest.raises(ConstraintViolationError, match="known"):
        table.append({"id": [5], "c": ["z"]})


def test_texts_that_are_replaced_meet_the_condition(tmp_path: Path) -> None:
    table = char_table(tmp_path / "t")
    table.overwrite({"id": [9], "c": ["x"]}, where="c = 'x'")
    assert stored(table) == [(2, "yy "), (3, None), (9, "x  ")]
