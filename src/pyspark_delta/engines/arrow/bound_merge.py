"""A merge that Arrow computes completely: its condition and clauses, bound to both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pyspark_delta.engines.arrow.checks import bound_checks
from pyspark_delta.engines.contract import CannotRun
from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.coercion import is_comparable
from pyspark_delta.expressions.exact import Names, exact_condition, exact_value
from pyspark_delta.expressions.name_resolution import find_fields, is_collated, is_padded
from pyspark_delta.expressions.syntax import parse
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Column, Expression, Literal, all_of
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.protocol.rows import ComputedKind
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.statements.assignments import resolve_assignments
from pyspark_delta.statements.merge.clauses import Clause, RowKind, is_single_delete
from pyspark_delta.statements.merge.condition import SideNames, conjuncts_of
from pyspark_delta.statements.target import Target
from pyspark_delta.transaction.row_rules import row_rules

TARGET, SOURCE = "t", "s"
"""The structs of the two sides in rows that expressions are computed on."""


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A column of the table, and the top-level column of the source that it must equal."""

    target: Column
    source: StructField


@dataclass(frozen=True, slots=True)
class BoundClause:
    """A clause; `values` are those of the columns of the table, in order, empty for a deletion."""

    kind: RowKind
    action: RowAction
    condition: Expression | None
    values: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundMerge:
    """A merge bound to both sides. Rows match if their `keys` are equal and they meet the condition `rest`.

    New rows must meet `checks`. With `is_single_delete`, a row of the table may match several rows of the source.
    """

    keys: tuple[JoinKey, ...]
    rest: Expression | None
    clauses: tuple[BoundClause, ...]
    checks: tuple[Expression, ...]
    is_single_delete: bool

    def columns(self, side: str) -> tuple[str, ...]:
        """Return the top-level columns of a side that the merge reads."""
        found = [key.target.path[0] if side == TARGET else key.source.name for key in self.keys]
        for expression in self._expressions():
            found += [column.path[1] for column in columns_of(expression) if column.path[0] == side]
        return tuple(dict.fromkeys(found))

    def _expressions(self) -> Iterable[Expression]:
        if self.rest is not None:
            yield self.rest
        for clause in self.clauses:
            yield from clause.values
            if clause.condition is not None:
                yield clause.condition


def bind_merge(
    target: Target, source: StructType, condition: str, clauses: Sequence[Clause | None]
) -> BoundMerge | CannotRun:
    """Bind a merge whose condition, clauses and values are valid SQL; None stands for a clause without SQL text."""
    reason = _unsupported_reason(target, source, clauses)
    if reason is not None:
        return CannotRun(reason)
    checks = bound_checks(target)
    if isinstance(checks, CannotRun):
        return checks
    joined = _bound_condition(target, source, condition)
    if joined is None:
        return CannotRun("the condition of the merge has no equal keys, or Arrow does not compute it exactly")
    binder = _Binder(target, source)
    given = [clause for clause in clauses if clause is not None]
    bound: list[BoundClause] = []
    for clause in given:
        found = binder.clause(clause)
        if found is None:
            return CannotRun(f"Arrow does not compute the clause {clause.name} exactly")
        bound.append(found)
    return BoundMerge(*joined, tuple(bound), checks, is_single_delete(given))


def _unsupported_reason(target: Target, source: StructType, clauses: Sequence[Clause | None]) -> str | None:
    schema = target.context.schema
    if any(clause is None for clause in clauses):
        return "a clause has an expression without SQL text"
    if any(clause is not None and clause.kind is RowKind.BY_SOURCE for clause in clauses):
        return "a clause is for rows that the source does not match"
    if target.metadata is not None or target.protocol is not None:
        return "the merge changes the schema of the table"
    if schema.names != target.configuration.schema.names:
        return "the table has columns without values"
    if len({field.name.casefold() for field in source}) < len(source):
        return "columns of the source have the same name"
    for field in (*schema, *source):
        if not _is_taken(field):
            return f"values of the column '{field.name}' differ between Arrow and Spark"
    return None


def _is_taken(field: StructField) -> bool:
    """Return True if values of a column are the same whether Arrow reads them or Spark sends them."""
    return not is_padded([field]) and not is_collated([field]) and _is_taken_type(field.type)


def _is_taken_type(data_type: DataType) -> bool:
    if data_type.annotation is not None:
        return False
    match data_type:
        case StructType(fields):
            return all(_is_taken(field) for field in fields)
        case ArrayType(element):
            return _is_taken_type(element)
        case MapType():
            return _is_taken_type(data_type.key_type) and _is_taken_type(data_type.value_type)
        case _:
            return is_comparable(data_type)


def _bound_condition(
    target: Target, source: StructType, condition: str
) -> tuple[tuple[JoinKey, ...], Expression | None] | None:
    schema = target.configuration.schema
    sides = SideNames(schema, target.alias, source)
    keys: list[JoinKey] = []
    rest: list[Expression] = []
    try:
        parts = list(conjuncts_of(parse(condition)))
    except InvalidPredicateError:
        return None
    for part in parts:
        key = None
        if type(part) is exp.EQ:
            key = sides.key(part.this, part.expression) or sides.key(part.expression, part.this)
        if key is not None:
            field = sides.of_source(key.source)
            assert field is not None
            keys.append(JoinKey(key.column, field))
            continue
        bound = exact_condition(part, _both(schema, source), _names(sides, RowKind.MATCHED), target.time_zone)
        if bound is None:
            return None
        rest.append(bound)
    return (tuple(keys), all_of(*rest)) if keys else None


class _Binder:
    """Binds the clauses of one merge."""

    def __init__(self, target: Target, source: StructType) -> None:
        self._target, self._source = target, source
        self._schema = target.configuration.schema
        self._both = _both(self._schema, source)
        self._sides = SideNames(self._schema, target.alias, source)
        rules = row_rules(target.configuration)
        self._defaults = {column.name for column in rules.computed if column.kind is ComputedKind.DEFAULT}

    def clause(self, given: Clause) -> BoundClause | None:
        condition = None
        if given.condition is not None:
            condition = self._condition(given.kind, cast(str, given.condition))
            if condition is None:
                return None
        if given.action is RowAction.DELETE:
            return BoundClause(given.kind, given.action, condition)
        values = self._all() if given.values is None else self._named(given, cast(Mapping[str, str], given.values))
        return None if values is None else BoundClause(given.kind, given.action, condition, values)

    def _condition(self, kind: RowKind, text: str) -> Expression | None:
        return exact_condition(text, self._both, _names(self._sides, kind), self._zone)

    def _all(self) -> tuple[Expression, ...] | None:
        """Return the columns of the source with the same names."""
        values = [self._column(field) for field in self._schema]
        found = tuple(value for value in values if value is not None)
        return found if len(found) == len(values) else None

    def _column(self, field: StructField) -> Expression | None:
        given = self._source.find(field.name)
        if given is None:
            return None
        path = (SOURCE, given.name)
        return exact_value("value", field.type, self._both, lambda _: find_fields(path, self._both), self._zone)

    def _named(self, clause: Clause, given: Mapping[str, str]) -> tuple[Expression, ...] | None:
        resolved = resolve_assignments(self._schema, given, self._target.alias, clause.name)
        values: list[Expression] = []
        if any(len(path) > 1 for path in resolved):
            return None
        for field in self._schema:
            value = self._value(clause, field, resolved.get((field.name,)))
            if value is None:
                return None
            values.append(value)
        return tuple(values)

    def _value(self, clause: Clause, field: StructField, text: str | None) -> Expression | None:
        if text is not None:
            return exact_value(text, field.type, self._both, _names(self._sides, clause.kind), self._zone)
        if clause.action is RowAction.UPDATE:
            return Column((TARGET, field.name), field.type)
        return None if field.name in self._defaults else Literal(None, field.type)

    @property
    def _zone(self) -> str:
        return self._target.time_zone


def _both(target: StructType, source: StructType) -> StructType:
    return StructType((StructField(TARGET, target), StructField(SOURCE, source)))


def _names(sides: SideNames, kind: RowKind) -> Names:
    """Return the meaning of names in a clause for rows of that kind."""
    both = _both(sides.table, sides.source)

    def of_both(parts: Sequence[str]) -> tuple[StructField, ...] | None:
        fields = sides.of_table(parts)
        if fields is not None:
            return find_fields((TARGET, *(field.name for field in fields)), both)
        given = sides.of_source(parts)
        return None if given is None else of_source((given.name,))

    def of_source(parts: Sequence[str]) -> tuple[StructField, ...] | None:
        # A qualifier names the source, unless the source has a column of that name.
        if len(parts) > 2 or (len(parts) == 2 and sides.source.find(parts[0]) is not None):
            return None
        return find_fields((SOURCE, parts[-1]), both)

    return of_source if kind is RowKind.NOT_MATCHED else of_both
