"""A merge that Arrow computes completely: its condition and clauses, bound to both sides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from pyspark_delta.engines.arrow.new_rows import default_value
from pyspark_delta.engines.arrow.row_rules import NO_RULES, BoundRules, RuleBinder
from pyspark_delta.engines.arrow.values import NewValue, ValueBinder, expressions_in
from pyspark_delta.engines.contract import CannotRun
from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.exact import Names, exact_condition, inexact_reason, names_of_table
from pyspark_delta.expressions.name_resolution import find_fields, is_padded
from pyspark_delta.expressions.syntax import parse
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Column, Expression, Literal, all_of
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind
from pyspark_delta.schema.traversal import fields_in, types_in
from pyspark_delta.schema.types import (
    DAY_TIME_INTERVAL,
    YEAR_MONTH_INTERVAL,
    StructField,
    StructType,
)
from pyspark_delta.statements.assignments import resolve_assignments
from pyspark_delta.statements.merge.clauses import (
    Clause,
    RowKind,
    check_identity_values,
    columns_from_source,
    is_single_delete,
)
from pyspark_delta.statements.merge.condition import SideNames, conjuncts_of
from pyspark_delta.statements.target import Target
from pyspark_delta.transaction.row_rules import row_rules

TARGET, SOURCE = "t", "s"
"""The structs of the two sides in rows that expressions are computed on."""

_INTERVALS = (DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL)
_IDENTITY = (ComputedKind.IDENTITY_ALWAYS, ComputedKind.IDENTITY_BY_DEFAULT)


@dataclass(frozen=True, slots=True)
class JoinKey:
    """A column of the table, and the top-level column of the source that it must equal.

    With `is_null_safe`, null equals null.
    """

    target: Column
    source: StructField
    is_null_safe: bool = False


@dataclass(frozen=True, slots=True)
class BoundClause:
    """A clause; `values` are those of the columns of the table, in order, empty for a deletion.

    New rows get identity values in the columns `numbered`, and follow the `rules`.
    """

    kind: RowKind
    action: RowAction
    condition: Expression | None
    values: tuple[NewValue, ...] = ()
    numbered: tuple[ComputedColumn, ...] = ()
    rules: BoundRules = NO_RULES


@dataclass(frozen=True, slots=True)
class BoundMerge:
    """A merge bound to both sides. Rows match if their `keys` are equal and they meet the condition `rest`.

    With `is_single_delete`, a row of the table may match several rows of the source.
    """

    keys: tuple[JoinKey, ...]
    rest: Expression | None
    clauses: tuple[BoundClause, ...]
    is_single_delete: bool

    def has(self, kind: RowKind) -> bool:
        """Return True if a clause is for rows of a kind."""
        return any(clause.kind is kind for clause in self.clauses)

    @property
    def numbered(self) -> tuple[ComputedColumn, ...]:
        """The identity columns that get new values."""
        return tuple(dict.fromkeys(column for clause in self.clauses for column in clause.numbered))

    def columns(self, side: str, *, values: bool = True) -> tuple[str, ...]:
        """Return the top-level columns of a side that the merge reads; without `values`, to find the rows alone."""
        found = [key.target.path[0] if side == TARGET else key.source.name for key in self.keys]
        for expression in self._expressions(values=values):
            found += [column.path[1] for column in columns_of(expression) if column.path[0] == side]
        return tuple(dict.fromkeys(found))

    def _expressions(self, *, values: bool) -> Iterable[Expression]:
        if self.rest is not None:
            yield self.rest
        for clause in self.clauses:
            if clause.condition is not None:
                yield clause.condition
            for value in clause.values if values else ():
                yield from expressions_in(value)


def bind_merge(
    target: Target, source: StructType, condition: str, clauses: Sequence[Clause | None], *, evolves: bool = False
) -> BoundMerge | CannotRun:
    """Bind a merge whose condition, clauses and values are valid SQL; None stands for a clause without SQL text.

    With `evolves`, the source may lack columns and members of structs. Raises InvalidOperationError for clauses that
    set all columns if the source lacks some, and for identity columns that clauses may not set.
    """
    reason = _unsupported_reason(target, source, clauses)
    if reason is not None:
        return CannotRun(reason)
    joined = _bound_condition(target, source, condition)
    if joined is None:
        names = _names(SideNames(target.configuration.schema, target.alias, source), RowKind.MATCHED)
        reason = inexact_reason(condition, _both(target.configuration.schema, source), names, target.time_zone)
        return CannotRun(f"Arrow does not compute the condition of the merge exactly{reason and f': {reason}'}")
    binder = _Binder(target, source, evolves=evolves)
    given = [clause for clause in clauses if clause is not None]
    bound: list[BoundClause] = []
    for clause in given:
        found = binder.clause(clause)
        if isinstance(found, CannotRun):
            return CannotRun(f"{clause.name}: {found.reason}", found.error)
        bound.append(found)
    merge = BoundMerge(*joined, tuple(bound), is_single_delete(given))
    for name in merge.columns(SOURCE):
        field = source.find(name)
        if field is not None and not _is_taken(field):
            return CannotRun(f"values of the column '{name}' of the source differ between Arrow and Spark")
    return merge


def _unsupported_reason(target: Target, source: StructType, clauses: Sequence[Clause | None]) -> str | None:
    if any(clause is None for clause in clauses):
        return "a clause has an expression without SQL text"
    if len({field.name.casefold() for field in source}) < len(source):
        return "columns of the source have the same name"
    for field in target.configuration.schema:
        if any(part.annotation is not None for part in types_in(field.type)):
            return f"the column '{field.name}' has a user-defined type"
    return None


def _is_taken(field: StructField) -> bool:
    """Return True if values of a column are the same whether Arrow reads them or Spark sends them."""
    inner = list(types_in(field.type))
    if any(part.annotation is not None or part in _INTERVALS for part in inner):
        return False
    return not any(is_padded([one]) for one in (field, *fields_in(field.type)))


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
        key = sides.key_of(part)
        if key is not None:
            field = sides.of_source(key.source)
            assert field is not None
            keys.append(JoinKey(key.column, field, key.is_null_safe))
            continue
        bound = exact_condition(part, _both(schema, source), _names(sides, RowKind.MATCHED), target.time_zone)
        if bound is None:
            return None
        rest.append(bound)
    return tuple(keys), all_of(*rest)


class _Binder:
    """Binds the clauses of one merge."""

    def __init__(self, target: Target, source: StructType, *, evolves: bool) -> None:
        self._target, self._source, self._evolves = target, source, evolves
        self._schema = target.configuration.schema
        self._both = _both(self._schema, source)
        self._sides = SideNames(self._schema, target.alias, source)
        rules = row_rules(target.configuration)
        self._computed = {column.name: column for column in rules.computed}
        self._rules = RuleBinder(target)

    def clause(self, given: Clause) -> BoundClause | CannotRun:
        """Bind a clause. Raises as `bind_merge`."""
        condition = None
        if given.condition is not None:
            scope = (self._both, _names(self._sides, given.kind), self._target.time_zone)
            condition = exact_condition(cast(str, given.condition), *scope)
            if condition is None:
                reason = inexact_reason(cast(str, given.condition), *scope)
                return CannotRun(f"Arrow does not compute the condition exactly: {reason}")
        if given.action is RowAction.DELETE:
            return BoundClause(given.kind, given.action, condition)
        found = self._all(given) if given.values is None else self._named(given, cast(Mapping[str, str], given.values))
        if isinstance(found, CannotRun):
            return found
        return self._complete(given, condition, found)

    def _complete(
        self, given: Clause, condition: Expression | None, found: Mapping[str, NewValue]
    ) -> BoundClause | CannotRun:
        """Return the clause with values for all columns: old values, defaults, null, and what the table computes."""
        rules = self._rules.bind(found.keys())
        if isinstance(rules, CannotRun):
            return rules
        is_insert, values = given.action is RowAction.INSERT, []
        for field in self._target.context.schema:
            value = found[field.name] if field.name in found else self._other(field, is_insert=is_insert)
            if isinstance(value, CannotRun):
                return value
            values.append(value)
        numbered = self._numbered(found) if is_insert else ()
        return BoundClause(given.kind, given.action, condition, tuple(values), numbered, rules)

    def _other(self, field: StructField, *, is_insert: bool) -> NewValue | CannotRun:
        """Return the value of a column that a clause does not set."""
        if not is_insert:
            return Column((TARGET, field.name), field.type)
        column = self._computed.get(field.name)
        if column is None or column.kind is not ComputedKind.DEFAULT:
            return Literal(None, field.type)
        value = default_value(column, field, self._target.time_zone)
        if value is None:
            return CannotRun(f"Arrow does not compute the default of '{field.name}' exactly: {column.expression}")
        return value

    def _numbered(self, given: Collection[str]) -> tuple[ComputedColumn, ...]:
        found = (column for column in self._computed.values() if column.name not in given)
        return tuple(column for column in found if column.kind in _IDENTITY)

    def _all(self, clause: Clause) -> Mapping[str, NewValue] | CannotRun:
        """Return the columns of the source with the names of columns of the table."""
        names = columns_from_source(self._schema, self._source, clause, self._computed, evolves=self._evolves)
        check_identity_values(self._schema, self._computed, clause, [(name,) for name in names])
        keeps = self._evolves and clause.action is RowAction.UPDATE
        found: dict[str, NewValue] = {}
        for name in names:
            field, given = self._schema.find(name), self._source.find(name)
            assert field is not None
            assert given is not None
            binder = self._values(clause, partial(self._of_source, given.name), keeps=keeps)
            value = binder.value("value", field, (name,))
            if isinstance(value, CannotRun):
                return value
            found[name] = value
        return found

    def _of_source(self, name: str, _: Sequence[str]) -> tuple[StructField, ...] | None:
        return find_fields((SOURCE, name), self._both)

    def _named(self, clause: Clause, given: Mapping[str, str]) -> Mapping[str, NewValue] | CannotRun:
        resolved = resolve_assignments(self._schema, given, self._target.alias, clause.name)
        check_identity_values(self._schema, self._computed, clause, resolved)
        return self._values(clause, _names(self._sides, clause.kind)).columns(self._schema, resolved)

    def _values(self, clause: Clause, names: Names, *, keeps: bool = False) -> ValueBinder:
        def old(field: StructField) -> Expression:
            is_new = clause.kind is RowKind.NOT_MATCHED
            return Literal(None, field.type) if is_new else Column((TARGET, field.name), field.type)

        return ValueBinder(self._both, names, self._target.time_zone, old, fills=self._evolves, keeps=keeps)


def _both(target: StructType, source: StructType) -> StructType:
    return StructType((StructField(TARGET, target), StructField(SOURCE, source)))


def _names(sides: SideNames, kind: RowKind) -> Names:
    """Return the meaning of names in a clause for rows of that kind."""
    both = _both(sides.table, sides.source)

    table = names_of_table(sides.table, sides.alias)

    def of_both(parts: Sequence[str]) -> tuple[StructField, ...] | None:
        fields = sides.of_table(parts)
        if fields is not None:
            return find_fields((TARGET, *(field.name for field in fields)), both)
        path = sides.in_source(parts)
        return None if path is None else find_fields((SOURCE, *path), both)

    def of_source(parts: Sequence[str]) -> tuple[StructField, ...] | None:
        path = sides.of_source_alone(parts)
        return None if path is None else find_fields((SOURCE, *path), both)

    def of_table(parts: Sequence[str]) -> tuple[StructField, ...] | None:
        fields = table(parts)
        return None if fields is None else find_fields((TARGET, *(field.name for field in fields)), both)

    match kind:
        case RowKind.MATCHED:
            return of_both
        case RowKind.NOT_MATCHED:
            return of_source
        case RowKind.BY_SOURCE:
            return of_table
