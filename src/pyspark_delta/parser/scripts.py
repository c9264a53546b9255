"""Statements of Delta's own grammar inside of SQL scripts, which Spark's grammar of scripts does not know."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pyspark_delta.errors import SqlSyntaxError
from pyspark_delta.parser.arguments import Arguments
from pyspark_delta.parser.delta import parse
from pyspark_delta.parser.statements import DeltaStatement
from pyspark_delta.parser.tokens import Kind, Token, tokenize

_SCRIPT = re.compile(r"\s*(?:\w+\s*:\s*)?BEGIN\b", re.IGNORECASE)
_CERTAIN = frozenset(("BEGIN", ";"))
# After these words may also follow an expression.
_UNCERTAIN = frozenset(("THEN", "ELSE", "DO", "LOOP", "REPEAT"))
_PLACEHOLDER = "pyspark_delta_statement_{}"


def is_script(text: str) -> bool:
    """Return True if a text may be a script, `BEGIN ... END`."""
    return _SCRIPT.match(text) is not None


def with_placeholders(
    text: str, is_wanted: Callable[[DeltaStatement], bool], arguments: Arguments = None
) -> tuple[str, dict[str, DeltaStatement]]:
    """Return a script with CALL in place of Delta's own statements, and these by the names that CALL has.

    `is_wanted` decides about each statement. Only parameters with names can be in the statements. Raises SqlSyntaxError
    for a statement that begins as Delta's and goes on otherwise, and as `parse`.
    """
    named = arguments if isinstance(arguments, Mapping) else None
    tokens, found, pieces, place = tokenize(text), dict[str, DeltaStatement](), list[str](), 0
    for index, token in enumerate(tokens[1:], 1):
        before = tokens[index - 1]
        if token.start < place or token.kind is not Kind.WORD or before.value not in _CERTAIN | _UNCERTAIN:
            continue
        end = _end(tokens, index)
        is_label = tokens[index + 1].text == ":"
        certain = before.value in _CERTAIN
        statement = None if is_label else _own(text, token.start, end, named, is_certain=certain)
        if statement is None or not is_wanted(statement):
            continue
        name = _PLACEHOLDER.format(len(found))
        found[name] = statement
        lines = "\n" * text.count("\n", token.start, end)  # lines in errors stay
        pieces += [text[place : token.start], f"CALL {name}(){lines}"]
        place = end
    return "".join([*pieces, text[place:]]), found


def _end(tokens: Sequence[Token], index: int) -> int:
    """Return where the statement of a token ends: at the next semicolon."""
    return next((token.start for token in tokens[index:] if token.text == ";"), tokens[-1].start)


def _own(text: str, start: int, end: int, arguments: Arguments, *, is_certain: bool) -> DeltaStatement | None:
    """Return the statement at a place; positions in errors are those of the script."""
    before = re.sub(r"\S", " ", text[:start])
    try:
        return parse(before + text[start:end], arguments)
    except SqlSyntaxError:
        if is_certain:
            raise
        return None
