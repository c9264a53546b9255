"""The SQL text, the columns and the conjuncts of an expression."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import assert_never

import pyarrow as pa

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
    children_of,
)
from pyspark_delta.schema.types import BYTE, DOUBLE, FLOAT, LONG, SHORT, TIMESTAMP_NTZ, DataType, DecimalType

_SUFFIXES: dict[DataType, str] = {BYTE: "Y", SHORT: "S", LONG: "L", DOUBLE: "D"}
_SQL_TYPES = {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}
_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "mod": "%", "divide": "/", "div": "DIV"}
_OPERATORS |= {"bit_and": "&", "bit_or": "|", "bit_xor": "^"}
_PRECEDENCE_AND, _PRECEDENCE_OR = 2, 1


def to_sql(expression: Expression) -> str:
    """Return the expression as Spark SQL, timestamps in UTC; `parse_predicate` gives the same expression."""
    match expression:
        case Column(path):
            return ".".join(_quote(part) for part in path)
        case Literal():
            return _literal(expression)
        case Comparison(op, left, right):
            return f"{_operand(left)} {op} {_operand(right)}"
        case And(operands):
            return " AND ".join(_wrapped(o) if isinstance(o, Or) else to_sql(o) for o in operands)
        case Or(operands):
            return " OR ".join(_wrapped(o) if isinstance(o, And) else to_sql(o) for o in operands)
        case Not(IsNull(operand)):
            return f"{_operand(operand)} IS NOT NULL"
        case Not(operand):
            return f"NOT {_wrapped(operand)}"
        case IsNull(operand):
            return f"{_operand(operand)} IS NULL"
        case In(operand, values):
            return f"{_operand(operand)} IN ({', '.join(_literal(v) for v in values)})"
        case StartsWith(operand, prefix):
            return f"startswith({to_sql(operand)}, {_string(prefix)})"
        case Cast(operand, data_type):
            return f"CAST({to_sql(operand)} AS {_sql_type(data_type)})"
        case Call(name, (left, right)) if name in _OPERATORS:
            return f"({to_sql(left)} {_OPERATORS[name]} {to_sql(right)})"
        case Call("case", arguments):
            return _case(arguments)
        case Call("subscript" | "map_value", (collection, key)):
            return f"{to_sql(collection)}[{to_sql(key)}]"
        case Call("bit_not", (operand,)):
            return f"~{_operand(operand)}"
        case Call(("add_micros" | "add_interval_months") as name, (moment, Literal(count, _))):
            return f"({to_sql(moment)} + INTERVAL {count} {'MICROSECOND' if name == 'add_micros' else 'MONTH'})"
        case Call(name, arguments):
            return f"{name}({', '.join(to_sql(a) for a in arguments)})"
        case Opaque(text):
            return text
        case _:
            assert_never(expression)


def columns_of(expression: Expression) -> tuple[Column, ...]:
    """Return the columns an expression names, each once, in order of appearance; those inside Opaque are unknown."""
    found: dict[Column, None] = {}
    for part in parts_of(expression):
        if isinstance(part, Column):
            found.setdefault(part)
    return tuple(found)


def is_opaque(expression: Expression) -> bool:
    """True if any part is Opaque."""
    return any(isinstance(part, Opaque) for part in parts_of(expression))


def parts_of(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and everything in it, outermost first."""
    open_parts = [expression]
    while open_parts:
        part = open_parts.pop()
        yield part
        open_parts.extend(reversed(children_of(part)))


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Return the conditions that must all hold: the operands of the outermost ANDs, flat, in order."""
    if not isinstance(expression, And):
        return (expression,)
    return tuple(inner for operand in expression.operands for inner in conjuncts(operand))


def _case(arguments: tuple[Expression, ...]) -> str:
    branches = zip(arguments[:-1:2], arguments[1::2], strict=True)
    parts = [f"WHEN {to_sql(test)} THEN {to_sql(value)}" for test, value in branches]
    return f"CASE {' '.join(parts)} ELSE {to_sql(arguments[-1])} END"


def _wrapped(expression: Expression) -> str:
    return f"({to_sql(expression)})"


def _operand(expression: Expression) -> str:
    """Return an operand as SQL: in brackets unless it is a name, a constant or a function."""
    if isinstance(expression, Column | Literal | Cast | Call):
        return to_sql(expression)
    return _wrapped(expression)


def is_plain(name: str) -> bool:
    """True if a name needs no backticks."""
    return name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()


def _quote(name: str) -> str:
    return name if is_plain(name) else f"`{name.replace('`', '``')}`"


def _string(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, datetime):
        return _timestamp(value, literal.type)
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return _string(value)
    return _number(value, literal.type)


def _number(value: int | float | Decimal, data_type: DataType) -> str:
    if isinstance(data_type, DecimalType):
        return f"{value:f}BD"
    text = repr(value) if data_type != FLOAT else str(pa.scalar(value, pa.float32()).cast(pa.string()))
    if data_type == FLOAT or text.lstrip("-") in ("nan", "inf"):
        return f"CAST('{text}' AS {_sql_type(data_type)})"
    return f"{text}{_SUFFIXES.get(data_type, '')}"


def _timestamp(value: datetime, data_type: DataType) -> str:
    if data_type == TIMESTAMP_NTZ:
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
    utc = value.astimezone(UTC).replace(tzinfo=None)
    return f"TIMESTAMP '{utc.isoformat(sep=' ')}Z'"


def _sql_type(data_type: DataType) -> str:
    return _SQL_TYPES.get(str(data_type), str(data_type).upper())
