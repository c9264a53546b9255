"""Rounding, signs, roots and bits of numbers."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions.functions.signature import Function, Kernel, Site, Values, by_array, common, takes
from pyspark_delta.expressions.literals import INTEGRAL_BITS, MAX_DECIMAL_PRECISION
from pyspark_delta.expressions.tree import Call, Expression, Literal, type_of
from pyspark_delta.schema.types import BOOLEAN, BYTE, DOUBLE, INTEGER, LONG, SHORT, DataType, DecimalType


# --------------------------------------------------------------------------------------------------------- binding
def _whole(site: Site) -> Expression:
    """Bind floor and ceil: of doubles to long, of decimals to a decimal without a fraction."""
    (operand,) = site.arguments
    source = type_of(operand)
    if source in INTEGRAL_BITS:
        return site.typed(0, LONG)
    if source == DOUBLE:
        return site.call(operand, to=LONG)
    if isinstance(source, DecimalType):
        precision = source.precision if source.scale == 0 else source.precision - source.scale + 1
        return site.call(operand, to=DecimalType(precision, 0))
    raise site.refusal(f"the type {source}")


def _round(site: Site) -> Expression:
    digits = site.constant(1, int) if len(site.arguments) > 1 else 0
    operand = site.arguments[0]
    source = type_of(operand)
    if digits is None or digits < 0:
        raise site.refusal("this number of digits")
    if source in INTEGRAL_BITS:
        return operand
    if source == DOUBLE and digits == 0:
        return site.call(operand, to=DOUBLE)
    if isinstance(source, DecimalType):
        scale = min(source.scale, digits)
        precision = source.precision - source.scale + 1 + scale
        if precision > MAX_DECIMAL_PRECISION or source.precision == MAX_DECIMAL_PRECISION:
            raise site.refusal(f"the type {source}")
        return site.call(operand, Literal(scale, INTEGER), to=DecimalType(precision, scale))
    raise site.refusal(f"the type {source} and {digits} digits")


def _of_double(site: Site) -> Expression:
    return site.call(site.typed(0, DOUBLE), to=DOUBLE)


def _bitwise(site: Site) -> Expression:
    arguments, found = common(site, site.arguments)
    return site.call(*arguments, to=_integral(site, found))


def _bitwise_not(site: Site) -> Expression:
    (operand,) = site.arguments
    return site.call(operand, to=_integral(site, type_of(operand)))


def _integral(site: Site, found: DataType) -> DataType:
    if found not in INTEGRAL_BITS:
        raise site.refusal(f"the type {found}")
    return found


def _shift(site: Site) -> Expression:
    source = _integral(site, type_of(site.arguments[0]))
    target = INTEGER if source in (BYTE, SHORT) else source
    return site.call(site.typed(0, target), site.typed(1, INTEGER), to=target)


def _bit(site: Site) -> Expression:
    source = _integral(site, type_of(site.arguments[0]))
    position = site.constant(1, int)
    if position is None or not 0 <= position < INTEGRAL_BITS[source]:
        raise site.refusal("this position")
    return Call("getbit", (site.arguments[0], site.arguments[1]), BYTE)


def _bit_count(site: Site) -> Expression:
    if type_of(site.arguments[0]) == BOOLEAN:
        raise site.refusal("a boolean")
    return site.call(site.typed(0, LONG), to=INTEGER)


def _constant(value: float) -> Function:
    return Function(lambda site: Literal(value, DOUBLE), takes(0))


def _factorial(site: Site) -> Expression:
    return site.call(site.typed(0, INTEGER), to=LONG)


FUNCTIONS = {
    "floor": Function(_whole, takes(1), is_total=False),
    "ceil": Function(_whole, takes(1), is_total=False),
    "round": Function(_round, takes(1, 2)),
    "bround": Function(_round, takes(1, 2)),
    "rint": Function(_of_double, takes(1)),
    "sign": Function(_of_double, takes(1)),
    "sqrt": Function(_of_double, takes(1)),
    "pi": _constant(math.pi),
    "e": _constant(math.e),
    "bit_and": Function(_bitwise, takes(2)),
    "bit_or": Function(_bitwise, takes(2)),
    "bit_xor": Function(_bitwise, takes(2)),
    "bit_not": Function(_bitwise_not, takes(1)),
    "shiftleft": Function(_shift, takes(2)),
    "shiftright": Function(_shift, takes(2)),
    "shiftrightunsigned": Function(_shift, takes(2)),
    "getbit": Function(_bit, takes(2)),
    "bit_count": Function(_bit_count, takes(1)),
    "factorial": Function(_factorial, takes(1)),
}


# ------------------------------------------------------------------------------------------------------- computing
def _to_whole(kernel: Kernel) -> Kernel:
    def whole(value: pa.Array) -> pa.Array:
        if pa.types.is_decimal(value.type):
            wide = pa.decimal128(min(value.type.precision + 1, MAX_DECIMAL_PRECISION), value.type.scale)
            precision = value.type.precision - value.type.scale + (value.type.scale > 0)
            return kernel(value.cast(wide)).cast(pa.decimal128(precision, 0))
        return kernel(value).cast(pa.int64())

    return by_array(whole)


def _nulls(value: pa.Array) -> np.ndarray:
    return np.asarray(value.is_null().to_numpy(zero_copy_only=False))


def _rounder(mode: str) -> Kernel:
    def rounded(value: Values, digits: pa.Scalar | None = None) -> Values:
        if digits is None:  # of doubles; Java's decimals have no negative zero
            return pc.add(pc.round(value, ndigits=0, round_mode=mode), pa.scalar(0.0))
        size, scale = value.type, digits.as_py()
        wide = value.cast(pa.decimal128(size.precision + 1, size.scale))
        target = pa.decimal128(size.precision - size.scale + 1 + scale, scale)
        return pc.round(wide, ndigits=scale, round_mode=mode).cast(target)

    return rounded


def _sign(value: pa.Array) -> pa.Array:
    numbers = _numbers(value)
    return pa.array(np.where(numbers == 0, numbers, np.sign(numbers)), mask=_nulls(value))


def _numbers(value: pa.Array) -> np.ndarray:
    return np.asarray(value.fill_null(0).to_numpy(zero_copy_only=False))


def _shifter(name: str) -> Kernel:
    def shift(value: pa.Array, by: pa.Array) -> pa.Array:
        bits = value.type.bit_width
        unsigned = np.uint64 if bits == 64 else np.uint32
        signed = np.int64 if bits == 64 else np.int32
        numbers, places = _numbers(value), (_numbers(by) & (bits - 1))
        if name == "right":
            found = numbers >> places.astype(signed)
        else:
            whole = numbers.view(unsigned)
            places = places.astype(unsigned)
            found = ((whole << places) if name == "left" else (whole >> places)).view(signed)
        return pa.array(found, value.type, mask=_nulls(value) | _nulls(by))

    return by_array(shift)


def _get_bit(value: pa.Array, position: pa.Array) -> pa.Array:
    places = _numbers(position).astype(np.int64)
    return pa.array(((_numbers(value).astype(np.int64) >> places) & 1).astype(np.int8), mask=_nulls(value))


def _count_bits(value: pa.Array) -> pa.Array:
    octets = np.unpackbits(np.ascontiguousarray(_numbers(value).astype(np.int64)).view(np.uint8)).reshape(-1, 64)
    return pa.array(octets.sum(axis=1).astype(np.int32), mask=_nulls(value))


def _of_factorials(value: pa.Array) -> pa.Array:
    inside = pc.and_(pc.greater_equal(value, 0), pc.less_equal(value, 20))
    factorials = pa.array([math.factorial(n) for n in range(21)], pa.int64())
    return factorials.take(pc.if_else(inside, value, pa.scalar(None, value.type)))


KERNELS: dict[str, Kernel] = {
    "floor": _to_whole(pc.floor),
    "ceil": _to_whole(pc.ceil),
    "round": _rounder("half_towards_infinity"),
    "bround": _rounder("half_to_even"),
    "rint": lambda value: pc.round(value, ndigits=0, round_mode="half_to_even"),
    "sign": by_array(_sign),
    "sqrt": pc.sqrt,
    "bit_and": pc.bit_wise_and,
    "bit_or": pc.bit_wise_or,
    "bit_xor": pc.bit_wise_xor,
    "bit_not": pc.bit_wise_not,
    "shiftleft": _shifter("left"),
    "shiftright": _shifter("right"),
    "shiftrightunsigned": _shifter("unsigned"),
    "getbit": by_array(_get_bit),
    "bit_count": by_array(_count_bits),
    "factorial": by_array(_of_factorials),
}
