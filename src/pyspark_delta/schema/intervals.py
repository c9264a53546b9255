"""Intervals as ANSI literals: `INTERVAL '1-2' YEAR TO MONTH`, `INTERVAL '3 04:05:06.000007' DAY TO SECOND`.

Year-month intervals are counted in months (32 bits), day-time intervals in microseconds (64 bits).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import YEAR_MONTH_INTERVAL, DataType

_LITERAL = re.compile(
    r"\s*interval\s*(?P<outer>[+-]?)\s*'\s*(?P<inner>[+-]?)(?P<body>[^']*?)\s*'\s*"
    r"(?P<first>year|month|day|hour|minute|second)(?:\s+to\s+(?P<last>month|hour|minute|second))?\s*",
    re.IGNORECASE,
)
# Unit, its size in months or microseconds, how many of it make one of the unit before, the separator before it.
_YEAR_MONTH = (("year", 12, None, ""), ("month", 1, 12, "-"))
_DAY_TIME = (
    ("day", 86_400_000_000, None, ""),
    ("hour", 3_600_000_000, 24, r"\s+"),
    ("minute", 60_000_000, 60, ":"),
    ("second", 1_000_000, 60, ":"),
)


def parse_intervals(text: pa.Array, data_type: DataType) -> pa.Array:
    """Return distinct literals as values of `data_type`; null for invalid or out-of-range text."""
    units, storage = (_YEAR_MONTH, pa.int32()) if data_type == YEAR_MONTH_INTERVAL else (_DAY_TIME, pa.int64())
    limit = 2 ** (storage.bit_width - 1)
    values = [_amount(literal, units) for literal in text.to_pylist()]
    in_range = [value if value is not None and -limit <= value < limit else None for value in values]
    return pa.array(in_range, storage).cast(to_arrow(data_type))


def interval_text(values: pa.Array, data_type: DataType) -> pa.Array:
    """Return intervals as literals that name the first and last unit, as Spark writes them."""
    if data_type == YEAR_MONTH_INTERVAL:
        months = np.asarray(values.cast(pa.int64()))
        size = np.abs(months)
        body = pc.binary_join_element_wise(_digits(size // 12), _digits(size % 12), "-")
        return _literal(months < 0, body, "YEAR TO MONTH")
    micros = np.asarray(values.cast(pa.int64()))
    size = np.abs(micros).view(np.uint64)  # the absolute value of the smallest value does not fit in 64 bits
    seconds = size // 1_000_000
    clock = pc.binary_join_element_wise(
        _digits(seconds // 3600 % 24, 2), _digits(seconds // 60 % 60, 2), _digits(seconds % 60, 2), ":"
    )
    fraction = pc.utf8_rtrim(_digits(size % 1_000_000, 6), "0")
    fraction = pc.if_else(pc.equal(fraction, ""), "", pc.binary_join_element_wise("", fraction, "."))
    body = pc.binary_join_element_wise(
        _digits(seconds // 86_400), pc.binary_join_element_wise(clock, fraction, ""), " "
    )
    return _literal(micros < 0, body, "DAY TO SECOND")


def _amount(literal: str, units: tuple[tuple[str, int, int | None, str], ...]) -> int | None:
    match = _LITERAL.fullmatch(literal)
    if match is None:
        return None
    names = [unit[0] for unit in units]
    first, last = match["first"].lower(), (match["last"] or match["first"]).lower()
    if first not in names or last not in names or names.index(last) < names.index(first):
        return None
    wanted = units[names.index(first) : names.index(last) + 1]
    pattern = "".join(
        (separator if position else "") + r"(\d{1,19})" for position, (_, _, _, separator) in enumerate(wanted)
    )
    parts = re.fullmatch(pattern + (r"(?:\.(\d{1,9}))?" if last == "second" else "()"), match["body"])
    if parts is None:
        return None
    total = int((parts[len(wanted) + 1] or "0").ljust(6, "0")[:6]) if last == "second" else 0
    for position, (digits, (_, size, maximum, _)) in enumerate(zip(parts.groups(), wanted, strict=False)):
        if position and maximum is not None and int(digits) >= maximum:
            return None
        total += int(digits) * size
    return -total if (match["outer"] == "-") != (match["inner"] == "-") else total


def _literal(negative: np.ndarray[Any, Any], body: pa.Array, units: str) -> pa.Array:
    sign = pc.if_else(pa.array(negative), "-", "")
    return pc.binary_join_element_wise("INTERVAL '", sign, body, f"' {units}", "")


def _digits(numbers: np.ndarray[Any, Any], width: int = 1) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")
