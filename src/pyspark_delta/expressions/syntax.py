"""The syntax of conditions: parse text to a tree of the SQL library, with Spark's own rules for strings and numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined, unused-ignore]

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.literals import NotExactError, decimal_type_of, unescape

_NOT_CONDITIONS = (exp.Alias, exp.Query, exp.Command, exp.DDL, exp.DML, exp.Tuple)
_DIALECT = sqlglot.Dialect.get_or_raise("spark")


def parse(text: str) -> exp.Expression:
    """Return the syntax tree of one condition. Raises InvalidPredicateError, with the position if there is one."""
    try:
        statements = _DIALECT.parser().parse(_as_spark(_DIALECT.tokenize(text), text), text)
    except SqlglotError as error:
        raise _syntax_error(text, error) from None
    except NotExactError as error:
        raise InvalidPredicateError(f"Cannot parse the condition {short(text)}: {error}.") from None
    except RecursionError:
        raise InvalidPredicateError(f"The condition is nested too deeply: {short(text)}") from None
    if len(statements) != 1 or statements[0] is None or isinstance(statements[0], _NOT_CONDITIONS):
        raise InvalidPredicateError(
            f"Expected one condition, such as \"id > 5 AND name = 'a'\"; found {short(text) or 'nothing'}."
        )
    return cast(exp.Expression, statements[0])


def _as_spark(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens; strings and `BD` numbers follow Spark's rules, which the SQL library supports in part."""
    read: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.STRING:
            _add_string(read, token, text)
        elif token.token_type == TokenType.DECIMAL and token.text.upper() == "BD":
            read += _decimal_of(read[-2], token)
        else:
            read.append(token)
    return read


def _add_string(read: list[Token], token: Token, text: str) -> None:
    """Add a string token, with Spark's escapes; adjacent strings (`'it''s'`) are one string with a quote in it."""
    value, start = unescape(text[token.start + 1 : token.end]), token
    if read and read[-1].token_type == TokenType.STRING and read[-1].end + 1 == token.start:
        start = read.pop()
        value = f"{start.text}{text[token.start]}{value}"
    read.append(Token(TokenType.STRING, value, start.line, start.col, start.start, token.end))


def _decimal_of(number: Token, suffix: Token) -> list[Token]:
    """Return the tokens of `1.50BD`, which the library reads as `1.50::BD`; its type has the digits of the text."""
    size = decimal_type_of(Decimal(number.text))
    parts = [
        (TokenType.DECIMAL, "DECIMAL"),
        (TokenType.L_PAREN, "("),
        (TokenType.NUMBER, str(size.precision)),
        (TokenType.COMMA, ","),
        (TokenType.NUMBER, str(size.scale)),
        (TokenType.R_PAREN, ")"),
    ]
    return [Token(kind, word, suffix.line, suffix.col, suffix.start, suffix.end) for kind, word in parts]


def _syntax_error(text: str, error: SqlglotError) -> InvalidPredicateError:
    details: list[dict[str, Any]] = getattr(error, "errors", None) or []
    if not details:
        return InvalidPredicateError(f"Cannot parse the condition {short(text)}: {str(error).splitlines()[0]}")
    first = details[0]
    line, column = first.get("line"), first.get("col")
    description = str(first.get("description", "syntax error")).split(" for <class")[0]
    return InvalidPredicateError(
        f"Cannot parse the condition {short(text)}: {description} at line {line}, column {column}"
        f" (near '{first.get('highlight')}').",
        line=line,
        column=column,
    )


def short(text: str) -> str:
    """Return the text in quotes and shortened, for messages."""
    return repr(text if len(text) <= 200 else f"{text[:197]}...") if text.strip() else ""
