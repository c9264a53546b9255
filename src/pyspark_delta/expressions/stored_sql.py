"""The check of SQL text that a table stores, before Spark evaluates it.

The writers of a table choose the text of its conditions, generated columns and defaults. The check splits it into the
tokens of Spark's lexer, and accepts only listed ones. It needs no syntax tree: in Spark's grammar a function is a name
before a bracket, a query begins with one of a few words after a bracket, and anything else is an operator, a constant
or a name. Text that two lexers could tokenise differently is refused: comments, variables (`${...}`, which Spark
replaces even inside strings), letters that are not ASCII outside quotes.

A word of the syntax counts as such in every position. In positions that its grammar does not allow, Spark reads it as a
name: so the only functions and variables of the session that text can use are those named like a keyword, such as
`case`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from pyspark_delta.expressions.stored_functions import (
    CURRENT,
    FORMATS,
    FUNCTIONS,
    LARGEST_SIZE,
    QUERY_STARTS,
    SIZED,
    SYNTAX,
    SYNTAX_BEFORE_BRACKET,
    TAKES_UNIT,
    TYPES,
    UNITS,
)

_DEEPEST, _LONGEST = 50, 1 << 20
_SPACE = re.compile(r"[ \t\r\n]+")
_TOKEN = re.compile(
    r"""(?P<RAW>[rR]'[^']*'|[rR]"[^"]*")
    |(?P<STRING>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<QUOTED>`(?:[^`]|``)+`)
    |(?P<WORD>(?:[0-9]+[eE][+-](?=[0-9]))?[A-Za-z0-9_]+)
    |(?P<SIGN>--|/\*|\*/|//|<=>|=>|->|\|>|\|\||::|>>>|>>|<<|<=|>=|<>|!=|!<|!>|==|[-+*/%=<>!&|^~.,:()\[\]])""",
    re.DOTALL | re.VERBOSE,
)
_NOT_ALLOWED = {"--": "a comment", "/*": "a comment", "*/": "a comment", "//": "'//'", "=>": "'=>'", "|>": "'|>'"}
# A word right before a quote is a part of the constant only if Spark and the check agree on where the word begins.
_BEFORE_QUOTE = frozenset(["x", "date", "interval", "time", "timestamp", "timestamp_ltz", "timestamp_ntz"])
_AFTER_NAME = frozenset(["", ")", ",", "]", "[", "=", "==", "<=>", "<", "<=", ">", ">=", "<>", "!="])
_NUMBER = re.compile(r"\d+(?:e[+-]?\d+)?(?:l|s|y|f|d|bd)?")  # after a point, or before one, a part of a number
_WIDE = re.compile(r"\d{4,}")


class NotAllowedError(ValueError):
    """A part of the text is not on the list; the message names it, as in "the function 'reflect'"."""


def check_stored_sql(text: str, columns: Collection[str], *, current: bool) -> None:
    """Check that evaluating the text runs only listed functions on these columns and constants.

    `columns` are the top-level names, compared regardless of case. `current` allows functions of the current time and
    user. Raises NotAllowedError.
    """
    _Check({name.casefold() for name in columns}, current).run(_tokens(text))


class _Kind(Enum):
    RAW = auto()
    STRING = auto()
    QUOTED = auto()
    WORD = auto()
    SIGN = auto()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: _Kind
    text: str
    start: int = 0

    @property
    def word(self) -> str:
        """Return the token in lower case if it is a word without quotes; a sign unchanged; otherwise nothing."""
        return self.text.lower() if self.kind in (_Kind.WORD, _Kind.SIGN) else ""

    @property
    def name(self) -> str:
        """Return the name without quotes."""
        return self.text[1:-1].replace("``", "`") if self.kind is _Kind.QUOTED else self.text

    @property
    def is_name(self) -> bool:
        return self.kind in (_Kind.QUOTED, _Kind.WORD)


_NONE = _Token(_Kind.SIGN, "")
_CONSTANT = (_Kind.STRING, _Kind.RAW)


def _tokens(text: str) -> list[_Token]:
    if len(text) > _LONGEST:
        raise NotAllowedError(f"a text of {len(text)} characters")
    if "${" in text:
        raise NotAllowedError("the variable '${', which Spark replaces by a setting or by an environment variable")
    found: list[_Token] = []
    end = position = 0
    while position < len(text):
        space = _SPACE.match(text, position)
        if space is not None:
            position = space.end()
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotAllowedError(f"the character {text[position]!a}")
        token = _Token(_Kind[str(match.lastgroup)], match.group(), position)
        _check_adjacent(token, found[-1] if found and end == position else _NONE)
        found.append(token)
        end = position = match.end()
    if not found:
        raise NotAllowedError("an empty text")
    return found


def _check_adjacent(token: _Token, before: _Token) -> None:
    if token.text in _NOT_ALLOWED:
        raise NotAllowedError(_NOT_ALLOWED[token.text])
    quotes = token.kind in _CONSTANT
    if quotes and before.kind is _Kind.WORD and before.word not in _BEFORE_QUOTE:
        raise NotAllowedError(f"{before.text}{token.text[:1]}, without a space between the word and the quote")


@dataclass(slots=True)
class _Bracket:
    """An open bracket: the function before it, if any, its arguments so far, and the variables of its lambdas."""

    function: str = ""
    argument: int = 0
    tokens: list[_Token] = field(default_factory=list)
    variables: set[str] = field(default_factory=set)


class _Check:
    def __init__(self, columns: set[str], current: bool) -> None:
        self.columns, self.current = columns, current
        self.open = [_Bracket()]

    def run(self, tokens: list[_Token]) -> None:
        for number, token in enumerate(tokens):
            before = tokens[number - 1] if number else _NONE
            after = tokens[number + 1] if number + 1 < len(tokens) else _NONE
            self.open[-1].tokens.append(token)
            if token.is_name:
                self.name(token, before, after)
            elif token.text in ("(", "["):
                self.opened(token, before)
                self.open[-2].variables.update(_parameters(tokens, number))
            elif token.text in (")", "]"):
                self.closed()
            elif token.text == ",":
                self.argument_ended()
                if len(self.open) == 1:
                    raise NotAllowedError("a comma outside of brackets")
        if len(self.open) > 1:
            raise NotAllowedError("a bracket that is not closed")

    # ------------------------------------------------------------------------------------------------- names
    def name(self, token: _Token, before: _Token, after: _Token) -> None:
        """Check a name: a column, a variable of a lambda, a function, or a word of the syntax."""
        if token.word == "using":  # runs a program, after MAP and REDUCE
            raise NotAllowedError(f"the word {token.text} without backticks")
        if token.word in QUERY_STARTS and before.text in ("", "(") and not _is_operand(token, after):
            raise NotAllowedError(f"the word {token.text} at the start, as in a query")
        if after.text == "(":
            self.called(token, before)
        elif before.text in (".", ":", "::") or before.word == "as" or _NUMBER.fullmatch(token.word):
            return  # a member of a value, a path into a variant, a type, an alias, a number
        elif after.text == "->":
            self.open[-1].variables.add(token.name.casefold())
        elif not (self.is_value(token) or self.is_syntax(token, before, after)):
            raise NotAllowedError(f"the name '{token.name}', {self.expected()}")

    def is_value(self, token: _Token) -> bool:
        """True for a column, a variable of a lambda around the token, and functions written without brackets."""
        name = token.name.casefold()
        if name in self.columns or any(name in bracket.variables for bracket in self.open):
            return True
        return self.current and token.word in CURRENT

    def is_syntax(self, token: _Token, before: _Token, after: _Token) -> bool:
        """True for a word that has its meaning at this place; elsewhere it would be the name of a session variable."""
        if token.word in TYPES or token.word == "x":
            return after.kind is _Kind.STRING
        if token.word not in UNITS:
            return token.word in SYNTAX
        counted = before.kind in _CONSTANT or before.text[:1].isdigit()
        first = self.open[-1].function in TAKES_UNIT and self.open[-1].argument == 0 and after.text == ","
        return counted or first or before.word in ("interval", "to") or after.word == "from"

    def expected(self) -> str:
        return "which is not a column of the table" if self.columns else "where only constants are allowed"

    def called(self, token: _Token, before: _Token) -> None:
        """Check a name before a bracket, which calls a function."""
        name = token.name.lower()
        if before.text == ".":
            raise NotAllowedError(f"the function '{token.name}' with a qualified name")
        if token.word in SYNTAX_BEFORE_BRACKET or (token.word in ("any", "some", "all") and _is_like(before)):
            return
        if token.word in TYPES and (before.word == "as" or before.text == "::"):
            return  # the size of the type
        if name not in FUNCTIONS and not (self.current and name in CURRENT):
            raise NotAllowedError(f"the function '{token.name}'")

    # ---------------------------------------------------------------------------------------------- brackets
    def opened(self, token: _Token, before: _Token) -> None:
        if len(self.open) > _DEEPEST:
            raise NotAllowedError(f"more than {_DEEPEST} nested brackets")
        if token.text == "(" and (before.kind in _CONSTANT or before.text in (")", "]")):
            raise NotAllowedError("a call of something that is not a function's name")
        function = before.name.lower() if token.text == "(" and before.is_name else ""
        self.open.append(_Bracket(function))

    def closed(self) -> None:
        if len(self.open) == 1:
            raise NotAllowedError("a bracket that is not opened")
        self.open[-1].tokens.pop()
        self.argument_ended()
        self.open.pop()

    def argument_ended(self) -> None:
        """Check an argument that sets the size of a result."""
        bracket = self.open[-1]
        tokens = [token for token in bracket.tokens if token.text != ","]
        if tokens and SIZED.get(bracket.function) == bracket.argument and not _is_small(tokens, bracket.function):
            raise NotAllowedError(f"{bracket.function} with a size that is not a whole number up to {LARGEST_SIZE}")
        is_format = bracket.function in FORMATS and bracket.argument == 0
        if is_format and any(token.kind not in _CONSTANT or _WIDE.search(token.text) for token in tokens):
            raise NotAllowedError(f"{bracket.function} with a format that is not constant, or has a large width")
        bracket.argument += 1
        bracket.tokens = []


def _is_operand(token: _Token, after: _Token) -> bool:
    """True if the word is a column or a function, because of what follows it: no query continues this way."""
    if after.text == "(":
        return token.word in FUNCTIONS
    return after.text in _AFTER_NAME


def _is_like(token: _Token) -> bool:
    return token.word in ("like", "ilike")


def _is_small(tokens: list[_Token], function: str) -> bool:
    """True if an argument is a small integer, or the string that `format_number` accepts in its place."""
    if function == "format_number" and all(token.kind in _CONSTANT for token in tokens):
        return True
    number = tokens[-1].text
    signs = [token.text for token in tokens[:-1]]
    return signs in ([], ["-"]) and number.isdecimal() and len(number) < 10 and int(number) <= LARGEST_SIZE


def _parameters(tokens: list[_Token], opening: int) -> Iterator[str]:
    """Yield the names in brackets before an arrow, as in `(a, b) -> a + b`."""
    names: list[str] = []
    for number in range(opening + 1, len(tokens) - 1):
        token = tokens[number]
        if token.text == ")":
            yield from names if tokens[number + 1].text == "->" else ()
            return
        if token.is_name:
            names.append(token.name.casefold())
        elif token.text != ",":
            return
