"""Qualifiers of columns in SQL text: taken away, or replaced by the alias that a method expects."""

from __future__ import annotations

from pyspark_delta.parser.tokens import Kind, Token, tokenize
from pyspark_delta.parser.values import Path, TableName, TableReference
from pyspark_delta.schema.column_paths import quoted

_NAMES = (Kind.WORD, Kind.QUOTED)


def qualifiers(table: TableReference, alias: str | None) -> tuple[Path, ...]:
    """Return what may stand before a column of a table, the longest first: its alias, or the ends of its name."""
    if alias is not None:
        return ((alias,),)
    if not isinstance(table, TableName):
        return ()
    return tuple(table.parts[start:] for start in range(len(table.parts)))


def requalify(text: str, found: tuple[Path, ...], alias: str | None = None) -> str:
    """Return SQL with an alias in place of each of the qualifiers `found`, or without them."""
    tokens, pieces, place, index = tokenize(text), list[str](), 0, 0
    while index < len(tokens):
        chain = _chain(tokens, index)
        if not chain:
            index += 1
            continue
        length = _matched([str(_name(token)) for token in chain], found)
        if length:
            pieces += [text[place : chain[0].start], "" if alias is None else f"{quoted(alias)}."]
            place = chain[length].start
        index += 2 * len(chain) - 1
    return "".join([*pieces, text[place:]])


def unqualified(path: Path, found: tuple[Path, ...]) -> Path:
    """Return the path of a column without a qualifier."""
    return path[_matched(list(path), found) :]


def _matched(names: list[str], found: tuple[Path, ...]) -> int:
    """Return how many names are a qualifier; at least one name is left for the column."""
    folded = [name.casefold() for name in names]
    for qualifier in found:
        if len(qualifier) < len(folded) and folded[: len(qualifier)] == [part.casefold() for part in qualifier]:
            return len(qualifier)
    return 0


def _chain(tokens: list[Token], index: int) -> list[Token]:
    """Return the names that dots join from a token on; none if it is no name, or follows a dot."""
    if tokens[index].kind not in _NAMES or (index and tokens[index - 1].text == "."):
        return []
    found = [tokens[index]]
    while tokens[index + 1].text == "." and tokens[index + 2].kind in _NAMES:
        index += 2
        found.append(tokens[index])
    return found


def _name(token: Token) -> object:
    return token.value if token.kind is Kind.QUOTED else token.text
