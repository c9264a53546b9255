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
