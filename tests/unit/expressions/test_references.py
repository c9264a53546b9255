"""The columns that an expression names."""

from __future__ import annotations

import pytest

from pyspark_delta.expressions.references import is_among, referenced_columns


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("a > 1 AND b = a", {("a",), ("b",)}),
        ("CAST(`at x` AS DATE)", {("at x",)}),
        ("s.`b.c`.d IS NULL", {("s", "b.c", "d")}),
        ("a.b.c.d.e.f > 0", {("a", "b", "c", "d", "e", "f")}),
        ("1 = 1", set()),
    ],
)
def test_names_are_found(text: str, paths: set[tuple[str, ...]]) -> None:
    assert set(referenced_columns(text)) == paths


def test_a_struct_is_named_by_what_is_inside_it_and_the_other_way_round() -> None:
    assert is_among(("S",), referenced_columns("s.x > 0"))
    assert is_among(("s", "x"), referenced_columns("s IS NOT NULL"))
    assert not is_among(("s", "x"), referenced_columns("s.y > 0"))
    assert not is_among(("s",), referenced_columns("t > 0"))
