"""The types of values of table properties: functions from text that raise ValueError for an illegal value."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

from pyspark_delta.protocol.intervals import parse_interval


def parse_boolean(text: str) -> bool:
    """Return true or false. Raises ValueError."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError(f"'{text}' must be true or false")


def integer_from(least: int) -> Callable[[str], int]:
    """Return a function that parses whole numbers from `least` on, and raises ValueError."""

    def parse(text: str) -> int:
        try:
            number = int(text.strip())
        except ValueError:
            raise ValueError(f"'{text}' is not a whole number") from None
        if number < least:
            raise ValueError(f"{number} is less than {least}")
        return number

    return parse


def optional_boolean(text: str) -> bool | None:
    """Return true or false, for a property without a default. Raises ValueError."""
    return parse_boolean(text)


def any_text(text: str) -> str | None:
    """Return the text."""
    return text


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a function that parses one of these values regardless of case, and raises ValueError."""

    def parse(text: str) -> str:
        for value in allowed:
            if value.casefold() == text.strip().casefold():
                return value
        raise ValueError(f"'{text}' is not one of {', '.join(allowed)}")

    return parse


def auto_compact(text: str) -> str | None:
    """Return true, false, auto or legacy. Raises ValueError."""
    return one_of("true", "false", "auto", "legacy")(text)


def parse_size(text: str) -> int:
    """Return a size in bytes, of text such as `134217728` or `128mb`. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)b?\s*", text.lower())
    if match is None:
        raise ValueError(f"'{text}' is not a size in bytes such as 134217728 or 128mb")
    return int(match[1]) << 10 * " kmgt".index(match[2] or " ")


def optional_interval(text: str) -> timedelta | None:
    """Return an interval, for a property without a default. Raises ValueError."""
    return parse_interval(text)


def optional_integer(text: str) -> int | None:
    """Return a whole number from 0 on, for a property without a default. Raises ValueError."""
    return integer_from(0)(text)


def column_names(text: str) -> tuple[str, ...] | None:
    """Return column names that are separated by commas, as they are written."""
    return tuple(name.strip() for name in re.findall(r"(?:`[^`]*`|[^,`])+", text) if name.strip())


def complete_names(text: str) -> None:
    """Raise ValueError for a comma without a name."""
    names = re.sub(r"`[^`]*`", "name", text).split(",")
    if len(names) > 1 and not all(name.strip() for name in names):
        raise ValueError(f"'{text}' has a comma without a name")


def formats(text: str) -> None:
    """Raise ValueError for anything but a list of different known formats without spaces; it may be empty."""
    names = text.split(",") if text else []
    if len(set(names)) < len(names) or not {"iceberg", "hudi"}.issuperset(names):
        raise ValueError(f"'{text}' is not a list of different formats of hudi and iceberg, such as 'hudi,iceberg'")


def parquet_version(text: str) -> str:
    """Return a version of the Parquet format. Raises ValueError."""
    if text == "1.0.0" or re.fullmatch(r"2\.\d+\.\d+", text):
        return text
    raise ValueError(f"'{text}' is neither 1.0.0 nor 2.x.y")


_CODECS = one_of("none", "uncompressed", "snappy", "gzip", "lz4", "lz4_raw", "zstd")


def codec(text: str) -> str | None:
    """Return the name of a compression. Raises ValueError."""
    return _CODECS(text)
