"""Functions that choose among values, and tests for null."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions import coercion
from pyspark_delta.expressions.comparisons import compare
from pyspark_delta.expressions.functions.signature import Function, Kernel, Site, Values, by_array, common, takes
from pyspark_delta.expressions.tree import Call, Comparison, Expression, IsNull, Literal, Not, type_of
from pyspark_delta.schema.types import BOOLEAN, DOUBLE, FLOAT, INTEGER, VOID

_MANY = takes(1, 1000)


# --------------------------------------------------------------------------------------------------------- binding
def case(site: Site) -> Expression:
    """Bind `condition, value, ..., otherwise`: the value of the first condition that is true."""
    arguments = site.arguments
    tests = arguments[:-1:2]
    values, found = common(site, (*arguments[1:-1:2], arguments[-1]))
    if any(type_of(test) not in (BOOLEAN, VOID) for test in tests):
        raise site.refusal("conditions that are not boolean")
    if found == VOID:
        return Literal(None, VOID)
    parts: list[Expression] = []
    for test, value in zip(tests, values[:-1], strict=True):
        parts += [Literal(None, BOOLEAN) if type_of(test) == VOID else test, value]
    return Call("case", (*parts, values[-1]), found)


def _coalesce(site: Site) -> Expression:
    values, found = common(site, site.arguments)
    return Literal(None, VOID) if found == VOID else Call("coalesce", values, found)


def _nvl2(site: Site) -> Expression:
    tested, given, otherwise = site.arguments
    return case(Site(site.name, (Not(IsNull(tested)), given, otherwise), site.zone, site.keep))


def _nullif(site: Site) -> Expression:
    value, other = site.arguments
    common(site, site.arguments)  # with other types, the comparison depends on the session
    same = coercion.compare("=", value, other, site.zone)
    return case(Site(site.name, (same, Literal(None, VOID), value), site.zone, site.keep))


def _nullifzero(site: Site) -> Expression:
    return _nullif(Site(site.name, (*site.arguments, Literal(0, INTEGER)), site.zone, site.keep))


def _zeroifnull(site: Site) -> Expression:
    return _coalesce(Site(site.name, (*site.arguments, Literal(0, INTEGER)), site.zone, site.keep))


def _equal_null(site: Site) -> Expression:
    common(site, site.arguments)
    left, right = site.arguments
    return coercion.compare("<=>", left, right, site.zone)


def _nanvl(site: Site) -> Expression:
    values, found = common(site, site.arguments)
    if found not in (FLOAT, DOUBLE):
        raise site.refusal(f"the type {found}")
    return site.call(*values, to=found)


def _isnan(site: Site) -> Expression:
    """Bind `isnan(x)`: false if x is null."""
    (operand,) = site.arguments
    if type_of(operand) not in (FLOAT, DOUBLE):
        raise site.refusal(f"the type {type_of(operand)}")
    return Comparison("<=>", operand, Literal(float("nan"), type_of(operand)))


def _extreme(site: Site) -> Expression:
    values, found = common(site, site.arguments)
    if found == VOID or not coercion.is_comparable(found):
        raise site.refusal(f"the type {found}")
    return site.call(*values, to=found)


FUNCTIONS = {
    "if": Function(case, takes(3)),
    "case": Function(case, _MANY),
    "coalesce": Function(_coalesce, _MANY),
    "ifnull": Function(_coalesce, takes(2)),
    "nvl2": Function(_nvl2, takes(3)),
    "nullif": Function(_nullif, takes(2)),
    "nullifzero": Function(_nullifzero, takes(1)),
    "zeroifnull": Function(_zeroifnull, takes(1)),
    "equal_null": Function(_equal_null, takes(2)),
    "isnull": Function(lambda site: IsNull(site.arguments[0]), takes(1)),
    "isnotnull": Function(lambda site: Not(IsNull(site.arguments[0])), takes(1)),
    "isnan": Function(_isnan, takes(1)),
    "nanvl": Function(_nanvl, takes(2)),
    "greatest": Function(_extreme, takes(2, 1000)),
    "least": Function(_extreme, takes(2, 1000)),
}


# ------------------------------------------------------------------------------------------------------- computing
def _choose(*parts: Values) -> Values:
    """Return the value of the first true condition. Nested types are chosen by position."""
    chosen = parts[-1]
    for at in range(len(parts) - 3, -1, -2):
        test = parts[at].cast(pa.bool_()) if parts[at].type == pa.null() else parts[at]
        chosen = pc.if_else(pc.fill_null(test, False), parts[at + 1], chosen)
    return chosen


def _first(value: Values, other: Values) -> Values:
    return pc.if_else(pc.is_nan(value), other, value)


def _folded(op: str) -> Kernel:
    """Return the kernel of greatest or least: nulls are skipped, and the first of equal values is kept."""

    def better(kept: pa.Array, other: pa.Array) -> pa.Array:
        found = pc.fill_null(compare(op, other, kept), False)
        return pc.if_else(pc.or_(pc.is_null(kept), found), other, kept)

    return by_array(lambda *values: reduce(better, values))


KERNELS: dict[str, Kernel] = {
    "case": _choose,
    "coalesce": pc.coalesce,
    "nanvl": _first,
    "greatest": _folded(">"),
    "least": _folded("<"),
}
