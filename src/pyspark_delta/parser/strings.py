"""String literals in SQL whose value depends on the release of Spark or on settings of the session."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark_delta.parser.tokens import Kind, tokenize

_DEPENDENT = re.compile(r"''|[\\\"]")


@dataclass(frozen=True, slots=True)
class StringSyntax:
    """How a session reads string literals. The default is what Spark reads from 4.1 on, and this package everywhere.

    `joins_strings`: a doubled quote ends one string and begins another, so that `'it''s'` is "its".
    `keeps_backslashes`: a string is what its quotes enclose, with each backslash and both of two quotes.
    `quotes_names`: double quotes enclose names.
    """

    joins_strings: bool = False
    keeps_backslashes: bool = False
    quotes_names: bool = False


STANDARD = StringSyntax()


def may_depend(text: str) -> bool:
    """Return True if sessions may differ in what they read in a text; False if they certainly do not."""
    return _DEPENDENT.search(text) is not None


def standard_text(text: str, syntax: StringSyntax) -> str:
    """Return a text with the same meaning in `STANDARD` as the given one has in `syntax`."""
    return text if syntax == STANDARD else _with_strings(text, syntax)


def portable_text(text: str) -> str:
    """Return a text of `STANDARD` that has the same meaning on every release of Spark: without doubled quotes."""
    return _with_strings(text, None) if "''" in text or '""' in text else text


def _with_strings(text: str, syntax: StringSyntax | None) -> str:
    parts, place = list[str](), 0
    for token in tokenize(text):
        if token.kind is Kind.STRING and token.text[0] in "'\"":  # raw strings are the same everywhere
            parts += (text[place : token.start], _portable(token.text) if syntax is None else _read(token.text, syntax))
            place = token.end
    return "".join((*parts, text[place:]))


def _portable(string: str) -> str:
    quote = string[0]
    inner = _doubled(string, f"\\{quote}")
    return f"{quote}{inner}{quote}"


def _read(string: str, syntax: StringSyntax) -> str:
    quote = string[0]
    if syntax.quotes_names and quote == '"':
        name = string[1:-1].replace('""', '"').replace("`", "``")
        return f"`{name}`"
    if syntax.keeps_backslashes:
        inner = _doubled(string, "" if syntax.joins_strings else f"\\{quote}\\{quote}", _kept)
    else:
        inner = _doubled(string, "") if syntax.joins_strings else string[1:-1]
    return f"{quote}{inner}{quote}"


def _kept(escape: str) -> str:
    """Return a backslash and the character after it, written with escapes."""
    character = escape[1]
    return f"\\\\\\{character}" if character in "'\"\\" else f"\\\\{character}"


def _doubled(string: str, replacement: str, escaped: Callable[[str], str] = str) -> str:
    """Return the contents of a string with another text for each doubled quote. A quote that is escaped is none."""
    quote, inner = string[0], string[1:-1]

    def written(found: re.Match[str]) -> str:
        return escaped(found[1]) if found[1] else replacement

    return re.sub(rf"(\\.)|{quote}{quote}", written, inner, flags=re.DOTALL)
