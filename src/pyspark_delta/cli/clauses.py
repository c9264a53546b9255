"""The clauses of a merge and assignments, as a person types them.

A clause is an action and, after WHERE, a condition: `update *`, `update a = s.a, b = s.b + 1 where s.a > 0`,
`insert *`, `insert a = s.a`, `delete where s.gone`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from pyspark_delta.lazy_sqlglot import sqlglot, sqlglot_errors, sqlglot_tokens

if TYPE_CHECKING:
    from sqlglot.tokens import Token  # type: ignore[attr-defined, unused-ignore]


@dataclass(frozen=True, slots=True)
class ClauseText:
    """A clause: its action, its condition, and SQL by the names of columns; no values are all columns, by name."""

    action: str
    condition: str | None = None
    values: dict[str, str] = field(default_factory=dict)


def parse_clause(text: str, option: str, actions: tuple[str, ...]) -> ClauseText:
    """Parse a clause. Raises typer.BadParameter, which is wrong usage."""
    tokens = _tokens(text, option)
    action = tokens[0].text.lower() if tokens else ""
    if action not in actions:
        raise typer.BadParameter(f"'{text}' does not begin with {' or '.join(actions)}.", param_hint=option)
    where = next(
        (t for t, depth in _with_depth(tokens) if t.token_type is sqlglot_tokens.TokenType.WHERE and depth == 0), None
    )
    end = len(text) if where is None else where.start
    condition = None if where is None else text[where.end + 1 :].strip()
    verb = 1 if action == "update" and tokens[1:] and tokens[1].token_type is sqlglot_tokens.TokenType.SET else 0
    what = text[tokens[verb].end + 1 : end].strip()
    if condition == "":
        raise typer.BadParameter(f"'{text}' has no condition after where.", param_hint=option)
    if action == "delete":
        if what:
            raise typer.BadParameter(
                f"'{text}' has '{what}' after delete; a condition follows where.", param_hint=option
            )
        return ClauseText(action, condition)
    if not what:
        raise typer.BadParameter(
            f"'{text}' says no values: use {action} * for all columns, or {action} a = s.a, b = s.b.", param_hint=option
        )
    return ClauseText(action, condition, {} if what == "*" else parse_assignments(what, option))


def parse_assignments(text: str, option: str) -> dict[str, str]:
    """Parse `a = 1, b = c + 1` to SQL by the names of columns. Raises typer.BadParameter."""
    tokens = _tokens(text, option)
    commas = [t for t, depth in _with_depth(tokens) if t.token_type is sqlglot_tokens.TokenType.COMMA and depth == 0]
    starts = [0, *(comma.end + 1 for comma in commas)]
    ends = [*(comma.start for comma in commas), len(text)]
    values: dict[str, str] = {}
    for start, end in zip(starts, ends, strict=True):
        equals = next(
            (t for t in tokens if t.token_type is sqlglot_tokens.TokenType.EQ and start <= t.start < end), None
        )
        name = "" if equals is None else text[start : equals.start].strip()
        value = "" if equals is None else text[equals.end + 1 : end].strip()
        if not name or not value:
            raise typer.BadParameter(
                f"'{text[start:end].strip()}' is not of the form column = expression.", param_hint=option
            )
        if name in values:
            raise typer.BadParameter(f"The column {name} is set twice.", param_hint=option)
        values[name] = value
    return values


def _tokens(text: str, option: str) -> list[Token]:
    try:
        return list(sqlglot.Dialect.get_or_raise("spark").tokenize(text))
    except sqlglot_errors.SqlglotError:
        raise typer.BadParameter(f"'{text}' is not SQL: a quote has no end.", param_hint=option) from None


def _with_depth(tokens: list[Token]) -> list[tuple[Token, int]]:
    """Return each token with the number of brackets around it."""
    kinds = sqlglot_tokens.TokenType
    found, depth = [], 0
    for token in tokens:
        depth -= token.token_type in (kinds.R_PAREN, kinds.R_BRACKET)
        found.append((token, depth))
        depth += token.token_type in (kinds.L_PAREN, kinds.L_BRACKET)
    return found
