"""Reading a statement token by token: words, names, values, and SQL that is cut out by brackets and keywords."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import NoReturn

from pyspark_delta.errors import DeltaError, SqlSyntaxError
from pyspark_delta.parser.arguments import Arguments, with_arguments
from pyspark_delta.parser.tokens import Kind, Token, syntax_error, tokenize
from pyspark_delta.parser.values import Path, SqlText, TableName, TablePath, TableReference

_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = frozenset(_OPEN.values())
_NAME_KINDS = (Kind.WORD, Kind.QUOTED)


class Reader:
    """A place in the tokens of one statement.

    `accept...` methods return whether they took something, and other methods raise SqlSyntaxError if what they take is
    not there. Words are compared in upper case.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0

    def bind(self, arguments: Arguments) -> None:
        """Put the literals of arguments in place of parameters, and go back to the beginning.

        Reading a parameter without an argument then raises InvalidOperationError, and one whose argument has no literal
        InvalidOptionError.
        """
        self.tokens = with_arguments(self.text, self.tokens, arguments)
        self.index = 0

    # ------------------------------------------------------------------------------------------------------ words
    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.index]

    def peek(self, ahead: int = 1) -> Token:
        """Return the token that many after the next one."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def at(self, *words: str) -> bool:
        """Return True if the next tokens are these words and operators, one after the other."""
        last = len(self.tokens)
        if self.index + len(words) >= last:
            return False
        return all(_is(self.tokens[self.index + i], word) for i, word in enumerate(words))

    def at_any(self, *words: str) -> bool:
        """Return True if the next token is one of these words and operators."""
        return any(_is(self.token, word) for word in words)

    def accept(self, *words: str) -> bool:
        """Take these words and operators if they are next."""
        if not self.at(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Take these words and operators."""
        for word in words:
            if not self.accept(word):
                self.fail(word)

    def choose(self, *words: str) -> str:
        """Take one of these words and return it."""
        word = next((word for word in words if self.accept(word)), None)
        if word is None:
            self.fail(" or ".join(words))
        return word

    def end(self) -> None:
        """Take semicolons and the end of the text."""
        while self.accept(";"):
            pass
        if self.token.kind is not Kind.END:
            self.fail("the end of the statement")

    @property
    def ended(self) -> bool:
        """True if no token but semicolons is left."""
        return self.token.kind is Kind.END or _is(self.token, ";")

    def fail(self, expected: str, token: Token | None = None) -> NoReturn:
        """Raise the error of the next token, or of another one."""
        raise self.error(expected, token)

    def error(self, expected: str, token: Token | None = None) -> DeltaError:
        """Return the error of the next token, or of another one; `expected` is what the grammar allows there."""
        found = self.token if token is None else token
        if isinstance(found.value, DeltaError):
            return found.value
        if found.kind is Kind.ERROR:
            return syntax_error(self.text, found, str(found.value))
        place = self.tokens.index(found)
        before = " ".join(one.text for one in self.tokens[max(place - 2, 0) : place])
        return syntax_error(self.text, found, f"{expected} after {before}" if before else expected)

    # ------------------------------------------------------------------------------------------------------ names
    def at_name(self) -> bool:
        """Return True if the next token may be a name."""
        return self.token.kind in _NAME_KINDS

    def name(self, what: str = "a name") -> str:
        """Take one part of a name and return it without quotes."""
        token = self.token
        if token.kind not in _NAME_KINDS or (token.kind is Kind.QUOTED and not token.value):
            self.fail(what)
        self.index += 1
        return str(token.value) if token.kind is Kind.QUOTED else token.text

    def path(self, what: str = "a name") -> Path:
        """Take a name of one part or more."""
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name())
        return tuple(parts)

    def table_name(self) -> TableName:
        """Take the name of a table, or `IDENTIFIER('name')`, whose parts are those of the string."""
        start = self.token.start
        parts = self._identifier_clause() if self.at("IDENTIFIER", "(") else self.path("the name of a table")
        return TableName(parts, start, self.tokens[self.index - 1].end)

    def skip_table_name(self) -> bool:
        """Pass over the name of a table, before arguments are bound too; return False if there is none."""
        if self.accept("IDENTIFIER", "("):
            self.index += 1
            return self.accept(")")
        if not self.at_name():
            return False
        self.path()
        return True

    def _identifier_clause(self) -> Path:
        self.expect("IDENTIFIER", "(")
        token = self.token
        inner = Reader(self.string("the name of a table in quotes"))
        try:
            parts = inner.path()
            inner.end()
        except SqlSyntaxError:
            self.fail("the name of a table in quotes", token)
        self.expect(")")
        return parts

    def table(self) -> TableReference:
        """Take the name of a table, or a path in quotes."""
        token = self.token
        if token.kind is Kind.STRING:
            return TablePath(self.string(), token.start, token.end)
        if not self.at_name():
            self.fail("the name of a table or a path in quotes")
        return self.table_name()

    def paths(self) -> tuple[Path, ...]:
        """Take names of columns, separated by commas."""
        found = [self.path("the name of a column")]
        while self.accept(","):
            found.append(self.path("the name of a column"))
        return tuple(found)

    def bracketed_paths(self) -> tuple[Path, ...]:
        """Take names of columns in brackets."""
        self.expect("(")
        found = self.paths()
        self.expect(")")
        return found

    # ----------------------------------------------------------------------------------------------------- values
    def string(self, what: str = "a string") -> str:
        """Take a string and return it without quotes and escapes."""
        token = self.token
        if token.kind is not Kind.STRING:
            self.fail(what)
        self.index += 1
        return str(token.value)

    def number(self, what: str = "a number") -> int | Decimal:
        """Take a number, which a minus may precede."""
        sign = -1 if self.accept("-") else 1
        token = self.token
        if token.kind is not Kind.NUMBER:
            self.fail(what)
        digits = token.text.upper().rstrip("BDLSYF")
        try:
            value = int(digits) if digits.isdigit() else Decimal(digits)
        except InvalidOperation:
            self.fail(what)
        self.index += 1
        return sign * value

    def integer(self, what: str = "a whole number") -> int:
        """Take a whole number that is not negative."""
        token = self.token
        if token.kind is not Kind.NUMBER or not token.text.isdigit():
            self.fail(what)
        self.index += 1
        return int(token.text)

    # ----------------------------------------------------------------------------------------------- SQL as text
    def cut(self, what: str, stops: Callable[[Reader], bool] = lambda reader: False) -> SqlText:
        """Take all tokens up to the end, an outer bracket, a semicolon, or where `stops` says so outside of brackets.

        `CASE ... END` counts as brackets. `what` names the SQL in the error if there is none.
        """
        first, closing = self.index, list[str]()
        while self.token.kind is not Kind.END:
            token = self.token
            if not closing and (_is(token, ";") or token.text in _CLOSE or stops(self)):
                break
            self._nest(token, closing)
            self.index += 1
        if self.token.kind is Kind.ERROR:
            self.fail(what)
        if closing:
            self.fail(closing[-1])
        if self.index == first:
            self.fail(what)
        return self._between(first, self.index)

    def _nest(self, token: Token, closing: list[str]) -> None:
        if token.kind is Kind.ERROR or isinstance(token.value, DeltaError):
            self.fail("")
        if token.kind is Kind.OPERATOR and token.text in _OPEN:
            closing.append(_OPEN[token.text])
        elif token.kind is Kind.OPERATOR and token.text in _CLOSE:
            while closing and closing[-1] == "END":  # "case" was a name
                closing.pop()
            if closing[-1:] != [token.text]:
                self.fail(closing[-1] if closing else "no closing bracket")
            closing.pop()
        elif _is(token, "CASE") and not self._is_part_of_name():
            closing.append("END")
        elif closing and closing[-1] == "END" and _is(token, "END") and not self._is_part_of_name():
            closing.pop()

    def _is_part_of_name(self) -> bool:
        """Return True if the next token follows or precedes the dot of a name."""
        return (self.index > 0 and _is(self.tokens[self.index - 1], ".")) or _is(self.peek(), ".")

    def bracketed(self, what: str) -> SqlText:
        """Take SQL in brackets, and return what is between them."""
        self.expect("(")
        found = self.cut(what)
        self.expect(")")
        return found

    def rest(self, start: int) -> SqlText:
        """Return the SQL from the token at that index up to the next token."""
        return self._between(start, self.index)

    def _between(self, first: int, last: int) -> SqlText:
        begin = self.tokens[first].start
        return SqlText(_replaced(self.text, self.tokens[first:last]), begin)


def _is(token: Token, word: str) -> bool:
    return token.value == word and token.kind in (Kind.WORD, Kind.OPERATOR)


def _replaced(text: str, tokens: Sequence[Token]) -> str:
    """Return the text of tokens with what is between them; literals stand in place of parameters."""
    pieces, place = [], tokens[0].start
    for token in tokens:
        pieces += [text[place : token.start], token.text]
        place = token.end
    return "".join(pieces)
