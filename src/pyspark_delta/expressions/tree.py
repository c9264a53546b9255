"""The predicate tree: frozen values, made from SQL text and evaluated over Arrow with three-valued logic.

    Expression = Column | Literal | Comparison | And | Or | Not | IsNull | In | StartsWith | Cast | Call | Opaque

`Opaque` stands for a part that the tree cannot express: it keeps its text, evaluates to unknown, and never drops a
file. Column paths are logical names as the schema spells them; a nested field has more than one part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark_delta.schema.types import DataType


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a nested field of one, with the type it has in the schema."""

    path: tuple[str, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: `value` is the Python value that pyarrow takes for `type` (None for NULL)."""

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
    """A cast with Spark's meaning (ANSI); only those that Arrow does with the same result are evaluated."""

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
    """A part that cannot be expressed here, as text; its value is unknown."""

    text: str


Expression: TypeAlias = Column | Literal | Comparison | And | Or | Not | IsNull | In | StartsWith | Cast | Call | Opaque
