"""Strings in SQL text, spelled so that the SQL library reads them as Spark does."""

from __future__ import annotations

from pyspark_delta.parser.arguments import sql_literal
from pyspark_delta.parser.tokens import Kind, tokenize


def with_plain_strings(text: str) -> str:
    """Return SQL with each string as a literal in single quotes with backslash escapes."""
    pieces, place = [], 0
    for token in tokenize(text):
        if token.kind is Kind.STRING:
            pieces += [text[place : token.start], sql_literal(token.value)]
            place = token.end
    return "".join([*pieces, text[place:]])
