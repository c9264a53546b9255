"""New values of columns as Arrow computes them: stored as the type of the column, or parts of a struct."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.conform import cast_column
from pyspark_delta.engines.arrow.new_rows import check_cast
from pyspark_delta.engines.contract import CannotRun, EngineDeclined
from pyspark_delta.errors import (
    ConstraintViolationError,
    InvalidOperationError,
    InvalidPredicateError,
    SchemaMismatchError,
)
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.exact import Names, exact_value, inexact_reason
from pyspark_delta.expressions.name_resolution import column_of, find_fields, is_collated, is_padded
from pyspark_delta.expressions.syntax import parse
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Column, Expression, Literal
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.store_assignment import (
    check_complete,
    check_storable,
    differences,
    lacking_members,
    matched_members,
)
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import DataType, StructField, StructType


@dataclass(frozen=True, slots=True)
class Stored:
    """A value of the type `data` that is stored in a column of the type `table`: structs by the names of their members.

    A member that the value lacks keeps its value in `old`, or is null without it. `name` is the column.
    """

    name: str
    value: Expression
    data: DataType
    table: DataType
    old: Expression | None = None


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The struct `old` of the type `table` with new members; None keeps a member. A null struct becomes a struct."""

    old: Expression
    table: StructType
    members: tuple[NewValue | None, ...]


NewValue: TypeAlias = "Expression | Stored | Rebuilt"


def compute_value(value: NewValue, rows: pa.RecordBatch) -> pa.Array:
    """Return the values for some rows. Raises ComputationError, and EngineDeclined for a value that does not fit."""
    match value:
        case Stored(name, inner, data, table, old):
            before = None if old is None else compute(old, rows)
            try:
                return _stored(compute(inner, rows), data, table, before, name)
            except ConstraintViolationError as error:
                raise EngineDeclined(f"a value does not fit the type of the column '{name}'", error) from None
        case Rebuilt(old, table, members):
            # Where every member is new, the rows need not have the old struct (see `expressions_in`).
            before = compute(old, rows) if None in members else None
            found = [
                pc.struct_field(before, [place]) if member is None else compute_value(member, rows)
                for place, member in enumerate(members)
            ]
            fields = [pa.field(field.name, one.type) for field, one in zip(table, found, strict=True)]
            return pa.StructArray.from_arrays(found, fields=fields)
        case _:
            return compute(value, rows)


def expressions_in(value: NewValue) -> Iterator[Expression]:
    """Yield the expressions that a value is computed from."""
    match value:
        case Stored():
            yield value.value
            yield from () if value.old is None else (value.old,)
        case Rebuilt(old, _, members):
            if None in members:
                yield old
            for member in members:
                yield from () if member is None else expressions_in(member)
        case _:
            yield value


def _stored(values: pa.Array, data: DataType, table: DataType, old: pa.Array | None, name: str) -> pa.Array:
    if old is None or not (isinstance(data, StructType) and isinstance(table, StructType)):
        return cast_column(values, data, table, name)
    members = []
    for place, (field, source) in enumerate(matched_members(data, table)):
        before = pc.struct_field(old, [place])
        if source is None:
            members.append(before)
        else:
            inner = pc.struct_field(values, [source])
            members.append(_stored(inner, data.fields[source].type, field.type, before, f"{name}.{field.name}"))
    is_null = pc.is_null(values)
    if any(lacking_members(data, table, ())):
        is_null = pc.and_(is_null, pc.is_null(old))
    fields = [pa.field(field.name, member.type) for field, member in zip(table, members, strict=True)]
    return pa.StructArray.from_arrays(members, fields=fields, mask=is_null)


# --------------------------------------------------------------------------------------------------------- binding
@dataclass(frozen=True)
class ValueBinder:
    """Binds values in SQL to columns of `schema`, found by `names`.

    `old` returns the value of a column of the table before the statement. With `fills`, new structs may lack members,
    which are null or, with `keeps`, keep their old values.
    """

    schema: StructType
    names: Names
    time_zone: str
    old: Callable[[StructField], Expression]
    fills: bool = False
    keeps: bool = False

    def columns(
        self, table: StructType, given: Mapping[tuple[str, ...], str | None]
    ) -> dict[str, NewValue] | CannotRun:
        """Return the new values of top-level columns. `given` are values by the path of the column, as the table
        spells it; None stands for a value without SQL text.
        """
        found: dict[str, NewValue] = {}
        for top in dict.fromkeys(path[0] for path in given):
            field = table.find(top)
            assert field is not None
            parts = {path[1:]: text for path, text in given.items() if path[0] == top}
            value = self._rebuilt(field, parts, (field.name,), self.old(field))
            if isinstance(value, CannotRun):
                return value
            found[field.name] = value
        return found

    def _rebuilt(
        self, field: StructField, parts: Mapping[tuple[str, ...], str | None], path: tuple[str, ...], old: Expression
    ) -> NewValue | CannotRun:
        if () in parts:
            return self.value(parts[()], field, path)
        data_type = field.type
        assert isinstance(data_type, StructType)
        if data_type.annotation is not None:
            return _not_exact(path)
        members: list[NewValue | None] = []
        for member in data_type:
            inner = {rest[1:]: text for rest, text in parts.items() if rest[0] == member.name}
            if not inner:
                members.append(None)
                continue
            value = self._rebuilt(member, inner, (*path, member.name), _member(old, member))
            if isinstance(value, CannotRun):
                return value
            members.append(value)
        return Rebuilt(old, data_type, tuple(members))

    def value(self, text: str | None, field: StructField, path: tuple[str, ...]) -> NewValue | CannotRun:
        """Return a value in SQL as a column stores it; `field` is the column, or the member of a struct at `path`."""
        if text is None or any(part.annotation is not None for part in types_in(field.type)):
            return _not_exact(path)
        try:
            node = parse(text)
        except InvalidPredicateError:
            return _not_exact(path)
        if isinstance(node, exp.Null):
            return Literal(None, field.type)
        if not self.keeps or not isinstance(field.type, StructType):
            found = exact_value(text, field.type, self.schema, self.names, self.time_zone)
            if found is not None:
                return found if self._are_same_in_arrow(found) else _not_exact(path)
        reason = inexact_reason(text, self.schema, self.names, self.time_zone, field.type)
        return self._column(node, field, path) or _not_exact(path, reason)

    def _column(self, node: exp.Expression, field: StructField, path: tuple[str, ...]) -> NewValue | CannotRun | None:
        """Return a column as another one stores it, which may need casts of its parts."""
        named = self.names([part.name for part in node.parts]) if isinstance(node, exp.Column) else None
        if named is None or not self._are_same_in_arrow(column_of(named)):
            return None
        column = column_of(named)
        try:
            if not self.fills:
                check_complete(column.type, replace(field, name=path[-1]))
            given, stored = StructType((replace(field, type=column.type),)), StructType((field,))
            check_storable(given, stored, casts=True)
            if any(differences(given, stored)):
                return None  # a cast that may round
            check_cast(column.type, field.type, ".".join(path), self.time_zone)
        except (InvalidOperationError, SchemaMismatchError) as error:
            return CannotRun(f"the value does not fit the type of the column '{'.'.join(path)}'", error)
        old = self.old(field) if self.keeps and len(path) == 1 and isinstance(field.type, StructType) else None
        return Stored(".".join(path), column, column.type, field.type, old)

    def _are_same_in_arrow(self, value: Expression) -> bool:
        """Return True if the columns of a value are the same whether Arrow reads them or Spark."""
        for column in columns_of(value):
            fields = find_fields(column.path, self.schema)
            if fields is None or is_padded(fields) or is_collated(fields):
                return False
            if any(part.annotation is not None for part in types_in(column.type)):
                return False
        return True


def _member(old: Expression, member: StructField) -> Expression:
    return Column((*old.path, member.name), member.type) if isinstance(old, Column) else Literal(None, member.type)


def _not_exact(path: tuple[str, ...], reason: str = "") -> CannotRun:
    because = f": {reason}" if reason else ""
    return CannotRun(f"Arrow does not compute the new value of '{'.'.join(path)}' exactly{because}")


def typed(values: pa.Array, data_type: DataType) -> pa.Array:
    """Return the values in exactly the type that readers of a column get."""
    arrow_type = to_arrow(data_type, all_nullable=True)
    return values if values.type == arrow_type else values.cast(arrow_type)
