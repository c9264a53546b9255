"""Per-file statistics as JSON, from the footer of a file just written (section Per-file Statistics; C404-C415)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.schema.types import DOUBLE, FLOAT, DecimalType, PrimitiveType
from pyspark_delta.stats.indexed_columns import DEFAULT_STRING_PREFIX, StatsColumn
from pyspark_delta.stats.observe import Observations

Bounds: TypeAlias = Callable[[Any, Any], tuple[Any, Any]]
"""A function of the smallest and the largest value, as `bounds_of` returns it."""

_LAST_CODE_POINT = "\U0010ffff"
_EPOCH_DATE = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def collect_stats(
    footer: pq.FileMetaData,
    columns: Sequence[StatsColumn],
    observations: Observations,
    *,
    string_prefix: int = DEFAULT_STRING_PREFIX,
) -> str:
    """Return the `stats` of an add action: numRecords, minValues, maxValues, nullCount, tightBounds.

    A bound is left out if no safe value is known: readers treat missing values as unknown (C414). Strings are
    truncated to `string_prefix` characters, a truncated maximum is padded upwards; timestamps have milliseconds,
    rounded outwards (C412).
    """
    minimum: dict[str, Any] = {}
    maximum: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for column in columns:
        if column.leaf is None:
            put_at(nulls, column.path, observations.null_counts.get(column.path, 0))
            continue
        null_count, low, high = _footer_column(footer, column, column.leaf, observations)
        put_at(nulls, column.path, null_count)
        if column.has_bounds and low is not None and high is not None:
            lower, upper = stored_bounds(column, low, high, string_prefix)
            put_at(minimum, column.path, lower)
            if column.path not in observations.nan:  # which is larger than any number
                put_at(maximum, column.path, upper)
    stats = {
        "numRecords": footer.num_rows,
        "minValues": minimum,
        "maxValues": maximum,
        "nullCount": nulls,
        "tightBounds": True,
    }
    return orjson.dumps(stats).decode()


def stored_bounds(column: StatsColumn, low: Any, high: Any, string_prefix: int) -> tuple[Any, Any]:
    """Return the smallest and the largest value of a column as `bounds_of` does."""
    return bounds_of(column, string_prefix)(low, high)


def bounds_of(column: StatsColumn, string_prefix: int) -> Bounds:
    """Return a function of the smallest and the largest value of a column, in physical form.

    It returns them as minValues and maxValues hold them; None for one that cannot be given safely. Physical values are
    UTF-8 bytes for texts, days for dates, microseconds for timestamps, and unscaled integers for decimals.
    """
    match column.type:
        case PrimitiveType("string"):
            return lambda low, high: (_text(low, string_prefix), _padded(high, string_prefix))
        case PrimitiveType("timestamp"):
            return lambda low, high: (_instant(low // 1000, "Z"), _instant(-(-high // 1000), "Z"))
        case PrimitiveType("timestamp_ntz"):
            return lambda low, high: (_instant(low // 1000, ""), _instant(-(-high // 1000), ""))
        case PrimitiveType("float" | "double"):
            return lambda low, high: (_finite(low), _finite(high))
        case PrimitiveType("date"):
            return lambda low, high: (_day(low), _day(high))
        case DecimalType(_, scale):
            return lambda low, high: (_decimal(low, scale), _decimal(high, scale))
        case _:
            return lambda low, high: (low, high)


def physical_value(value: pa.Scalar) -> Any:
    """Return a bound in the form that `stored_bounds` takes; None for null."""
    if not value.is_valid:
        return None
    if pa.types.is_string(value.type):
        return value.as_buffer().to_pybytes()
    if pa.types.is_date32(value.type):
        return value.cast(pa.int32()).as_py()
    if pa.types.is_timestamp(value.type):
        return value.cast(pa.int64()).as_py()
    if pa.types.is_decimal(value.type):
        sign, digits, _ = value.as_py().as_tuple()
        return int("".join(map(str, digits))) * (-1 if sign else 1)
    return value.as_py()


def _footer_column(
    footer: pq.FileMetaData, column: StatsColumn, leaf: int, observations: Observations
) -> tuple[int | None, Any, Any]:
    """Return null count and physical bounds over all row groups; None for values that some row group lacks."""
    if column.type in (FLOAT, DOUBLE):
        low, high = observations.ranges.get(column.path, (None, None))
        return observations.null_counts.get(column.path, 0), low, high
    nulls: int | None = 0
    lows: list[Any] = []
    highs: list[Any] = []
    known = True
    for number in range(footer.num_row_groups):
        chunk = footer.row_group(number).column(leaf)
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None, None, None
        nulls = None if nulls is None else nulls + statistics.null_count
        if statistics.has_min_max:
            lows.append(_ordered(column, statistics.min_raw))
            highs.append(_ordered(column, statistics.max_raw))
        elif bounds := observations.bounds.get((number, leaf)):
            lows.append(bounds[0].encode())
            highs.append(bounds[1].encode())
        elif statistics.null_count < chunk.num_values:
            known = False
    return (nulls, min(lows), max(highs)) if known and lows else (nulls, None, None)


def _ordered(column: StatsColumn, value: Any) -> Any:
    """Return the physical value in a form that sorts as the type does: large decimals are signed big-endian bytes."""
    if isinstance(column.type, DecimalType) and isinstance(value, bytes):
        return int.from_bytes(value, "big", signed=True)
    return value


def _finite(value: float) -> float | None:
    """Return a number; None for infinity, which JSON does not have."""
    return value if value not in (float("inf"), float("-inf")) else None


def _decimal(unscaled: int, scale: int) -> orjson.Fragment:
    return orjson.Fragment(_decimal_text(unscaled, scale))


def _text(value: bytes, string_prefix: int) -> str | None:
    try:
        return value.decode()[:string_prefix]
    except UnicodeDecodeError:
        return None


def _padded(value: bytes, string_prefix: int) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    if len(text) <= string_prefix:
        return text
    end = string_prefix
    while end < len(text) and text[end] == _LAST_CODE_POINT:
        end += 1
    # no string is greater than one whose last code points are the highest
    return text[:end] + _LAST_CODE_POINT


def _day(days: int) -> str | None:
    try:
        return (_EPOCH_DATE + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def _instant(milliseconds: int, zone: str) -> str | None:
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone


def _decimal_text(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def put_at(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set the value at a path of nested objects; None is left out."""
    if value is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value
