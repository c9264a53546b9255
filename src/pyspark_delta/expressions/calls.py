"""The functions of predicates over Arrow arrays, by their SQL names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

_Value: TypeAlias = Any  # pa.Array | pa.Scalar


def call(name: str, arguments: list[_Value]) -> _Value:
    """Return the result of a function over arrays or scalars. Raises pa.ArrowInvalid if a result overflows."""
    return _CALLS[name](*arguments)


def _remainder(value: _Value, divisor: _Value) -> _Value:
    """Return the remainder of a division that rounds toward zero."""
    return pc.subtract(value, pc.multiply(pc.divide(value, divisor), divisor))


def _length(value: _Value) -> _Value:
    return pc.binary_length(value) if pa.types.is_binary(value.type) else pc.utf8_length(value)


def _substring(value: _Value, start: pa.Scalar, length: pa.Scalar) -> _Value:
    first = max(start.as_py() - 1, 0)
    return pc.utf8_slice_codeunits(value, first, first + max(length.as_py(), 0))


def _date_trunc(unit: pa.Scalar, value: _Value) -> _Value:
    return pc.floor_temporal(value, unit=unit.as_py())


def _int32(kernel: Callable[[_Value], _Value]) -> Callable[[_Value], _Value]:
    return lambda value: kernel(value).cast(pa.int32())


def _plus_millisecond(value: _Value) -> _Value:
    """Return the end of the millisecond of a truncated timestamp."""
    return pc.add(value, pa.scalar(1000, pa.duration("us")))


_CALLS: dict[str, Callable[..., _Value]] = {
    "add": pc.add_checked,
    "subtract": pc.subtract_checked,
    "multiply": pc.multiply_checked,
    "mod": _remainder,
    "abs": pc.abs_checked,
    "coalesce": pc.coalesce,
    "length": _length,
    "substring": _substring,
    "year": _int32(pc.year),
    "quarter": _int32(pc.quarter),
    "month": _int32(pc.month),
    "day": _int32(pc.day),
    "hour": _int32(pc.hour),
    "minute": _int32(pc.minute),
    "date_trunc": _date_trunc,
    "plus_millisecond": _plus_millisecond,
}
