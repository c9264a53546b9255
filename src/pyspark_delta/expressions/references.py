"""The columns that an SQL expression names, without knowing the schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark_delta.expressions.syntax import parse
from pyspark_delta.lazy_sqlglot import exp


def referenced_columns(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the paths of all names in the expression, as spelled. Raises InvalidPredicateError for a syntax error."""
    found: dict[tuple[str, ...], None] = {}
    for column in parse(text).find_all(exp.Column):
        path = [part.name for part in column.parts]
        above = column.parent
        while isinstance(above, exp.Dot) and isinstance(above.expression, exp.Identifier):
            path.append(above.expression.name)
            above = above.parent
        found[tuple(path)] = None
    return tuple(found)


def is_literal(text: str) -> bool:
    """True if the expression is one constant, such as 5, -1.5, 'text', NULL or DATE '2024-01-31'."""
    found = parse(text)
    if isinstance(found, exp.Neg | exp.Cast):
        found = found.this
    return isinstance(found, exp.Literal | exp.Boolean | exp.Null)


def is_among(path: Sequence[str], references: Iterable[tuple[str, ...]]) -> bool:
    """True if one of the references is the path, something inside it, or something around it."""
    wanted = [part.casefold() for part in path]
    for reference in references:
        shared = [part.casefold() for part in reference[: len(wanted)]]
        if shared == wanted[: len(shared)]:
            return True
    return False
