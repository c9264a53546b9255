"""Partition value serialization: text of the log to typed values and back (C416-C425).

The empty string is null for every type. Zone-less timestamps are in the zone of the writing system, which the log does
not record: it is a parameter. Binary values are the UTF-8 bytes of their text.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import CorruptLogError, InvalidOperationError, InvalidOptionError
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.calendar import MICROS_PER_DAY, CalendarText, Integers, date_text, time_text
from pyspark_delta.schema.intervals import interval_text, parse_intervals
from pyspark_delta.schema.time_zones import instants
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    YEAR_MONTH_INTERVAL,
    DataType,
    DecimalType,
)

# The name of Hive's directory of nulls. Tables converted from such directories use it for null, as other readers do;
# but a string may be equal to it.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_FAR = 2**62  # microseconds

# Each parser receives distinct strings without nulls, and returns null for invalid ones.
_Parser = Callable[[pa.Array, DataType, str], pa.Array]


def parse_partition_column(
    text: pa.Array | pa.ChunkedArray, data_type: DataType, time_zone: str = "UTC", *, column: str = "?", table: str = ""
) -> pa.Array:
    """Return the values of one partition column, one per file, from the text in the log.

    `time_zone` is the zone of timestamps without one. Raises CorruptLogError, naming `column`, `table` and the value,
    if a string is not a value of the type, and InvalidOptionError for an unknown zone.
    """
    arrow_type = to_arrow(data_type)
    of_table = f" of table '{table}'" if table else ""
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    text = text.cast(pa.string())
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    if data_type == STRING:
        return text
    if data_type == VOID:
        return pa.nulls(len(text))
    parser = _parser_of(data_type)
    if parser is None:
        raise CorruptLogError(
            f"Column '{column}'{of_table} of type {data_type} cannot be a partition column.", path=table, column=column
        )
    encoded = text.dictionary_encode()
    distinct = encoded.dictionary
    values = parser(distinct, data_type, time_zone)
    if values.null_count:
        wrong = distinct.filter(pc.and_(values.is_null(), pc.not_equal(distinct, HIVE_NULL))).to_pylist()
        if wrong:
            raise CorruptLogError(
                f"The partition value {wrong[0]!r} of column '{column}'{of_table} is not of type {data_type}. "
                "The log or the schema is damaged, or was written by a faulty writer.",
                path=table,
                column=column,
                value=wrong[0],
            )
    return values.cast(arrow_type).take(encoded.indices)


def serialize_partition_column(values: pa.Array | pa.ChunkedArray, data_type: DataType) -> pa.Array:
    """Return the text that the log stores for each value: null for null and for the empty string (C416, C422).

    Raises InvalidOperationError for a string or binary value that is not UTF-8, because the text could not represent it
    (C425).
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if data_type == VOID:
        return pa.nulls(len(values), pa.string())
    values = values.cast(to_arrow(data_type))
    if data_type == STRING:
        text = _valid(values)
    else:
        encoded = values.dictionary_encode()
        text = _to_strings(encoded.dictionary, data_type).take(encoded.indices)
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def has_empty_values(data_type: DataType) -> bool:
    """True if values of the type may be empty, which is null in a partition column (C416)."""
    return data_type in (STRING, BINARY)


def null_empty_values(values: pa.Array) -> pa.Array:
    """Return the values of a string or binary partition column as readers get them: null for empty ones (C416)."""
    empty = pc.equal(pc.binary_length(values), 0)
    return pc.if_else(empty, pa.scalar(None, values.type), values) if pc.any(empty).as_py() else values


def serialize_partition_value(value: Any, data_type: DataType) -> str | None:
    """Return the text of one value, given as the Python value that pyarrow uses for the type."""
    result: str | None = serialize_partition_column(pa.array([value], to_arrow(data_type)), data_type)[0].as_py()
    return result


# ------------------------------------------------------------------------------------------------------ parsing
def _parser_of(data_type: DataType) -> _Parser | None:
    if isinstance(data_type, DecimalType):
        return _parse_decimal
    return _PARSERS.get(data_type)


def _parse_integer(text: pa.Array, data_type: DataType, _: str) -> pa.Array:
    target = to_arrow(data_type)
    try:
        return text.cast(target)
    except pa.ArrowInvalid:  # spaces, signs, exponents, or no number at all
        return pa.array([_integral(value, target.bit_width) for value in text.to_pylist()], target)


def _parse_decimal(text: pa.Array, data_type: DataType, _: str) -> pa.Array:
    target = to_arrow(data_type)
    try:
        return text.cast(target)
    except pa.ArrowInvalid:
        return pa.array([_scaled(value, target.precision, target.scale) for value in text.to_pylist()], target)


def _parse_floating(text: pa.Array, data_type: DataType, _: str) -> pa.Array:
    target = to_arrow(data_type)
    plain = pc.utf8_ltrim(pc.utf8_trim_whitespace(text), "+")
    numeric = pc.match_substring_regex(
        plain, r"^(?:-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-?inf(?:inity)?|nan)$", ignore_case=True
    )
    return pc.if_else(numeric, plain, pa.scalar(None, pa.string())).cast(target)


def _parse_boolean(text: pa.Array, _: DataType, __: str) -> pa.Array:
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    true = pc.is_in(lower, pa.array(["true", "t", "yes", "y", "1"]))
    false = pc.is_in(lower, pa.array(["false", "f", "no", "n", "0"]))
    return pc.if_else(true, True, pc.if_else(false, False, pa.scalar(None, pa.bool_())))


def _parse_binary(text: pa.Array, _: DataType, __: str) -> pa.Array:
    return text.cast(pa.binary())


def _parse_date(text: pa.Array, _: DataType, __: str) -> pa.Array:
    try:
        return text.cast(pa.date32())  # accepts only yyyy-MM-dd, the form that all writers use
    except pa.ArrowInvalid:
        parsed = CalendarText(text)
    fits = parsed.is_date
    days = np.where(fits, parsed.days, 0).astype(np.int32)
    return pa.array(days, mask=~fits).cast(pa.date32())


def _parse_timestamp_ntz(text: pa.Array, _: DataType, __: str) -> pa.Array:
    parsed = CalendarText(text)
    micros, fits = parsed.all_local_micros()
    return pa.array(micros, mask=~(parsed.valid & fits)).cast(pa.timestamp("us"))


def _parse_timestamp(text: pa.Array, _: DataType, time_zone: str) -> pa.Array:
    parsed = CalendarText(text)
    local, fits = parsed.all_local_micros()
    if parsed.zoned.all():
        micros = local - parsed.offset
    else:
        micros = np.where(parsed.zoned, local - parsed.offset, _instants(local, time_zone))
    wrapped = ((local ^ micros) < 0) & ((local > _FAR) | (local < -_FAR))  # the offset made it overflow 64 bits
    return pa.array(micros, mask=~(parsed.valid & fits & ~wrapped)).cast(pa.timestamp("us", tz="UTC"))


def _instants(local: Integers, time_zone: str) -> Integers:
    try:
        return instants(local, time_zone)
    except pa.ArrowInvalid as error:
        raise InvalidOptionError(f"'{time_zone}' is not a known time zone: {error}", time_zone=time_zone) from None


def _parse_interval(text: pa.Array, data_type: DataType, _: str) -> pa.Array:
    return parse_intervals(text, data_type)


_PARSERS: dict[DataType, _Parser] = {
    BYTE: _parse_integer,
    SHORT: _parse_integer,
    INTEGER: _parse_integer,
    LONG: _parse_integer,
    FLOAT: _parse_floating,
    DOUBLE: _parse_floating,
    BOOLEAN: _parse_boolean,
    BINARY: _parse_binary,
    DATE: _parse_date,
    TIMESTAMP: _parse_timestamp,
    TIMESTAMP_NTZ: _parse_timestamp_ntz,
    YEAR_MONTH_INTERVAL: _parse_interval,
    DAY_TIME_INTERVAL: _parse_interval,
}

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?")
_EXACT = decimal.Context(prec=5000, traps=[decimal.InvalidOperation])


def _number(text: str) -> decimal.Decimal | None:
    text = text.strip()
    return _EXACT.create_decimal(text) if _NUMBER.fullmatch(text) else None


def _integral(text: str, bits: int) -> int | None:
    number = _number(text)
    if number is None or number != number.to_integral_value(context=_EXACT):
        return None
    value = int(number)
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _scaled(text: str, precision: int, scale: int) -> decimal.Decimal | None:
    number = _number(text)
    if number is None:
        return None
    if abs(number.adjusted()) > 5000:
        return None if number else decimal.Decimal(0)
    scaled = number.scaleb(scale, _EXACT)
    if scaled != scaled.to_integral_value(context=_EXACT) or scaled.copy_abs() >= 10**precision:
        return None
    return number.quantize(decimal.Decimal(1).scaleb(-scale), context=_EXACT)


# -------------------------------------------------------------------------------------------------- serializing
def _to_strings(values: pa.Array, data_type: DataType) -> pa.Array:
    """Return distinct values as strings."""
    if isinstance(data_type, DecimalType):
        return pa.array([format(value, "f") for value in values.to_pylist()], pa.string())
    if data_type in (FLOAT, DOUBLE):
        return pa.array([_java_text(value) for value in values.to_numpy(zero_copy_only=False)], pa.string())
    if data_type == DATE:
        return date_text(np.asarray(values.cast(pa.int32()), dtype=np.int64))
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return _timestamp_text(np.asarray(values.cast(pa.int64())), zoned=data_type == TIMESTAMP)
    if data_type in (YEAR_MONTH_INTERVAL, DAY_TIME_INTERVAL):
        return interval_text(values, data_type)
    if data_type == BINARY:
        return _binary_text(values)
    if _parser_of(data_type) is None:
        raise InvalidOperationError(f"A column of type {data_type} cannot be a partition column.")
    return values.cast(pa.string())


def _timestamp_text(micros: Integers, *, zoned: bool) -> pa.Array:
    date, time = date_text(micros // MICROS_PER_DAY), time_text(micros % MICROS_PER_DAY)
    if zoned:
        return pc.binary_join_element_wise(pc.binary_join_element_wise(date, time, "T"), "Z", "")
    return pc.binary_join_element_wise(date, pc.utf8_rtrim(pc.utf8_rtrim(time, "0"), "."), " ")


def _binary_text(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        raise InvalidOperationError(
            "A binary partition value must be valid UTF-8: the log stores it as text. Partition by another column."
        ) from None


def _valid(values: pa.Array) -> pa.Array:
    """Return the strings. Raises InvalidOperationError for invalid UTF-8, which casts of binary give in Spark."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raise InvalidOperationError(
            "A string in a partition column is not valid UTF-8, so the log cannot store it. Nothing was committed. "
            "Filter these rows, or make the strings valid, for example with make_valid_utf8 in SQL."
        ) from None
    return values


def _java_text(value: np.floating[Any]) -> str:
    """Return the shortest text that parses to the same number, in Java's notation (1.0E10, Infinity)."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    mantissa, exponent = np.format_float_scientific(value, unique=True, trim="0").split("e")
    power = int(exponent)
    if value == 0 or -3 <= power < 7:
        return str(np.format_float_positional(value, unique=True, trim="0"))
    return f"{mantissa}E{power}"
