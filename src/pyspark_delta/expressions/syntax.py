"""The syntax of conditions: parse text to a tree of the SQL library, with Spark's own rules for strings and numbers."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.literals import NotExactError, decimal_type_of, unescape
from pyspark_delta.lazy_sqlglot import exp, sqlglot, sqlglot_errors, sqlglot_tokens

if TYPE_CHECKING:
    from sqlglot.tokens import Token  # type: ignore[attr-defined, unused-ignore]

_NAMES = frozenset(
    (
        *("ALTER", "CREATE", "DROP", "FETCH", "GLOB", "GRANT", "INSERT", "INTO", "OUTER", "QUALIFY", "REVOKE"),
        *("ROLLBACK", "SERDE_PROPERTIES", "SESSION_USER", "TABLE_SAMPLE", "UNCACHE", "VALUES"),
    )
)
"""Keywords of the SQL library, by the names of their tokens, that Spark takes for names of columns in conditions."""
_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM")


@cache
def _dialect() -> sqlglot.Dialect:
    return sqlglot.Dialect.get_or_raise("spark")


@cache
def _parser() -> type[Any]:
    """Return Spark's parser of the SQL library, for conditions, with functions by their names in Spark.

    The library turns functions into classes of its own, which differ between releases and merge what Spark separates.
    Only functions whose arguments have words between them keep their classes. A condition is no statement: `comment`
    and `desc` at its beginning are names. A colon is followed by a path in a variant.
    """
    inherited = _dialect().parser_class
    parsers = {name: read for name, read in inherited.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX}
    changes = {
        "FUNCTIONS": {},
        "FUNCTION_PARSERS": parsers,
        "STATEMENT_PARSERS": {},
        "COLON_IS_VARIANT_EXTRACT": True,
    }
    return type("Parser", (inherited,), changes)


def parse(text: str) -> exp.Expression:
    """Return the syntax tree of one condition. Raises InvalidPredicateError, with the position if there is one."""
    if not isinstance(text, str):
        raise TypeError(f"A condition must be SQL text, found {type(text).__name__} {text!r}.")
    try:
        statements = _parser()(dialect=_dialect()).parse(_as_spark(_dialect().tokenize(text), text), text)
    except sqlglot_errors.SqlglotError as error:
        raise _syntax_error(text, error) from None
    except NotExactError as error:
        raise InvalidPredicateError(f"Cannot parse the condition {short(text)}: {error}.") from None
    except RecursionError:
        raise InvalidPredicateError(f"The condition is nested too deeply: {short(text)}") from None
    others = (exp.Alias, exp.Query, exp.Command, exp.DDL, exp.DML, exp.Tuple)
    if len(statements) != 1 or statements[0] is None or isinstance(statements[0], others):
        raise InvalidPredicateError(
            f"Expected one condition, such as \"id > 5 AND name = 'a'\"; found {short(text) or 'nothing'}."
        )
    return cast(exp.Expression, statements[0])


def _as_spark(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens; names, strings and `BD` numbers follow Spark's rules, which the library supports in part."""
    kinds = sqlglot_tokens.TokenType
    read: list[Token] = []
    for token, following in zip_longest(tokens, tokens[1:]):
        if token.token_type == kinds.STRING:
            _add_string(read, token, text)
        elif token.token_type == kinds.DECIMAL and token.text.upper() == "BD":
            read += _decimal_of(read[-2], token)
        elif token.token_type.name in _NAMES and (following is None or following.token_type != kinds.L_PAREN):
            read.append(sqlglot_tokens.Token(kinds.VAR, token.text, token.line, token.col, token.start, token.end))
        else:
            read.append(token)
    return read


def _add_string(read: list[Token], token: Token, text: str) -> None:
    """Add a string token, with Spark's escapes; adjacent strings (`'it''s'`) are one string with a quote in it."""
    kinds = sqlglot_tokens.TokenType
    value, start = unescape(text[token.start + 1 : token.end]), token
    if read and read[-1].token_type == kinds.STRING and text[read[-1].end : token.start] == text[token.start]:
        start = read.pop()
        value = f"{start.text}{text[token.start]}{value}"
    read.append(sqlglot_tokens.Token(kinds.STRING, value, start.line, start.col, start.start, token.end))


def _decimal_of(number: Token, suffix: Token) -> list[Token]:
    """Return the tokens of `1.50BD`, which the library reads as `1.50::BD`; its type has the digits of the text."""
    kinds = sqlglot_tokens.TokenType
    size = decimal_type_of(Decimal(number.text))
    parts = [
        (kinds.DECIMAL, "DECIMAL"),
        (kinds.L_PAREN, "("),
        (kinds.NUMBER, str(size.precision)),
        (kinds.COMMA, ","),
        (kinds.NUMBER, str(size.scale)),
        (kinds.R_PAREN, ")"),
    ]
    return [sqlglot_tokens.Token(kind, word, suffix.line, suffix.col, suffix.start, suffix.end) for kind, word in parts]


def _syntax_error(text: str, error: sqlglot_errors.SqlglotError) -> InvalidPredicateError:
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
