"""Negation normal form: NOT is moved inwards to conditions that have no opposite."""

from __future__ import annotations

from pyspark_delta.expressions.tree import (
    And,
    Comparison,
    Expression,
    Literal,
    Not,
    Or,
    type_of,
)
from pyspark_delta.schema.types import BOOLEAN

OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def negation_normal(expression: Expression, *, negated: bool = False) -> Expression:
    """Return an expression that is TRUE for exactly the same rows; others may change between FALSE and unknown.

    Values are totally ordered (NaN is the greatest), so `NOT (a < b)` is `a >= b`, unknown for the same rows.
    """
    match expression:
        case Not(operand):
            return negation_normal(operand, negated=not negated)
        case And(operands) | Or(operands):
            kind = Or if isinstance(expression, And) == negated else And
            return kind(tuple(negation_normal(o, negated=negated) for o in operands))
        case Comparison(op, left, Literal(bool() as value, _)) if _is_condition(left) and op != "<>":
            if op == "=" or not negated:
                return negation_normal(left, negated=negated == value)
            return Not(expression)  # NOT (condition <=> TRUE) is true for unknown, too
        case Comparison(op, left, right) if negated and op in OPPOSITES:
            return Comparison(OPPOSITES[op], left, right)
        case Literal(bool() as value, data_type) if negated:
            return Literal(not value, data_type)
        case Literal(None, _):
            return Literal(None, BOOLEAN)
        case _:
            return Not(expression) if negated else expression


def _is_condition(expression: Expression) -> bool:
    return type_of(expression) == BOOLEAN and not isinstance(expression, Literal)
