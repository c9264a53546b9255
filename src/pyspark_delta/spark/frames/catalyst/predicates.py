"""Translates Catalyst predicates to expressions (`expressions.tree`), so that the scan planner can skip files.

Nodes are translated directly and not as SQL text: types stay exact, and neither qualifiers nor the session time zone
can change the meaning. A node without a counterpart becomes `Opaque`, which never drops a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from pyspark_delta.errors import DeltaError
from pyspark_delta.expressions.tree import (
    And,
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
)
from pyspark_delta.schema.json import parse_type
from pyspark_delta.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_WIDENING = {
    "byte": ("short", "integer", "long"),
    "short": ("integer", "long"),
    "integer": ("long",),
}
_SEPARATOR = "\x00"
_MOST_VALUES = 10_000  # of an IN list
_UNIX_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as Spark's relation has it (`physical`), and as the table names it (`logical`)."""

    logical: StructField
    physical: StructField


class _NotTranslatable(Exception):
    """A node has no counterpart in `expressions.tree`."""


class Translator:
    """Translates predicates over a relation with the given columns."""

    def __init__(self, columns: Sequence[RelationColumn]) -> None:
        self._columns = {column.physical.name.casefold(): column for column in columns}

    def translate(self, predicates: Sequence[Any]) -> Expression | None:
        """Return the conjunction of those Catalyst predicates that can be translated; None if there are none."""
        parts = [self._predicate(predicate) for predicate in predicates]
        useful = tuple(part for part in parts if not isinstance(part, Opaque))
        if len(useful) > 1:
            return And(useful)
        return useful[0] if useful else None

    def _predicate(self, node: Any) -> Expression:
        name = kind_of(node)
        try:
            return self._known(name, node)
        except _NotTranslatable:
            return Opaque(name)

    def _known(self, name: str, node: Any) -> Expression:
        if name in ("And", "Or"):
            operands = (self._predicate(node.left()), self._predicate(node.right()))
            return And(operands) if name == "And" else Or(operands)
        if name == "Not":
            return Not(self._predicate(node.child()))
        if name in _COMPARISONS:
            return Comparison(_COMPARISONS[name], self._value(node.left()), self._value(node.right()))
        if name == "IsNull":
            return IsNull(self._value(node.child()))
        if name == "IsNotNull":
            return Not(IsNull(self._value(node.child())))
        if name == "In":
            operand = self._value(node.value())
            return In(operand, tuple(self._literal(one) for one in _values(node.list())))
        if name == "InSet":
            return self._in_set(node)
        if name == "StartsWith":
            return self._starts_with(node)
        if name in ("AttributeReference", "GetStructField", "Literal"):
            return self._value(node)
        raise _NotTranslatable

    def _value(self, node: Any) -> Expression:
        name = kind_of(node)
        if name == "Literal":
            return self._literal(node)
        if name in ("AttributeReference", "GetStructField"):
            return self._column(name, node)
        if name == "Cast":
            return self._cast(node)
        raise _NotTranslatable

    def _column(self, name: str, node: Any) -> Column:
        column = self._resolve(name, node)
        return Column(column[0], column[1].type)

    def _resolve(self, name: str, node: Any) -> tuple[tuple[str, ...], StructField, StructField]:
        """Return the logical path, the logical field and the physical field of a column or nested field."""
        if name == "AttributeReference":
            column = self._columns.get(str(node.name()).casefold())
            if column is None:
                raise _NotTranslatable
            return (column.logical.name,), column.logical, column.physical
        if name != "GetStructField":
            raise _NotTranslatable
        child = node.child()
        path, logical, physical = self._resolve(kind_of(child), child)
        if not isinstance(logical.type, StructType) or not isinstance(physical.type, StructType):
            raise _NotTranslatable
        wanted = str(node.extractFieldName()).casefold()
        for inner_logical, inner_physical in zip(logical.type, physical.type, strict=True):
            if inner_physical.name.casefold() == wanted:
                return (*path, inner_logical.name), inner_logical, inner_physical
        raise _NotTranslatable

    def _cast(self, node: Any) -> Expression:
        """Translate a cast that widens an integer: it cannot fail, and has the same result in every engine."""
        operand = self._value(node.child())
        target = _data_type(node.dataType())
        if not isinstance(operand, Column) or str(target) not in _WIDENING.get(str(operand.type), ()):
            raise _NotTranslatable
        return Cast(operand, target)

    def _literal(self, node: Any) -> Literal:
        if kind_of(node) != "Literal":
            raise _NotTranslatable
        data_type = _data_type(node.dataType())
        value = node.value()
        if value is None:
            return Literal(None, data_type)
        if not isinstance(value, int | float | str | bytes | bytearray):
            value = value.toString()
        return Literal(_python_value(value, data_type), data_type)

    def _in_set(self, node: Any) -> Expression:
        operand = self._value(node.child())
        data_type = _data_type(node.child().dataType())
        values = node.hset()
        size = values.size()
        if size > _MOST_VALUES or data_type == PrimitiveType("binary") or values.contains(None):
            raise _NotTranslatable
        texts = values.mkString(_SEPARATOR).split(_SEPARATOR)
        if len(texts) != size:
            raise _NotTranslatable
        return In(operand, tuple(Literal(_python_value(text, data_type), data_type) for text in texts))

    def _starts_with(self, node: Any) -> Expression:
        operand, prefix = self._value(node.left()), self._literal(node.right())
        if not isinstance(prefix.value, str):
            raise _NotTranslatable
        return StartsWith(operand, prefix.value)


def _values(sequence: Any) -> list[Any]:
    if sequence.size() > _MOST_VALUES:
        raise _NotTranslatable
    return elements(sequence)


def _data_type(java_type: Any) -> DataType:
    try:
        return parse_type(orjson.loads(java_type.json()))
    except DeltaError:
        raise _NotTranslatable from None


def _python_value(value: Any, data_type: DataType) -> Any:
    """Return a value of Catalyst, or its text, as the Python value that PyArrow expects."""
    convert = _convert_decimal if isinstance(data_type, DecimalType) else _CONVERSIONS.get(str(data_type))
    if convert is None:
        raise _NotTranslatable
    try:
        return convert(value)
    except (ValueError, OverflowError, InvalidOperation):
        raise _NotTranslatable from None  # for example a date outside of the years 1 to 9999


def _convert_decimal(value: Any) -> Decimal:
    return Decimal(str(value))


def _convert_float(value: Any) -> float:
    number = float(value)
    if math.isnan(number):
        raise ValueError("Spark orders NaN after all other numbers")
    return number


def _convert_boolean(value: Any) -> bool:
    return value if isinstance(value, bool) else {"true": True, "false": False}[str(value)]


def _convert_date(value: Any) -> date:
    return date.fromordinal(int(value) + _UNIX_EPOCH_ORDINAL)


def _convert_timestamp_ntz(value: Any) -> datetime:
    return _EPOCH + timedelta(microseconds=int(value))


def _convert_timestamp(value: Any) -> datetime:
    return _convert_timestamp_ntz(value).replace(tzinfo=UTC)


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "string": str,
    "binary": bytes,
    "boolean": _convert_boolean,
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": _convert_float,
    "double": _convert_float,
    "date": _convert_date,
    "timestamp": _convert_timestamp,
    "timestamp_ntz": _convert_timestamp_ntz,
}
