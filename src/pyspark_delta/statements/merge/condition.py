"""Analyzes the condition of a MERGE: its parts on the table alone, and the keys that must be equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.coercion import is_comparable
from pyspark_delta.expressions.name_resolution import column_of, find_fields, is_collated, is_padded
from pyspark_delta.expressions.sql import bind_part
from pyspark_delta.expressions.syntax import parse
from pyspark_delta.expressions.tree import Column, Expression, all_of
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.schema.types import BYTE, DOUBLE, FLOAT, INTEGER, LONG, SHORT, DataType, StructField, StructType

_INTEGERS: tuple[DataType, ...] = (BYTE, SHORT, INTEGER, LONG)


@dataclass(frozen=True, slots=True)
class Key:
    """A column of the table that must equal a column of the source; `source` is its name in the condition.

    With `is_null_safe`, null equals null.
    """

    column: Column
    source: tuple[str, ...]
    source_type: DataType
    is_null_safe: bool = False


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """The parts of a condition that rows of the table must meet to match anything.

    `own` is the condition on columns of the table alone. `columns` are the columns that certainly are of the table.
    `text` is the whole condition.
    """

    text: str = ""
    own: Expression | None = None
    keys: tuple[Key, ...] = ()
    columns: tuple[str, ...] = ()


def understand(
    text: str, table: StructType, alias: str | None, source: StructType, *, time_zone: str
) -> MatchCondition:
    """Analyze a condition. Parts that are not certain to be about one side are ignored."""
    try:
        parts = list(conjuncts_of(parse(text)))
    except InvalidPredicateError:
        return MatchCondition()
    names = SideNames(table, alias, source)
    own: list[Expression] = []
    keys: list[Key] = []
    columns: dict[str, None] = {}
    for part in parts:
        found = [names.of_table(column) for column in _columns(part)]
        columns.update({fields[0].name: None for fields in found if fields is not None})
        if found and all(fields is not None for fields in found):
            own.append(bind_part(part, table, time_zone))
        else:
            key = names.key_of(part)
            keys += [key] if key is not None else []
    return MatchCondition(text, all_of(*own), tuple(keys), tuple(columns))


@dataclass(frozen=True, slots=True)
class SideNames:
    """Finds the side of a column by its name, if it is unambiguous."""

    table: StructType
    alias: str | None
    source: StructType

    def of_table(self, parts: Sequence[str]) -> tuple[StructField, ...] | None:
        if self._has_alias(parts):
            return find_fields(parts[1:], self.table)
        # The first of several parts may be the name of the source or of a struct.
        if len(parts) == 1 and self.source.find(parts[0]) is None:
            return find_fields(parts, self.table)
        return None

    def of_source(self, parts: Sequence[str]) -> StructField | None:
        """Return a top-level column of the source, by its own name or qualified by the name of the source."""
        if self._has_alias(parts) or len(parts) > 2 or find_fields(parts, self.table) is not None:
            return None
        if len(parts) == 2 and find_fields(parts, self.source) is not None:
            return None
        same = [field for field in self.source if field.name.casefold() == parts[-1].casefold()]
        return same[0] if len(same) == 1 else None

    def in_source(self, parts: Sequence[str]) -> tuple[str, ...] | None:
        """Return the path of a column of the source, or of a member of one; None if the name may be of the table."""
        if self._has_alias(parts) or find_fields(parts, self.table) is not None:
            return None
        return self.of_source_alone(parts)

    def of_source_alone(self, parts: Sequence[str]) -> tuple[str, ...] | None:
        """Return the path of a column of the source where no column of the table is known; None if it is ambiguous.

        The first of several parts may be the name of the source.
        """
        readings = [find_fields(parts[start:], self.source) for start in range(min(2, len(parts)))]
        found = [fields for fields in readings if fields is not None]
        return tuple(field.name for field in found[0]) if len(found) == 1 else None

    def key_of(self, part: exp.Expression) -> Key | None:
        """Return the key of a part of the condition; None if it is not an equality of columns of the two sides."""
        if type(part) not in (exp.EQ, exp.NullSafeEQ):
            return None
        key = self._key(part.this, part.expression) or self._key(part.expression, part.this)
        return key if key is None or type(part) is exp.EQ else replace(key, is_null_safe=True)

    def _key(self, one: exp.Expression, other: exp.Expression) -> Key | None:
        if not (isinstance(one, exp.Column) and isinstance(other, exp.Column)):
            return None
        fields, given = self.of_table(_parts(one)), self.of_source(_parts(other))
        if fields is None or given is None or is_padded(fields) or is_collated([*fields, given]):
            return None
        own = fields[-1].type
        if not is_comparable(own) or own in (FLOAT, DOUBLE):  # 0.0 equals -0.0, and NaN equals NaN
            return None
        if own != given.type and not (own in _INTEGERS and given.type in _INTEGERS):
            return None
        return Key(column_of(fields), tuple(_parts(other)), given.type)

    def _has_alias(self, parts: Sequence[str]) -> bool:
        return self.alias is not None and len(parts) > 1 and parts[0].casefold() == self.alias.casefold()


def conjuncts_of(node: exp.Expression) -> Iterator[exp.Expression]:
    match node:
        case exp.Paren():
            yield from conjuncts_of(node.this)
        case exp.And():
            yield from conjuncts_of(node.this)
            yield from conjuncts_of(node.expression)
        case _:
            yield node


def _columns(node: exp.Expression) -> list[tuple[str, ...]]:
    if any(isinstance(part, exp.Dot | exp.Query) for part in node.walk()):
        return [("", "")]  # not certain
    return [_parts(column) for column in node.find_all(exp.Column)]


def _parts(column: exp.Column) -> tuple[str, ...]:
    return tuple(part.name for part in column.parts)
