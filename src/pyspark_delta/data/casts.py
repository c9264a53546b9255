"""Conversion of one leaf of a data file to its Delta type: physical forms (C436-C443) and type widening.

Illegal pairs of types are found before any row is read. A legal conversion can still fail for a value that does not
fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.schema.arrow import to_arrow
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
    YEAR_MONTH_INTERVAL,
    DataType,
    DecimalType,
)

Conversion = Callable[[pa.Array], pa.Array]

_SMALL_INTEGERS = frozenset([pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()])  # exact in 32 signed bits
_INTEGERS = _SMALL_INTEGERS | {pa.int64(), pa.uint32(), pa.uint64()}
# The maximum digits of each type. 32-bit and 64-bit integers are also read as decimals with one digit less.
_INTEGER_DIGITS = {
    pa.int8(): 3,
    pa.uint8(): 3,
    pa.int16(): 5,
    pa.uint16(): 5,
    pa.int32(): 10,
    pa.uint32(): 10,
    pa.int64(): 19,
    pa.uint64(): 20,
}
_BINARIES = frozenset([pa.binary(), pa.large_binary(), pa.binary_view()])
_STRINGS = frozenset([pa.string(), pa.large_string(), pa.string_view()])


def conversion(file_type: pa.DataType, data_type: DataType) -> Conversion | None:
    """Return the conversion of values of `file_type` to `data_type`; None if there is no legal one.

    The conversion raises pa.ArrowInvalid for a value that does not fit.
    """
    target = to_arrow(data_type)
    if file_type == target:
        return _same
    if isinstance(file_type, pa.BaseExtensionType):
        return _after(_storage, conversion(file_type.storage_type, data_type))
    if pa.types.is_dictionary(file_type):
        return _after(_decode_dictionary, conversion(file_type.value_type, data_type))
    if pa.types.is_run_end_encoded(file_type):
        return _after(pc.run_end_decode, conversion(file_type.value_type, data_type))
    if isinstance(data_type, DecimalType):
        return _to_decimal(file_type, data_type)
    rule = _RULES.get(data_type)
    return rule(file_type, target) if rule is not None else None


def _after(first: Conversion, then: Conversion | None) -> Conversion | None:
    return None if then is None else lambda array: then(first(array))


def _storage(array: pa.Array) -> pa.Array:
    return array.storage


def _decode_dictionary(array: pa.Array) -> pa.Array:
    return array.dictionary_decode()


def _same(array: pa.Array) -> pa.Array:
    return array


def _cast_to(target: pa.DataType) -> Conversion:
    return lambda array: array.cast(target)


def _from(*accepted: Any) -> Callable[[pa.DataType, pa.DataType], Conversion | None]:
    types = frozenset(accepted)
    return lambda file_type, target: _cast_to(target) if file_type in types else None


def _to_text(file_type: pa.DataType, target: pa.DataType) -> Conversion | None:
    if file_type in _BINARIES or file_type in _STRINGS:
        return _cast_to(target)
    if pa.types.is_fixed_size_binary(file_type):
        return lambda array: array.cast(pa.binary()).cast(target)
    return None


def _to_timestamp(file_type: pa.DataType, target: pa.DataType) -> Conversion | None:
    """Return the conversion to a timestamp. It keeps the microseconds and ignores the zone; INT96 has none."""
    if pa.types.is_date32(file_type) and target.tz is None:
        return _cast_to(target)  # widening: midnight
    if not pa.types.is_timestamp(file_type):
        return None
    if file_type.unit == "us":
        return lambda array: array.view(target)
    if file_type.unit == "ns":
        return lambda array: _floor_nanos(array).view(target)
    return lambda array: array.cast(pa.timestamp("us", tz=file_type.tz)).view(target)


def _floor_nanos(array: pa.Array) -> pa.Array:
    nanos = np.asarray(array.view(pa.int64()).fill_null(0))
    mask = np.asarray(array.is_null()) if array.null_count else None
    return pa.array(nanos // 1000, mask=mask)


def _to_decimal(file_type: pa.DataType, data_type: DecimalType) -> Conversion | None:
    target = to_arrow(data_type)
    whole_digits = data_type.precision - data_type.scale
    if pa.types.is_decimal(file_type):
        fits = file_type.scale <= data_type.scale and file_type.precision - file_type.scale <= whole_digits
        return _cast_to(target) if fits else None
    if digits := _INTEGER_DIGITS.get(file_type):
        return _cast_to_wide_decimal(target, digits)
    return None


def _cast_to_wide_decimal(target: pa.DataType, digits: int) -> Conversion | None:
    if target.precision - target.scale >= digits:
        return _cast_to(target)
    if target.precision - target.scale < max(digits - 1, 9):
        return None  # every value is checked below, but only a file without annotations may declare so few digits
    return lambda array: array.cast(pa.decimal128(digits + target.scale, target.scale)).cast(target)


_RULES: dict[DataType, Callable[[pa.DataType, pa.DataType], Conversion | None]] = {
    STRING: _to_text,
    BINARY: _to_text,
    BYTE: _from(*_SMALL_INTEGERS),
    SHORT: _from(*_SMALL_INTEGERS),
    INTEGER: _from(*_SMALL_INTEGERS),
    LONG: _from(*_INTEGERS),
    FLOAT: _from(pa.float16(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16()),  # which a float represents exactly
    DOUBLE: _from(pa.float16(), pa.float32(), *_SMALL_INTEGERS),
    BOOLEAN: _from(),
    DATE: _from(pa.date64()),
    TIMESTAMP: _to_timestamp,
    TIMESTAMP_NTZ: _to_timestamp,
    YEAR_MONTH_INTERVAL: _from(),
    DAY_TIME_INTERVAL: _from(pa.int64(), *(pa.duration(unit) for unit in ("s", "ms"))),
}
