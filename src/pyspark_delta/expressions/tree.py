"""The predicate tree: frozen values, made from SQL text and evaluated over Arrow with three-valued logic.

    Expression = Column | Literal | Comparison | And | Or | Not | IsNull | In | StartsWith | Cast | Call | Opaque

`Opaque` stands for a part that the tree cannot express: it keeps its text, evaluates to unknown, and never drops a
file. Column paths are logical names as the schema spells them; a nested field has more than one part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from pyspark_delta.schema.types import BOOLEAN, DataType


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a nested field of one, with the type it has in the schema."""

    path: tuple[str, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: `value` is the Python value that pyarrow uses for `type` (None for NULL)."""

    value: Any
    type: DataType


@dataclass(frozen=True, slots=True)
class Comparison:
    """`op` is one of = <> < <= > >= <=>; both sides have been cast to one type."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of two or more operands."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of two or more operands."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Negation; NOT unknown is unknown."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    """`operand IS NULL`: never unknown itself."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class In:
    """`operand IN (values)`; a NULL among the values makes a miss unknown."""

    operand: Expression
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class StartsWith:
    """`operand LIKE 'prefix%'`."""

    operand: Expression
    prefix: str


@dataclass(frozen=True, slots=True)
class Cast:
    """A cast with Spark's meaning (ANSI); only casts with the same result in Arrow are evaluated."""

    operand: Expression
    type: DataType


@dataclass(frozen=True, slots=True)
class Call:
    """A function that is evaluated over Arrow: its lower-case SQL name and arguments."""

    name: str
    arguments: tuple[Expression, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that the tree cannot express, as SQL text; its value is unknown."""

    text: str


Expression: TypeAlias = Column | Literal | Comparison | And | Or | Not | IsNull | In | StartsWith | Cast | Call | Opaque


def type_of(expression: Expression) -> DataType:
    """Return the type of the value of an expression; conditions are boolean."""
    match expression:
        case Column() | Literal() | Cast() | Call():
            return expression.type
        case _:
            return BOOLEAN


def children_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct parts of an expression, left to right."""
    match expression:
        case Comparison(_, left, right):
            return (left, right)
        case And(operands) | Or(operands):
            return operands
        case Not(operand) | IsNull(operand) | StartsWith(operand) | Cast(operand):
            return (operand,)
        case In(operand, values):
            return (operand, *values)
        case Call(_, arguments):
            return arguments
        case Column() | Literal() | Opaque():
            return ()
        case _:
            assert_never(expression)


def replace_columns(expression: Expression, replacement: Callable[[Column], Expression]) -> Expression:
    """Return the expression with every column replaced."""

    def visit(part: Expression) -> Expression:
        match part:
            case Column():
                return replacement(part)
            case Comparison(op, left, right):
                return Comparison(op, visit(left), visit(right))
            case And(operands):
                return And(tuple(visit(o) for o in operands))
            case Or(operands):
                return Or(tuple(visit(o) for o in operands))
            case Not(operand):
                return Not(visit(operand))
            case IsNull(operand):
                return IsNull(visit(operand))
            case In(operand, values):
                return In(visit(operand), values)
            case StartsWith(operand, prefix):
                return StartsWith(visit(operand), prefix)
            case Cast(operand, data_type):
                return Cast(visit(operand), data_type)
            case Call(name, arguments, data_type):
                return Call(name, tuple(visit(a) for a in arguments), data_type)
            case Literal() | Opaque():
                return part
            case _:
                assert_never(part)

    return visit(expression)


def all_of(*operands: Expression | None) -> Expression | None:
    """Return the conjunction of the given conditions, flattened; None if there are none."""
    parts: list[Expression] = []
    for operand in operands:
        if isinstance(operand, And):
            parts += operand.operands
        elif operand is not None:
            parts.append(operand)
    if len(parts) < 2:
        return parts[0] if parts else None
    return And(tuple(parts))
