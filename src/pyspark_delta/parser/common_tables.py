"""Common table expressions before statements: their names, and conditions whose subqueries see them."""

from __future__ import annotations

import itertools

from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.tokens import Kind, tokenize
from pyspark_delta.parser.values import SqlText

_QUERY_WORDS = ("SELECT", "FROM", "VALUES", "TABLE")


def cte_names(ctes: SqlText) -> set[str]:
    """Return the names that `WITH name AS (query), ...` defines, casefolded."""
    reader, names = Reader(ctes.text), set[str]()
    reader.expect("WITH")
    reader.accept("RECURSIVE")
    while True:
        names.add(reader.name().casefold())
        reader.cut("a query", lambda at: at.at(","))
        if not reader.accept(","):
            return names


def with_ctes(text: str, ctes: SqlText) -> str:
    """Return a condition or a value whose outermost subqueries begin with common table expressions."""
    tokens, pieces, place, depth, inside = tokenize(text), list[str](), 0, 0, None
    for token, after in itertools.pairwise(tokens):
        if token.text == "(" and token.kind is Kind.OPERATOR:
            depth += 1
            if inside is None and after.kind is Kind.WORD and after.value in (*_QUERY_WORDS, "WITH"):
                inside = depth
                pieces += [text[place : token.end], ctes.text, "," if after.value == "WITH" else " "]
                place = after.end if after.value == "WITH" else after.start
        elif token.text == ")" and token.kind is Kind.OPERATOR:
            inside = None if inside == depth else inside
            depth -= 1
    return "".join([*pieces, text[place:]])
