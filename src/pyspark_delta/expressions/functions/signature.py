"""What a function is: how a call is bound, and how Arrow computes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, TypeAlias

import pyarrow as pa

from pyspark_delta.expressions import coercion
from pyspark_delta.expressions.literals import INTEGRAL_BITS, NotExactError
from pyspark_delta.expressions.tree import Call, Expression, Literal, type_of
from pyspark_delta.schema.types import DOUBLE, FLOAT, STRING, VOID, DataType, DecimalType

Values: TypeAlias = Any
"""A `pa.Array`, or a `pa.Scalar` for a constant."""
Kernel: TypeAlias = Callable[..., Values]


@dataclass(frozen=True, slots=True)
class Site:
    """One call of a function: its name and bound arguments.

    `keep` is true for text from Catalyst, in which only functions that never fail are bound. `zone` is the session
    time zone.
    """

    name: str
    arguments: tuple[Expression, ...]
    zone: tzinfo
    keep: bool = False

    def typed(self, position: int, data_type: DataType) -> Expression:
        """Return an argument, cast to a type as Spark casts arguments implicitly where nothing can be lost."""
        argument = self.arguments[position]
        if type_of(argument) == VOID:
            return Literal(None, data_type)
        if type_of(argument) == data_type:
            return argument
        if data_type == STRING and type_of(argument) not in INTEGRAL_BITS:
            raise self.refusal(f"the type {type_of(argument)}")
        if type_of(argument) == STRING:
            raise self.refusal("a string as a number or time")
        return coercion.cast(argument, data_type, self.zone)

    def constant(self, position: int, kind: type[Any]) -> Any:
        """Return the value of an argument that must be a constant, None for NULL."""
        argument = self.arguments[position]
        if not isinstance(argument, Literal):
            raise self.refusal("an argument that is not a constant")
        if argument.value is not None and (not isinstance(argument.value, kind) or isinstance(argument.value, bool)):
            raise self.refusal(f"the constant {argument.value!r}")
        return argument.value

    def call(self, *arguments: Expression, to: DataType, name: str = "") -> Expression:
        """Return the call of a kernel; NULL if a constant argument is NULL."""
        return Call(name or self.name, arguments, to)

    def refusal(self, what: str) -> NotExactError:
        """Return the error for arguments that the function is not computed for."""
        return NotExactError(f"Arrow does not compute {self.name}(...) for {what} exactly as Spark does")


@dataclass(frozen=True, slots=True)
class Function:
    """A function with its numbers of arguments.

    `is_total` is true if it never fails, and no setting of Spark changes its result, for all arguments that are bound.
    `is_portable` is false if a setting of Spark changes a result without an error.
    """

    bind: Callable[[Site], Expression]
    counts: range
    is_total: bool = True
    is_portable: bool = True


def takes(least: int, most: int | None = None) -> range:
    """Return numbers of arguments."""
    return range(least, (least if most is None else most) + 1)


def is_number(data_type: DataType) -> bool:
    """True for integers, floats, doubles and decimals."""
    return data_type in INTEGRAL_BITS or data_type in (FLOAT, DOUBLE) or isinstance(data_type, DecimalType)


def common(site: Site, arguments: tuple[Expression, ...]) -> tuple[tuple[Expression, ...], DataType]:
    """Return the arguments in the one type that Spark casts them to."""
    types = [type_of(argument) for argument in arguments if type_of(argument) != VOID]
    if not types:
        return arguments, VOID
    found = types[0]
    for other in types[1:]:
        found = found if other == found else coercion.common_type(found, other)
    return tuple(
        Literal(None, found) if type_of(a) == VOID else coercion.cast(a, found, site.zone) for a in arguments
    ), found


def failed(message: str) -> pa.ArrowInvalid:
    """Return the error of a kernel for a value that it cannot compute."""
    return pa.ArrowInvalid(message)


def arrays(*values: Values) -> tuple[list[pa.Array], bool]:
    """Return values as arrays of one length, and whether all are constants (then of one row)."""
    lengths = [len(value) for value in values if not isinstance(value, pa.Scalar)]
    length = lengths[0] if lengths else 1
    found = [pa.repeat(value, length) if isinstance(value, pa.Scalar) else _flat(value) for value in values]
    return found, not lengths


def _flat(value: Values) -> pa.Array:
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value


def by_array(kernel: Kernel) -> Kernel:
    """Return a kernel for scalars and arrays, from one for arrays of one length."""

    def adapted(*values: Values) -> Values:
        found, is_constant = arrays(*values)
        result = kernel(*found)
        return result[0] if is_constant else result

    return adapted
