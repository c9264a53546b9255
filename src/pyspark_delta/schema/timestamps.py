"""Points in time as users write them: text, datetime, or milliseconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyspark_delta.errors import InvalidOptionError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEEDS_SEPARATOR = re.compile(r"\d{4}(-\d{1,2}){0,2}([ T].*)?")
_PATH_SUFFIX = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\d{3})")


def parse_timestamp(value: str | datetime | date | int, *, time_zone: str = "UTC") -> int:
    """The point in time in milliseconds since the epoch, rounded down.

    Text is `yyyy[-M[-d]]` or `yyyy-MM-dd HH:mm[:ss[.ffffff]]`, with `T` in place of the space and with a zone (`Z`,
    `+01:00`) if wanted; without a zone it is in `time_zone`, as is a naive datetime. Raises InvalidOptionError.
    """
    if isinstance(value, bool):
        raise InvalidOptionError(f"A timestamp is a text, a datetime or milliseconds, found {value!r}.")
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        value = _parse_text(value)
    elif not isinstance(value, datetime):
        if not isinstance(value, date):
            raise InvalidOptionError(f"A timestamp is a text, a datetime or milliseconds, found {value!r}.")
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is None:
        value = value.replace(tzinfo=_zone(time_zone))
    return (value - _EPOCH) // timedelta(milliseconds=1)


def parse_path_suffix(text: str, *, time_zone: str = "UTC") -> int:
    """The time of a path suffix `@yyyyMMddHHmmssSSS`, in milliseconds since the epoch. Raises InvalidOptionError."""
    digits = _PATH_SUFFIX.fullmatch(text)
    if digits is None:
        raise InvalidOptionError(f"A time in a path is written @yyyyMMddHHmmssSSS, found '@{text}'.")
    year, month, day, hour, minute, second, millisecond = (int(d) for d in digits.groups())
    try:
        moment = datetime(year, month, day, hour, minute, second, millisecond * 1000, tzinfo=_zone(time_zone))
    except ValueError as error:
        raise InvalidOptionError(f"'@{text}' is not a time: {error}.") from None
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _parse_text(text: str) -> datetime:
    stripped = text.strip()
    if not _NEEDS_SEPARATOR.fullmatch(stripped):
        raise _not_a_timestamp(text)
    day, _, time = stripped.replace("T", " ", 1).partition(" ")
    numbers = (*(int(part) for part in day.split("-")), 1, 1)[:3]
    try:
        start = datetime(*numbers)
        return datetime.fromisoformat(f"{start.date()}T{time.strip()}") if time.strip() else start
    except ValueError:
        raise _not_a_timestamp(text) from None


def _not_a_timestamp(text: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"'{text}' is not a timestamp; write it as 2024-01-31, 2024-01-31 12:30:00 or 2024-01-31T12:30:00Z.",
        error_class="DELTA_TIMESTAMP_INVALID",
    )


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        try:
            return (
                datetime.fromisoformat(f"2000-01-01T00:00:00{name.removeprefix('GMT').removeprefix('UTC')}").tzinfo
                or UTC
            )
        except ValueError:
            raise InvalidOptionError(f"The time zone '{name}' is not known.") from None
