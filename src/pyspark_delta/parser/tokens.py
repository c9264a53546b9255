"""Text to tokens, by the lexical rules of Spark SQL: words, quoted names, strings, numbers, parameters, operators."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from pyspark_delta.errors import SqlSyntaxError
from pyspark_delta.expressions.literals import unescape


class Kind(Enum):
    """The kind of a token."""

    WORD = "word"  # a keyword or a name
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    VALUE = "value"  # of a parameter, if it is neither a string nor a number
    PARAMETER = "parameter"
    OPERATOR = "operator"
    ERROR = "error"  # text that is no token
    END = "end"


class Token(NamedTuple):
    """A token, and the characters of the text that it covers: `start` to `end`, counted from 0.

    `text` is what the statement says: the characters themselves, or the literal in place of a parameter. `value` is the
    name or string without quotes, a word in upper case, the value of a parameter, and otherwise `text`. For an error,
    it says what is wrong.
    """

    kind: Kind
    text: str
    start: int
    end: int
    value: object


_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s|--(?:\\\n|[^\r\n])*+)++)
    | (?P<comment>/\*(?!\+))
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<number>(?:(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?:BD|[DF])?(?!\w)|\d+(?:BD|[LSYDF])?(?!\w))
    | (?P<word>\w+)
    | (?P<quoted>`(?:[^`]|``)*+`)
    | (?P<string>'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+")
    | (?P<parameter>:(?=[^\W\d])\w+|\?)
    | (?P<operator>/\*\+|\*/|<=>|\|\||\|>|::|->|=>|<>|!=|==|<=|>=|.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_KINDS = {"word": Kind.WORD, "quoted": Kind.QUOTED, "number": Kind.NUMBER, "operator": Kind.OPERATOR}
_UNCLOSED = {"`": "the closing ` of a name", "'": "the closing ' of a string", '"': 'the closing " of a string'}


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text. The last one is of kind END.

    Text that is no token, such as a string that is not closed, gives one token of kind ERROR up to the end: whether it
    is an error depends on whose statement it is.
    """
    tokens: list[Token] = []
    place, size = 0, len(text)
    while place < size:
        found = _TOKEN.match(text, place)
        assert found is not None  # the last alternative takes any character
        name, place = str(found.lastgroup), found.end()
        if name == "space":
            continue
        if name == "comment":
            place = _comment_end(text, place)
            if place < 0:
                tokens.append(Token(Kind.ERROR, text[found.start() :], found.start(), size, "*/, the end of a comment"))
                place = size
            continue
        token = _token(name, found, tokens)
        tokens.append(token)
        place = token.end
    tokens.append(Token(Kind.END, "", size, size, ""))
    return tokens


def _token(name: str, found: re.Match[str], before: list[Token]) -> Token:
    text, start, end = found[0], found.start(), found.end()
    match name:
        case "word":
            return Token(Kind.WORD, text, start, end, text.upper())
        case "quoted":
            return Token(Kind.QUOTED, text, start, end, text[1:-1].replace("``", "`"))
        case "string":
            return Token(Kind.STRING, text, start, end, unescape(_without_doubling(text)))
        case "raw":
            return Token(Kind.STRING, text, start, end, text[2:-1])
        case "parameter" if not _is_member(start, before):
            return Token(Kind.PARAMETER, text, start, end, text[1:])
        case "parameter":  # a:b takes a member of a variant
            return Token(Kind.OPERATOR, text[0], start, start + 1, text[0])
        case "operator" if text in _UNCLOSED:
            rest = found.string[start:]
            return Token(Kind.ERROR, rest, start, start + len(rest), _UNCLOSED[text])
    return Token(_KINDS[name], text, start, end, text)


def _without_doubling(text: str) -> str:
    """Return the contents of a string in quotes; a doubled quote is one, unless a backslash escapes the first."""
    quote, inner = text[0], text[1:-1]
    if quote not in inner:
        return inner
    return re.sub(rf"(\\.)|{quote}{quote}", lambda found: found[1] or quote, inner, flags=re.DOTALL)


def _is_member(start: int, before: list[Token]) -> bool:
    """Return True if a colon directly follows what may have members."""
    if not before or before[-1].end != start:
        return False
    return before[-1].kind in (Kind.WORD, Kind.QUOTED) or before[-1].text in (")", "]")


def _comment_end(text: str, place: int) -> int:
    """Return where a block comment ends, whose first characters end at `place`; -1 if it does not end."""
    depth = 1
    while depth:
        found = _COMMENT_EDGE.search(text, place)
        if found is None:
            return -1
        depth += 1 if found[0] == "/*" else -1
        place = found.end()
    return place


def line_and_column(text: str, place: int) -> tuple[int, int]:
    """Return the line, counted from 1, and the column, counted from 0, of a character: as Spark counts."""
    return text.count("\n", 0, place) + 1, place - (text.rfind("\n", 0, place) + 1)


def syntax_error(text: str, token: Token, expected: str) -> SqlSyntaxError:
    """Return the error of a token that the grammar does not allow; `expected` is what it allows."""
    line, column = line_and_column(text, token.start)
    if token.kind is Kind.END:
        near = "end of input"
    elif token.kind is Kind.ERROR:
        near = f"'{token.text[:20]}'"
    else:
        near = f"'{token.text}'"
    lines = text.split("\n")
    width = 1 if token.kind in (Kind.END, Kind.ERROR) else max(len(token.text.split("\n")[0]), 1)
    shown = "\n".join([*lines[:line], "-" * column + "^" * width, *lines[line:]])
    return SqlSyntaxError(
        f"Syntax error at or near {near}: expected {expected}.", line=line, position=column, sql=shown
    )
