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
        ("v:a.b[0]::int > 1 AND s.v:['x y'] IS NOT NULL", {("v",), ("s", "v")}),
    ],
)
def test_names_are_found(text: str, paths: set[tuple[str, ...]]) -> None:
    assert set(referenced_columns(text)) == paths


@pytest.mark.parametrize(
    "word", ["alter", "begin", "comment", "desc", "drop", "grant", "outer", "set", "update", "values"]
)
def test_words_of_statements_are_names(word: str) -> None:
    assert referenced_columns(f"{word} = 'x'") == ((word,),)
    assert set(referenced_columns(f"NOT ({word} = a) OR {word} IS NULL")) == {(word,), ("a",)}


def test_a_struct_is_named_by_what_is_inside_it_and_the_other_way_round() -> None:
    assert is_among(("S",), referenced_columns("s.x > 0"))
    assert is_among(("s", "x"), referenced_columns("s IS NOT NULL"))
    assert not is_among(("s", "x"), referenced_columns("s.y > 0"))
    assert not is_among(("s",), referenced_columns("t > 0"))
