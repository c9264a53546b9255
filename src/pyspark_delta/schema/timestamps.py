"""Points in time in user input: text, datetime, or milliseconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyspark_delta.errors import InvalidOptionError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r" ?(?P<zone>[A-Za-z+-][\w:+/-]*)?)?)?)?",
    re.ASCII,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>[0-5]\d))?", re.ASCII)
_FARTHEST = timedelta(hours=18)  # offset, as in Java
_PATH_SUFFIX = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\d{3})")


def parse_timestamp(value: str | datetime | date | int, *, time_zone: str = "UTC") -> int:
    """Return the point in time in milliseconds since the epoch, rounded down.

    Text is `yyyy[-M[-d]]` or `yyyy-M-d H[:m[:s[.ffffff]]]`, optionally with `T` in place of the space and with a zone
    (`Z`, `+01:00`, `Europe/Paris`); without one it is in `time_zone`, as is a naive datetime. Spark casts the same
    forms to a timestamp. Raises InvalidOptionError.
    """
    if isinstance(value, bool):
        raise InvalidOptionError(
            f"Expected a timestamp as a string, a datetime or milliseconds since the epoch, found {value!r}."
        )
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        value = _parse_text(value)
    elif not isinstance(value, datetime):
        if not isinstance(value, date):
            raise InvalidOptionError(
                f"Expected a timestamp as a string, a datetime or milliseconds since the epoch, found {value!r}."
            )
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is None:
        value = value.replace(tzinfo=_zone(time_zone))
    return (value - _EPOCH) // timedelta(milliseconds=1)


def utc_datetime(milliseconds: int | None) -> datetime | None:
    """Return milliseconds since the epoch as a datetime; None for None, or if the year is not from 1 to 9999."""
    try:
        return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None


def parse_path_suffix(text: str, *, time_zone: str = "UTC") -> int:
    """Return the timestamp of a path suffix `@yyyyMMddHHmmssSSS`, in milliseconds since the epoch.

    Raises InvalidOptionError.
    """
    digits = _PATH_SUFFIX.fullmatch(text)
    if digits is None:
        raise InvalidOptionError(f"A timestamp in a path has the form @yyyyMMddHHmmssSSS, found '@{text}'.")
    year, month, day, hour, minute, second, millisecond = (int(d) for d in digits.groups())
    try:
        moment = datetime(year, month, day, hour, minute, second, millisecond * 1000, tzinfo=_zone(time_zone))
    except ValueError as error:
        raise InvalidOptionError(f"'@{text}' is not a valid timestamp: {error}.") from None
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _parse_text(text: str) -> datetime:
    parts = _TEXT.fullmatch(text.strip())
    if parts is None:
        raise _not_a_timestamp(text)
    year, month, day = int(parts["year"]), int(parts["month"] or 1), int(parts["day"] or 1)
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    microsecond = int((parts["fraction"] or "0").ljust(6, "0")[:6])
    zone = None if parts["zone"] is None else _zone(parts["zone"])
    try:
        return datetime(year, month, day, hour, minute, second, microsecond, tzinfo=zone)
    except ValueError:
        raise _not_a_timestamp(text) from None


def fixed_offset(time_zone: str) -> timedelta | None:
    """Return the offset from UTC that is the name of a zone, in one of Spark's spellings; None for any other name."""
    found = _OFFSET.fullmatch(time_zone)
    if found is None:
        return None
    distance = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
    if distance > _FARTHEST:
        return None
    return -distance if found["sign"] == "-" else distance


def _not_a_timestamp(text: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"'{text}' is not a timestamp; use a form such as 2024-01-31, 2024-01-31 12:30:00 or 2024-01-31T12:30:00Z.",
        error_class="DELTA_TIMESTAMP_INVALID",
    )


def _zone(name: str) -> tzinfo:
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = fixed_offset(name)
    if offset is not None:
        return timezone(offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidOptionError(
            f"The time zone '{name}' is unknown. Use a name such as 'Europe/Paris', or an offset."
        ) from None
