"""Data skipping: a condition on rows, rewritten to one on a file's statistics that is FALSE only if no row matches.

`minValues` and `maxValues` are bounds, not values that must occur (C408, C409). Their meaning depends on the type:

- timestamp, timestamp_ntz: truncated to milliseconds, so values are up to 1 ms above the maximum (C412); - string:
truncated to a prefix; a maximum of that length may be a prefix of the real one if the writer did not pad it; - float,
double: delta-spark writes NaN, the greatest value, as the maximum, but writers that copy statistics from Parquet
footers ignore NaN. So a maximum does not exclude NaN, and drops a file only if the condition excludes NaN, as in `x
BETWEEN 1 AND 2`;
- decimal with more than 15 digits: some writers round through a double, so bounds get a margin of that error;
- binary, boolean, interval, variant, array, map and collated columns: no bounds (C415).

`nullCount` is only compared with 0 and numRecords, which mean the same with tight and with wide bounds (C410), so
`tightBounds` is not needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from pyspark_delta.expressions.coercion import is_comparable, is_monotone_cast
from pyspark_delta.expressions.literals import EXACT, INTEGRAL_BITS
from pyspark_delta.expressions.normal import negation_normal
from pyspark_delta.expressions.text import to_sql
from pyspark_delta.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
    all_of,
    type_of,
)
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DecimalType,
)

NEVER = Literal(False, BOOLEAN)
NUM_RECORDS = Column(("numRecords",), LONG)

_MILLISECOND = timedelta(milliseconds=1)
_MOST_VALUES = 16  # of an IN list that are compared one by one; longer lists only by their range
_EXACT_DIGITS = 15  # decimal digits that survive a double
_DOUBLE_ERROR = Decimal("2.3E-16")
_MONOTONE_CALLS = ("year", "date_trunc")
_LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True, slots=True)
class StatisticsColumn:
    """The statistics of one column: its physical path, and why its bounds cannot be used ("" if they can)."""

    path: tuple[str, ...]
    unusable: str = ""


@dataclass(slots=True)
class Rewriter:
    """Rewrites conditions on the columns in `columns` (by logical path); others are unknown.

    `prefix_length` is the number of code points that string bounds are truncated to. `by_partition` returns the
    condition on partition values that is equivalent to a condition on them alone, and None for any other. `reasons`
    collects, for explanations, why conditions could not be used.
    """

    columns: Mapping[tuple[str, ...], StatisticsColumn]
    prefix_length: int = 32
    by_partition: Callable[[Expression], Expression | None] = lambda _: None
    reasons: list[str] = field(default_factory=list)

    def rewrite(self, conditions: Sequence[Expression]) -> list[Expression | None]:
        """Return conjuncts as conditions on statistics, one by one; None for one that cannot skip any file."""
        normal = [negation_normal(condition) for condition in conditions]
        without_nan: frozenset[Column] = frozenset().union(*(_excluding_nan(c) for c in normal))
        return [self._may_match(condition, without_nan) for condition in normal]

    def _may_match(
        self, condition: Expression, without_nan: frozenset[Column], *, in_or: bool = False
    ) -> Expression | None:
        # Outside of OR, conditions on partition values have been evaluated already.
        decided = self.by_partition(condition) if in_or and not isinstance(condition, And | Or) else None
        if decided is not None:
            return decided
        match condition:
            case And(operands):
                bounded = without_nan.union(*(_excluding_nan(o) for o in operands))
                return conjunction(self._may_match(o, bounded, in_or=in_or) for o in operands)
            case Or(operands):
                return _disjunction([self._may_match(o, without_nan, in_or=True) for o in operands])
            case Comparison(op, left, right):
                return self._compare(condition, op, left, right, without_nan)
            case In(operand, values):
                return self._one_of(operand, values)
            case StartsWith(operand, prefix):
                return self._starts_with(operand, prefix)
            case IsNull(operand):
                return self._null(operand, is_null=True)
            case Not(IsNull(operand)):
                return self._null(operand, is_null=False)
            case Not(In(operand, values)):
                return self._none_of(operand, values)
            case Not(Comparison("<=>", left, Literal(value, _) as right)) if value is not None:
                different = self._compare(condition, "<>", left, right, without_nan)
                return _disjunction([different, self._null(left, is_null=True)])
            case Literal(value, _):
                return None if value else NEVER
            case Column() | Not(Column()):
                return self._null(condition if isinstance(condition, Column) else condition.operand, is_null=False)
            case Opaque(text):
                return self._unused(f"'{text}' is only evaluated by Spark")
        return self._unused(f"'{to_sql(condition)}' cannot be evaluated on statistics")

    def _unused(self, reason: str) -> Expression | None:
        """Note why a condition cannot be used, and return None."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return None

    # ------------------------------------------------------------------------------------------ comparisons
    def _compare(
        self, condition: Expression, op: str, left: Expression, right: Expression, without_nan: frozenset[Column]
    ) -> Expression | None:
        if left == right and op in (
            "=",
            "<>",
        ):  # composed of comparisons whose result is the same for all values except null
            return NEVER if op == "<>" else self._null(left, is_null=False)
        if not isinstance(right, Literal):
            return self._unused(f"'{to_sql(condition)}' is not a comparison of a column with a constant")
        if right.value is None:
            return NEVER if op != "<=>" else self._null(left, is_null=True)
        bounds = self._bounds(left, condition)
        if bounds is None:
            return None
        match op:
            case "=" | "<=>":
                return all_of(bounds.at_most("<=", right), bounds.at_least(">=", right))
            case "<" | "<=":
                return bounds.at_most(op, right)
            case "<>":
                different = bounds.differs(right)
                return different or self._unused(f"'{to_sql(condition)}' cannot be decided from bounds of that type")
        if bounds.is_float and bounds.column not in without_nan:
            return self._unused(f"'{to_sql(condition)}' is true for NaN, which bounds may ignore")
        return bounds.at_least(op, right)

    def _one_of(self, operand: Expression, values: tuple[Literal, ...]) -> Expression | None:
        known = _sorted([value for value in values if value.value is not None])
        if not known:
            return NEVER
        bounds = self._bounds(operand, In(operand, values))
        if bounds is None or any(_is_nan(value) for value in known):
            return None
        span = all_of(bounds.at_most("<=", known[-1]), bounds.at_least(">=", known[0]))
        if not 1 < len(known) <= _MOST_VALUES:
            return span
        each = [all_of(bounds.at_most("<=", value), bounds.at_least(">=", value)) for value in known]
        return all_of(span, _disjunction(each))

    def _none_of(self, operand: Expression, values: tuple[Literal, ...]) -> Expression | None:
        if any(value.value is None for value in values):
            return NEVER
        bounds = self._bounds(operand, Not(In(operand, values)))
        if bounds is None or len(values) > _MOST_VALUES:
            return None
        return conjunction(bounds.differs(value) for value in values)

    def _starts_with(self, operand: Expression, prefix: str) -> Expression | None:
        if not prefix:
            return self._null(operand, is_null=False)
        bounds = self._bounds(operand, StartsWith(operand, prefix))
        if bounds is None:
            return None
        after = successor(prefix)
        below = None if after is None else bounds.at_most("<", Literal(after, STRING))
        return all_of(below, bounds.at_least(">=", Literal(prefix, STRING)))

    def _null(self, operand: Expression, *, is_null: bool) -> Expression | None:
        while isinstance(operand, Cast):  # these casts never return null for a value
            operand = operand.operand
        if not isinstance(operand, Column) or operand.path not in self.columns:
            return None
        if not (is_comparable(operand.type) or operand.type == BINARY):
            return self._unused(f"{operand.type} columns have no reliable null count")
        count = Column(("nullCount", *self.columns[operand.path].path), LONG)
        return Comparison(">", count, Literal(0, LONG)) if is_null else Comparison("<", count, NUM_RECORDS)

    def _bounds(self, operand: Expression, condition: Expression) -> _Bounds | None:
        column = _monotone_of(operand)
        if column is None:
            self._unused(f"'{to_sql(condition)}' is not a condition on a column without a function")
            return None
        known = self.columns.get(column.path)
        if known is None:
            return None
        name = ".".join(column.path)
        if known.unusable:
            self._unused(f"the column '{name}' {known.unusable}")
            return None
        if column.type in (BINARY, BOOLEAN, VOID) or not is_comparable(column.type):
            self._unused(f"the column '{name}' is {column.type}, which has no minimum and maximum")
            return None
        return _Bounds(column, operand, known.path, self.prefix_length)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Builds conditions on the minimum and maximum of `column`, or of a monotone function of it (`operand`)."""

    column: Column
    operand: Expression
    path: tuple[str, ...]
    prefix_length: int

    @property
    def is_float(self) -> bool:
        return self.column.type in (FLOAT, DOUBLE)

    def at_most(self, op: str, constant: Literal) -> Expression | None:
        """Return the condition that some value may be `<` or `<=` the constant."""
        if self.operand == self.column and isinstance(self.column.type, DecimalType):
            constant = _with_margin(constant, self.column.type, up=True)
        return Comparison(op, self._on("minValues"), constant)

    def at_least(self, op: str, constant: Literal) -> Expression | None:
        """Return the condition that some value (other than NaN) may be `>` or `>=` the constant."""
        if _is_nan(constant):
            return None
        if self.operand != self.column:
            return Comparison(op, self._on("maxValues"), constant)
        if self.column.type in (TIMESTAMP, TIMESTAMP_NTZ):
            try:
                constant = Literal(constant.value - _MILLISECOND, constant.type)
            except OverflowError:
                return None
        if self.column.type == STRING and len(constant.value) >= self.prefix_length:
            op, constant = ">=", Literal(constant.value[: self.prefix_length], STRING)
        if isinstance(self.column.type, DecimalType):
            constant = _with_margin(constant, self.column.type, up=False)
        return Comparison(op, self._on("maxValues"), constant)

    def differs(self, constant: Literal) -> Expression | None:
        """Return the condition that some value may differ from the constant: not if both exact bounds equal it."""
        exact = self.column.type in INTEGRAL_BITS or self.column.type == DATE
        if isinstance(self.column.type, DecimalType):
            exact = self.column.type.precision <= _EXACT_DIGITS
        if self.column.type == STRING:
            exact = len(constant.value) < self.prefix_length
        if not exact or self.operand != self.column:
            return None
        low, high = self._on("minValues"), self._on("maxValues")
        return Or((Comparison("<", low, constant), Comparison(">", high, constant)))

    def _on(self, statistic: str) -> Expression:
        bound = Column((statistic, *self.path), self.column.type)
        if self.operand == self.column:
            return bound
        if statistic == "maxValues" and self.column.type in (TIMESTAMP, TIMESTAMP_NTZ):
            return _substitute(self.operand, Call("plus_millisecond", (bound,), bound.type))
        return _substitute(self.operand, bound)


def _substitute(operand: Expression, bound: Expression) -> Expression:
    """Return the same chain of casts and functions, applied to a bound instead of the column."""
    match operand:
        case Cast(inner, data_type):
            return Cast(_substitute(inner, bound), data_type)
        case Call(name, arguments, data_type):
            return Call(name, (*arguments[:-1], _substitute(arguments[-1], bound)), data_type)
    return bound


def _monotone_of(operand: Expression) -> Column | None:
    """Return the column under casts and functions that keep the order of values, or None."""
    match operand:
        case Column():
            return operand
        case Cast(inner, data_type) if is_monotone_cast(type_of(inner), data_type):
            return _monotone_of(inner)
        case Call(name, arguments, _) if name in _MONOTONE_CALLS:
            return _monotone_of(arguments[-1])
    return None


def _excluding_nan(condition: Expression) -> frozenset[Column]:
    """Return the columns that are certainly not NaN if the condition is true."""
    match condition:
        case Comparison("<" | "<=" | "=" | "<=>" as op, left, Literal(float() as value, _)):
            column = _monotone_of(left)
            if column is not None and (op == "<" or not math.isnan(value)):
                return frozenset([column])
        case In(operand, values) if not any(_is_nan(value) for value in values):
            column = _monotone_of(operand)
            if column is not None:
                return frozenset([column])
        case And(operands):
            return frozenset().union(*(_excluding_nan(o) for o in operands))
    return frozenset()


def conjunction(parts: Iterable[Expression | None]) -> Expression | None:
    """Return the conjunction of the known conditions, each once; NEVER if one of them is."""
    known = [part for part in parts if part is not None]
    return NEVER if NEVER in known else all_of(*dict.fromkeys(known))


def _disjunction(parts: list[Expression | None]) -> Expression | None:
    possible = [part for part in parts if part != NEVER]
    if not possible:
        return NEVER
    known = [part for part in possible if part is not None]
    if len(known) < len(possible):
        return None
    return known[0] if len(known) == 1 else Or(tuple(known))


def _sorted(values: list[Literal]) -> list[Literal]:
    def key(literal: Literal) -> Any:
        value = literal.value
        return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value

    return sorted(values, key=key) if not any(_is_nan(value) for value in values) else values


def _is_nan(literal: Literal) -> bool:
    return isinstance(literal.value, float) and math.isnan(literal.value)


def successor(prefix: str) -> str | None:
    """Return the least string above every string with that prefix; None if there is none."""
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1])
        if code < _LAST_CODE_POINT:
            following = 0xE000 if code + 1 == 0xD800 else code + 1  # surrogates are no characters
            return prefix[: end - 1] + chr(following)
    return None


def _with_margin(constant: Literal, data_type: DecimalType, *, up: bool) -> Literal:
    """Return a constant moved outwards by the error of bounds that a writer rounded through a double."""
    value: Decimal = constant.value
    if EXACT.scaleb(value.copy_abs(), data_type.scale) < 10**_EXACT_DIGITS:
        return constant
    margin = EXACT.multiply(value.copy_abs(), _DOUBLE_ERROR)  # abs() and - round to 28 digits
    moved = EXACT.add(value, margin if up else margin.copy_negate())
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    quantized = moved.quantize(Decimal(1).scaleb(-data_type.scale), rounding, EXACT)
    limit = EXACT.scaleb(Decimal(10**data_type.precision - 1), -data_type.scale)
    return Literal(max(min(quantized, limit), limit.copy_negate()), data_type)
