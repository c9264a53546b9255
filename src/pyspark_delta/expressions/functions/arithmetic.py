"""Arithmetic of integers, floats and decimals; overflows and divisions by zero are errors."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions import coercion
from pyspark_delta.expressions.functions.signature import (
    Function,
    Kernel,
    Site,
    Values,
    by_array,
    common,
    failed,
    is_number,
    takes,
)
from pyspark_delta.expressions.literals import INTEGRAL_BITS, MAX_DECIMAL_PRECISION, decimal_type_of
from pyspark_delta.expressions.tree import Call, Expression, Literal, type_of
from pyspark_delta.schema.types import BYTE, DATE, DOUBLE, FLOAT, INTEGER, LONG, SHORT, VOID, DecimalType


# --------------------------------------------------------------------------------------------------------- binding
def _sum(site: Site) -> Expression:
    left, right = site.arguments
    if type_of(left) == DATE and type_of(right) in (INTEGER, SHORT, BYTE):
        name = "date_add" if site.name == "add" else "date_sub"
        return Call(name, (left, coercion.cast(right, INTEGER, site.zone)), DATE)
    return _binary(site)


def _binary(site: Site) -> Expression:
    if any(isinstance(type_of(argument), DecimalType) for argument in site.arguments):
        return _of_decimals(site)
    arguments, found = common(site, site.arguments)
    if found not in INTEGRAL_BITS and found not in (FLOAT, DOUBLE):
        raise site.refusal(f"the type {found}")
    return site.call(*arguments, to=found)


def _of_decimals(site: Site) -> Expression:
    """Bind decimals where the exact result has at most 38 digits, so that no setting decides what is rounded."""
    if any(type_of(argument) in (FLOAT, DOUBLE) for argument in site.arguments):
        arguments = tuple(coercion.cast(argument, DOUBLE, site.zone) for argument in site.arguments)
        return site.call(*arguments, to=DOUBLE)
    left, right = (_as_decimal(site, argument) for argument in site.arguments)
    one, other = type_of(left), type_of(right)
    assert isinstance(one, DecimalType)
    assert isinstance(other, DecimalType)
    if site.name == "multiply":
        precision, scale = one.precision + other.precision + 1, one.scale + other.scale
    else:
        scale = max(one.scale, other.scale)
        precision = max(one.precision - one.scale, other.precision - other.scale) + scale + 1
    if precision > MAX_DECIMAL_PRECISION:
        raise site.refusal(f"{one} and {other}, whose result may have more than {MAX_DECIMAL_PRECISION} digits,")
    return site.call(left, right, to=DecimalType(precision, scale))


def _as_decimal(site: Site, argument: Expression) -> Expression:
    source = type_of(argument)
    if isinstance(source, DecimalType):
        return argument
    if source not in INTEGRAL_BITS:
        raise site.refusal(f"the type {source}")
    if isinstance(argument, Literal) and argument.value is not None:
        return coercion.cast(argument, decimal_type_of(Decimal(argument.value)), site.zone)
    return coercion.cast(argument, coercion.as_decimal(source), site.zone)


def _division(site: Site) -> Expression:
    """Bind `/`: in doubles."""
    if any(isinstance(type_of(argument), DecimalType) for argument in site.arguments):
        raise site.refusal("decimals")
    if not all(is_number(type_of(argument)) or type_of(argument) == VOID for argument in site.arguments):
        raise site.refusal("these types")
    return site.call(*(site.typed(n, DOUBLE) for n in range(2)), to=DOUBLE)


def _integral_division(site: Site) -> Expression:
    for argument in site.arguments:
        if type_of(argument) not in INTEGRAL_BITS:
            raise site.refusal(f"the type {type_of(argument)}")
    return site.call(site.typed(0, LONG), site.typed(1, LONG), to=LONG)


def _remainder(site: Site) -> Expression:
    arguments, found = common(site, site.arguments)
    if found not in INTEGRAL_BITS:
        raise site.refusal(f"the type {found}")
    return site.call(*arguments, to=found)


def _negative(site: Site) -> Expression:
    """Bind `-x`. A float is not subtracted from 0, which would lose the sign of a zero."""
    (operand,) = site.arguments
    source = type_of(operand)
    if source in (FLOAT, DOUBLE):
        return Call("multiply", (Literal(-1.0, source), operand), source)
    if source not in INTEGRAL_BITS and not isinstance(source, DecimalType):
        raise site.refusal(f"the type {source}")
    return site.call(operand, to=source)


def _same(site: Site) -> Expression:
    (operand,) = site.arguments
    if not is_number(type_of(operand)):
        raise site.refusal(f"the type {type_of(operand)}")
    return operand


def _absolute(site: Site) -> Expression:
    (operand,) = site.arguments
    source = type_of(operand)
    if not is_number(source) or (site.keep and source in INTEGRAL_BITS):
        raise site.refusal(f"the type {source}")
    return site.call(operand, to=source)


FUNCTIONS = {
    "add": Function(_sum, takes(2), is_total=False),
    "subtract": Function(_sum, takes(2), is_total=False),
    "multiply": Function(_binary, takes(2), is_total=False),
    "divide": Function(_division, takes(2), is_total=False),
    "div": Function(_integral_division, takes(2), is_total=False),
    "mod": Function(_remainder, takes(2), is_total=False),
    "pmod": Function(_remainder, takes(2), is_total=False),
    "try_divide": Function(_division, takes(2)),
    "negative": Function(_negative, takes(1), is_total=False),
    "positive": Function(_same, takes(1)),
    "abs": Function(_absolute, takes(1)),
}


# ------------------------------------------------------------------------------------------------------- computing


def _divide(left: Values, right: Values) -> Values:
    zero = pc.and_(pc.equal(right, pa.scalar(0, right.type)), pc.is_valid(left))
    if pc.any(zero).as_py() if not isinstance(zero, pa.Scalar) else zero.as_py():
        raise failed("division by zero")
    return pc.divide(left, right)


def _try_divide(left: Values, right: Values) -> Values:
    zero = pc.equal(right, pa.scalar(0, right.type))
    return pc.if_else(zero, pa.scalar(None, left.type), pc.divide(left, right))


def _integer_remainder(value: pa.Array, divisor: pa.Array) -> pa.Array:
    """Return the remainder of a division that rounds toward zero. A divisor of -1 leaves none, as 1 does."""
    one = pa.scalar(1, divisor.type)
    known = pc.if_else(pc.is_valid(value), divisor, one)
    if pc.any(pc.equal(known, pa.scalar(0, divisor.type))).as_py():
        raise failed("division by zero")
    safe = pc.if_else(pc.equal(divisor, pa.scalar(-1, divisor.type)), one, divisor)
    return pc.subtract(value, pc.multiply(pc.divide(value, safe), safe))


def _positive_remainder(value: pa.Array, divisor: pa.Array) -> pa.Array:
    found = _integer_remainder(value, divisor)
    zero = pa.scalar(0, found.type)
    shifted = _integer_remainder(pc.add(found, divisor), divisor)
    return pc.if_else(pc.less(found, zero), shifted, found)


def _negate(value: Values) -> Values:
    return pc.negate(value) if pa.types.is_decimal(value.type) else pc.negate_checked(value)


KERNELS: dict[str, Kernel] = {
    "add": pc.add_checked,
    "subtract": pc.subtract_checked,
    "multiply": pc.multiply_checked,
    "divide": _divide,
    "div": by_array(lambda left, right: _whole(left, right)),
    "mod": by_array(_integer_remainder),
    "pmod": by_array(_positive_remainder),
    "try_divide": _try_divide,
    "negative": _negate,
    "abs": lambda value: pc.abs(value) if pa.types.is_decimal(value.type) else pc.abs_checked(value),
}


def _whole(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the quotient, rounded toward zero; null where either side is null, also for a divisor of 0."""
    return pc.divide_checked(left, pc.if_else(pc.is_valid(left), right, pa.scalar(1, right.type)))
