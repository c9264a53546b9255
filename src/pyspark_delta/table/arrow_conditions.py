"""Conditions of PyArrow as expressions of this package.

PyArrow does not show the parts of an expression. It writes expressions as Substrait, a protocol buffer. This module
reads the messages that conditions need. The field numbers below are those of substrait/algebra.proto. No file is
skipped by a message that the module does not know.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions import pushdown
from pyspark_delta.expressions.tree import And, Column, Expression, IsNull, Literal, Not, Or, all_of
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.schema.types import StructType

_Message: TypeAlias = dict[int, list["int | bytes"]]  # the values of each field number, in order

_FUNCTIONS, _EXPRESSIONS = 2, 3  # of ExtendedExpression
_LITERAL, _SELECTION, _CALL, _IF, _IN = 1, 2, 3, 6, 8  # of Expression
_COMPARISONS = {"equal": "=", "not_equal": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def split_condition(condition: pc.Expression, schema: StructType) -> tuple[Expression | None, bool]:
    """Return the conjunction of the conjuncts that have an exact counterpart, and whether these are all of them."""
    try:
        from pyarrow import substrait

        arrow = schema_to_arrow(schema, all_nullable=True)
        written = bytes(substrait.serialize_expressions([condition], ["condition"], _serializable(arrow)))
        message = _parse(written)
        names = dict(_functions(message))
        [reference] = _messages(message, _EXPRESSIONS)
        [root] = _messages(reference, 1)
    except (ImportError, pa.ArrowException, ValueError, IndexError):  # no Substrait in this PyArrow, or a newer one
        return None, False
    reader = _Reader(names, schema)
    found = [reader.condition(conjunct) for conjunct in reader.conjuncts(root)]
    return all_of(*found), None not in found


def _serializable(schema: pa.Schema) -> pa.Schema:
    """Return the schema with a placeholder for each column whose type Substrait does not have."""
    return pa.schema([f.with_type(pa.null()) if _has_duration(f.type) else f for f in schema])


def _has_duration(data_type: pa.DataType) -> bool:
    if pa.types.is_duration(data_type):
        return True
    return any(_has_duration(data_type.field(i).type) for i in range(data_type.num_fields))


class _Reader:
    """Reads messages of one expression: `functions` are its functions by their numbers."""

    def __init__(self, functions: Mapping[int, str], schema: StructType) -> None:
        self._functions = functions
        self._schema = schema

    def conjuncts(self, node: _Message) -> Iterator[_Message]:
        name, arguments = self._call(node)
        if name != "and":
            yield node
            return
        for argument in arguments:
            yield from self.conjuncts(argument)

    def condition(self, node: _Message) -> Expression | None:
        """Return the same condition, unknown for the same rows; None if there is none."""
        if _IN in node:
            return self._membership(node, unknown_for_null=False)
        if _IF in node:
            return self._guarded(node)
        name, arguments = self._call(node)
        match name, arguments:
            case (("and" | "or"), _):
                parts = [self.condition(argument) for argument in arguments]
                known = tuple(part for part in parts if part is not None)
                if len(known) < max(2, len(parts)):
                    return None
                return And(known) if name == "and" else Or(known)
            case "not", [operand]:
                inner = self.condition(operand)
                return None if inner is None else Not(inner)
            case (("is_null" | "is_not_null"), [operand]):
                column = self._column(operand)
                if column is None:
                    return None
                return IsNull(column) if name == "is_null" else Not(IsNull(column))
            case str(), [left, right] if name in _COMPARISONS:
                return self._comparison(_COMPARISONS[name], left, right)
        found = self._column(node)
        return None if found is None else pushdown.condition(found.path, self._schema)

    def _comparison(self, op: str, left: _Message, right: _Message) -> Expression | None:
        for one, other, found in ((left, right, op), (right, left, _MIRRORED.get(op, op))):
            column, constant = self._column(one), self._literal(other)
            if column is not None and constant is not None:
                return pushdown.comparison(found, column, constant)
        return None

    def _guarded(self, node: _Message) -> Expression | None:
        """Return `IF x IS NOT NULL THEN x IN (...) ELSE NULL`, which is how DuckDB writes IN."""
        [choice] = _messages(node, _IF)
        clauses, other = _messages(choice, 1), _messages(choice, 2)
        if len(clauses) != 1 or len(other) != 1 or 29 not in _only(_messages(other[0], _LITERAL)):
            return None
        [guard], [value] = _messages(clauses[0], 1), _messages(clauses[0], 2)
        name, arguments = self._call(guard)
        if name != "is_not_null" or len(arguments) != 1 or _IN not in value:
            return None
        operand = _messages(_only(_messages(value, _IN)), 1)
        if len(operand) != 1 or self._column(operand[0]) != self._column(arguments[0]):
            return None
        return self._membership(value, unknown_for_null=True)

    def _membership(self, node: _Message, *, unknown_for_null: bool) -> Expression | None:
        listed = _only(_messages(node, _IN))
        column = self._column(_only(_messages(listed, 1)))
        if column is None:
            return None
        found = pushdown.membership(column, [self._literal(option) for option in _messages(listed, 2)])
        return found if found is None or unknown_for_null else And((Not(IsNull(column)), found))

    def _call(self, node: _Message) -> tuple[str, list[_Message]]:
        """Return a function and its arguments; the name is empty for other nodes."""
        if _CALL not in node:
            return "", []
        call = _only(_messages(node, _CALL))
        name = self._functions.get(_number(call, 1), "?")
        return name, [_only(_messages(argument, 3)) for argument in _messages(call, 4)]

    def _column(self, node: _Message) -> Column | None:
        if _SELECTION not in node:
            return None
        segment = _only(_messages(_only(_messages(node, _SELECTION)), 1))
        path: list[str] = []
        level: object = self._schema
        while segment:
            chosen = _only(_messages(segment, 2))
            if not isinstance(level, StructType) or 2 not in segment:
                return None
            found = level.fields[_number(chosen, 1)]
            path.append(found.name)
            level = found.type
            segment = _only(_messages(chosen, 2))
        return pushdown.column(path, self._schema)

    def _literal(self, node: _Message) -> Literal | None:
        for number, values in _only(_messages(node, _LITERAL)).items():
            if number in _VALUES:
                return pushdown.constant(_VALUES[number](values[-1]))
        return None


# ---------------------------------------------------------------------------------------------------- literals
def _signed(value: int | bytes) -> int:
    """Return a varint as the signed number that it stands for."""
    assert isinstance(value, int)
    return value - (1 << 64) if value >> 63 else value


def _whole(arrow_type: pa.DataType) -> Callable[[int | bytes], pa.Scalar]:
    return lambda value: pa.scalar(_signed(value), pa.int64()).cast(arrow_type)


def _text(arrow_type: pa.DataType) -> Callable[[int | bytes], pa.Scalar]:
    return lambda value: pa.scalar(value, pa.binary()).cast(arrow_type)


def _float(form: str, arrow_type: pa.DataType) -> Callable[[int | bytes], pa.Scalar]:
    def read(value: int | bytes) -> pa.Scalar:
        assert isinstance(value, bytes)
        return pa.scalar(struct.unpack(form, value)[0], arrow_type)

    return read


def _decimal(value: int | bytes) -> pa.Scalar:
    assert isinstance(value, bytes)
    message = _parse(value)
    [digits] = message[1]
    assert isinstance(digits, bytes)
    decimal = pa.decimal128(_number(message, 2), _number(message, 3))
    return pa.Array.from_buffers(decimal, 1, [None, pa.py_buffer(digits)])[0]


# The fields of Expression.Literal; a time is a number of microseconds, a date one of days.
_VALUES: dict[int, Callable[[int | bytes], pa.Scalar]] = {
    1: lambda value: pa.scalar(bool(value)),
    2: _whole(pa.int8()),
    3: _whole(pa.int16()),
    5: _whole(pa.int32()),
    7: _whole(pa.int64()),
    10: _float("<f", pa.float32()),
    11: _float("<d", pa.float64()),
    12: _text(pa.string()),
    13: _text(pa.binary()),
    14: _whole(pa.timestamp("us")),
    16: lambda value: _whole(pa.int32())(value).cast(pa.date32()),
    24: _decimal,
    27: _whole(pa.timestamp("us", tz="UTC")),
}


# ---------------------------------------------------------------------------------------------- protocol buffers
def _parse(data: bytes) -> _Message:
    """Return the fields of a message. Raises ValueError and IndexError for data that is none."""
    found: _Message = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        wire = key & 7
        if wire == 0:
            found.setdefault(key >> 3, []).append(varint())
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"There is no wire type {wire}.")
        size = varint() if wire == 2 else 8 if wire == 1 else 4
        found.setdefault(key >> 3, []).append(data[at : at + size])
        at += size
    return found


def _messages(message: _Message, number: int) -> list[_Message]:
    return [_parse(value) for value in message.get(number, ()) if isinstance(value, bytes)]


def _only(messages: list[_Message]) -> _Message:
    return messages[0] if len(messages) == 1 else {}


def _number(message: _Message, number: int) -> int:
    value = message.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def _functions(message: _Message) -> Iterator[tuple[int, str]]:
    """Yield number and name of each function that an extended expression declares."""
    for extension in _messages(message, _FUNCTIONS):
        for function in _messages(extension, 3):
            name = function.get(3, [b""])[-1]
            yield _number(function, 2), name.decode() if isinstance(name, bytes) else ""
