"""Texts of sessions that read string literals in another way, and their meaning in this package."""

from __future__ import annotations

import pytest

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.tree import Comparison, Literal
from pyspark_delta.parser.strings import STANDARD, StringSyntax, portable_text, standard_text
from pyspark_delta.schema.types import STRING, StructField, StructType

JOINS = StringSyntax(joins_strings=True)
KEEPS = StringSyntax(keeps_backslashes=True)
NAMES = StringSyntax(quotes_names=True)
SCHEMA = StructType((StructField("s", STRING),))


def value(text: str) -> object:
    bound = parse_predicate(f"s = {text}", SCHEMA)
    assert isinstance(bound, Comparison)
    assert isinstance(bound.right, Literal)
    return bound.right.value


@pytest.mark.parametrize(
    ("text", "syntax", "meaning"),
    [
        ("'it''s'", STANDARD, "it's"),
        ("'it''s'", JOINS, "its"),
        ("'it''s'", KEEPS, "it''s"),
        ("'it''s'", StringSyntax(joins_strings=True, keeps_backslashes=True), "its"),
        ("''''", JOINS, ""),
        ("''", JOINS, ""),
        (r"'\'''s'", JOINS, "'s"),
        ('"a""b"', JOINS, "ab"),
        ('"a""b"', STANDARD, 'a"b'),
        (r"'a\d\\'", STANDARD, "ad\\"),
        (r"'a\d\\'", KEEPS, r"a\d\\"),
        (r"'a\'d\n'", KEEPS, r"a\'d\n"),
        (r"'a\%'", KEEPS, r"a\%"),
        ("'it''s'", NAMES, "it's"),
    ],
)
def test_the_value_of_a_string(text: str, syntax: StringSyntax, meaning: str) -> None:
    assert value(standard_text(text, syntax)) == meaning


def test_names_in_double_quotes() -> None:
    assert standard_text('"a`""b" = \'"\' -- "c"', NAMES) == '`a``"b` = \'"\' -- "c"'


@pytest.mark.parametrize("text", ["'it''s'", '"a""b"', r"'\'''s'", "''", "''''", "'a'"])
def test_every_release_reads_the_same_in_a_portable_text(text: str) -> None:
    portable = portable_text(text)
    assert value(portable) == value(text) == value(standard_text(portable, JOINS))


def test_strings_with_other_quotes_are_left_to_spark() -> None:
    with pytest.raises(InvalidPredicateError, match="Arrow does not compute"):
        parse_predicate("""s = "a"'b'""", SCHEMA)
