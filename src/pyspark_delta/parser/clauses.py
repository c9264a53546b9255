"""Clauses that several statements have: points in time, properties of tables."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.tokens import Kind
from pyspark_delta.parser.values import TimestampAsOf, TimeTravel, VersionAsOf

_VERSION = ("VERSION", "SYSTEM_VERSION")
_TIMESTAMP = ("TIMESTAMP", "SYSTEM_TIME")


def at_time_travel(reader: Reader) -> bool:
    """Return True if the next tokens begin a point in time. The words may also be names, such as aliases."""
    ahead = 1 if reader.at("FOR") else 0
    word, following = reader.peek(ahead), reader.peek(ahead + 1)
    if word.kind is Kind.END:
        return ahead == 1
    return word.value in (*_VERSION, *_TIMESTAMP) and (following.value == "AS" or following.kind is Kind.END)


def time_travel(reader: Reader) -> TimeTravel:
    """Take `[FOR] VERSION AS OF n` or `[FOR] TIMESTAMP AS OF text`, where n may be in quotes."""
    reader.accept("FOR")
    word = reader.choose(*_VERSION, *_TIMESTAMP)
    reader.expect("AS", "OF")
    return VersionAsOf(_version(reader)) if word in _VERSION else TimestampAsOf(_timestamp(reader))


def computed_timestamp(reader: Reader) -> TimestampAsOf | None:
    """Take `[FOR] TIMESTAMP AS OF expression`; None, and nothing is taken, for a version and for a literal."""
    start = reader.index
    reader.accept("FOR")
    if reader.choose(*_VERSION, *_TIMESTAMP) in _TIMESTAMP:
        reader.expect("AS", "OF")
        literal = reader.token.kind is Kind.STRING or isinstance(reader.token.value, date)
        if not literal or reader.peek().text in _ARITHMETIC:
            first = reader.index
            return TimestampAsOf(
                reader.cut("a timestamp", lambda at: at.at(",") or (at.index > first and _follows_operand(at)))
            )
    reader.index = start
    return None


def _follows_operand(reader: Reader) -> bool:
    """Return True for a word after a complete operand, such as an alias. Units of intervals belong to the operand."""
    before, token = reader.peek(-1), reader.token
    if not reader.at_name() or before.value == "INTERVAL" or token.value in _UNITS:
        return False
    return before.kind is not Kind.OPERATOR or before.text == ")"


_ARITHMETIC = ("+", "-", "*", "/", "%", "||", "::")
_FIELDS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_UNITS = (*_FIELDS, *(f"{field}S" for field in _FIELDS), "TO")


def _version(reader: Reader) -> int:
    token = reader.token
    if token.kind is Kind.STRING and (text := str(token.value).strip()).isdecimal():
        reader.index += 1
        return int(text)
    return reader.integer("the number of a version")


def _timestamp(reader: Reader) -> str | datetime:
    token = reader.token
    match token.value:
        case datetime() as value:
            reader.index += 1
            return value
        case date() as value:
            reader.index += 1
            return datetime.combine(value, time(), UTC)
    return reader.string("a timestamp in quotes")


def properties(reader: Reader) -> tuple[tuple[str, str], ...]:
    """Take properties in brackets: `('key' = 'value', other.key = 3)`; the equals sign may be left out."""
    reader.expect("(")
    found = [_property(reader)]
    while reader.accept(","):
        found.append(_property(reader))
    reader.expect(")")
    return tuple(found)


def property_key(reader: Reader) -> str:
    """Take the key of a property: a string, or a name whose parts are joined by dots."""
    if reader.token.kind is Kind.STRING:
        return reader.string()
    return ".".join(reader.path("the key of a property"))


def _property(reader: Reader) -> tuple[str, str]:
    key = property_key(reader)
    reader.accept("=") or reader.accept("==")
    token = reader.token
    if reader.at_any("TRUE", "FALSE"):
        reader.index += 1
        return key, token.text.lower()
    if token.kind is Kind.NUMBER:
        reader.index += 1
        return key, token.text
    return key, reader.string("a string, a number, TRUE or FALSE")
