"""Assigns the joined rows of a MERGE to clauses, and computes their new values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyspark.sql.functions as sf

from pyspark_delta.engines.row_changes import ChangeContext, RowAction
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind
from pyspark_delta.scan.planner import ROW_ID_COLUMN
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.spark.conf.strings import as_stored
from pyspark_delta.spark.engine.dml.assignments import Assigned, assign
from pyspark_delta.spark.engine.dml.changed import ACTION, ChangeFrame, generated, generated_columns, job_of, old_name
from pyspark_delta.spark.engine.dml.merge_sides import Sides
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.engine.write.alignment import spark_type
from pyspark_delta.spark.engine.write.exchange import exchange_of
from pyspark_delta.spark.engine.write.rules import number_rows, unfit_name
from pyspark_delta.spark.frames.plain_columns import aliased, chosen, named_columns
from pyspark_delta.statements.assignments import resolve_assignments
from pyspark_delta.statements.merge.clauses import (
    EXAMPLES,
    MOST_COLUMNS,
    Clause,
    RowKind,
    check_identity_values,
    columns_from_source,
    is_single_delete,
    repeated_match_error,
)
from pyspark_delta.statements.target import FILE, ROW
from pyspark_delta.transaction.row_rules import row_rules
from pyspark_delta.write.change_data import change_context

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_IDENTITY = (ComputedKind.IDENTITY_ALWAYS, ComputedKind.IDENTITY_BY_DEFAULT)
_ONCE = "__pyspark_delta_once"
_KEY = "__pyspark_delta_key_{}"


@dataclass(frozen=True)
class RowChange:
    """A clause, and its new values by column, cast to the types of the table."""

    clause: Clause
    values: Mapping[str, Assigned] = field(default_factory=dict)

    @property
    def action(self) -> RowAction:
        """What the clause does with a row."""
        return self.clause.action


def row_changes(sides: Sides, clauses: Sequence[Clause], *, evolves: bool) -> tuple[RowChange, ...]:
    """Return the clauses with their new values resolved. With `evolves`, the source may lack columns and members.

    Raises InvalidOperationError for unknown columns and for identity columns that a clause may not set, and
    SchemaMismatchError for values that cannot be stored in their columns.
    """
    probe = sides.joined(sides.target.empty(), sf.lit(True), "inner")
    resolver = _Resolver(sides, probe, evolves)
    return tuple(RowChange(clause, resolver.values(clause)) for clause in clauses)


class _Resolver:
    """Resolves the values of clauses. Clauses that set all columns share the resolved values."""

    def __init__(self, sides: Sides, probe: DataFrame, evolves: bool) -> None:
        self._sides, self._probe, self._evolves = sides, probe, evolves
        self._schema = sides.target.configuration.schema
        self._computed = {c.name: c for c in row_rules(sides.target.configuration).computed}
        self._all: dict[bool, dict[str, Assigned]] = {}  # key: True if members that the source lacks keep their values

    def values(self, clause: Clause) -> Mapping[str, Assigned]:
        if clause.action is RowAction.DELETE:
            return {}
        if clause.values is None:
            return self._all_columns(clause)
        resolved = resolve_assignments(self._schema, clause.values, self._sides.target.alias, clause.name)
        check_identity_values(self._schema, self._computed, clause, resolved)
        return assign(self._probe, self._schema, resolved, self._old(clause), fills=self._evolves)

    def _all_columns(self, clause: Clause) -> Mapping[str, Assigned]:
        sides = self._sides
        names = columns_from_source(self._schema, sides.schema, clause, self._computed, evolves=self._evolves)
        given: dict[tuple[str, ...], Column | str] = {}
        for name in names:
            value = sides.given(name)
            assert value is not None
            given[name,] = value
        check_identity_values(self._schema, self._computed, clause, given)
        keeps = self._evolves and clause.action is RowAction.UPDATE
        if keeps not in self._all:
            self._all[keeps] = assign(
                self._probe, self._schema, given, self._sides.old, fills=self._evolves, keeps=keeps
            )
        return self._all[keeps]

    def _old(self, clause: Clause) -> _Old:
        return _Old(self._schema, None if clause.kind is RowKind.NOT_MATCHED else self._sides)


@dataclass(frozen=True)
class _Old:
    """The old value of a column; null for rows that were not in the table."""

    schema: StructType
    sides: Sides | None

    def __call__(self, name: str) -> Column:
        if self.sides is not None:
            return self.sides.old(name)
        found = self.schema.find(name)
        assert found is not None
        return sf.lit(None).cast(spark_type(found.type))


@dataclass(frozen=True)
class MergedRows:
    """The joined rows of a merge, and their clauses.

    `kind` is the kind of all rows, or None if there are several kinds.
    """

    sides: Sides
    changes: tuple[RowChange, ...]
    joined: DataFrame
    kind: RowKind | None

    @property
    def actions(self) -> tuple[RowAction, ...]:
        """The actions by number, one for each clause."""
        return tuple(change.action for change in self.changes)

    @property
    def target(self) -> SparkTarget:
        """The table."""
        return self.sides.target

    def taken(self) -> DataFrame:
        """Return the rows to which a clause applies, with the number of the first such clause as `ACTION`."""
        number: Column | None = None
        for position, change in enumerate(self.changes):
            condition = change.clause.condition
            test = (
                sf.lit(True) if condition is None else sf.expr(condition) if isinstance(condition, str) else condition
            )
            if self.kind is None:
                is_kind = self.sides.is_kind(change.clause.kind)
                test = is_kind if condition is None else is_kind & test
            number = sf.when(test, position) if number is None else number.when(test, position)
        assert number is not None
        if len(self.changes) == 1 and self.changes[0].clause.condition is None:  # all joined rows are of its kind
            number = sf.lit(0)
        frame = self.joined.select("*", number.cast("int").alias(ACTION))
        return frame.where(sf.col(ACTION).isNotNull())

    def taken_by(self, numbers: Sequence[int]) -> DataFrame:
        """Return the rows that change by one of the clauses with the given numbers."""
        return self.taken().where(sf.col(ACTION).isin(list(numbers)))

    def search(self) -> tuple[DataFrame, ChangeContext]:
        """Return the frame and the context of a job that finds the rows and writes nothing."""
        return self.taken().select(sf.col(ACTION), *self._locations()[:2]), ChangeContext(self.actions)

    def job(self) -> tuple[DataFrame, ChangeContext]:
        """Return the frame and the context of the job that runs the merge."""
        target, names = self.target, self.target.context.schema.names
        is_written = any(action.is_written for action in self.actions)
        # If rows are only deleted, by deletion vectors, readers find the changes without change data files.
        only_deletes = not is_written and target.uses_vectors
        has_changes = target.has_feed and not only_deletes and any(action.deletes for action in self.actions)
        rows = self._once() if has_changes else self.taken()
        if not (is_written or has_changes):
            return self.search()
        changing = self._changing(rows, has_changes=has_changes)
        if not is_written:
            columns = named_columns(target.spark, names)
            context = ChangeContext(self.actions, target.context.schema, changes=change_context(target.context))
            return changing.frame.select(*columns, sf.col(ACTION), sf.col(FILE), sf.col(ROW)), context
        frame, context = job_of(target, changing, has_changes=has_changes)
        exchange = exchange_of(target.spark, target.options, target.configuration, context.columns.names)
        return (frame if exchange is None else exchange.apply(frame)), context

    def _once(self) -> DataFrame:
        """Return `taken`, with each deleted row only once, even if several source rows match it."""
        rows = self.taken()
        if self.kind is not None or not is_single_delete([change.clause for change in self.changes]):
            return rows
        new = sf.when(sf.col(FILE).isNull(), sf.monotonically_increasing_id())
        return rows.withColumn(_ONCE, new).dropDuplicates([FILE, ROW, _ONCE]).drop(_ONCE)

    def _locations(self) -> list[Column]:
        """Return the file, the position and, if tracked, the id of each row; null for rows of the source."""
        names = [FILE, ROW, ROW_ID_COLUMN] if self.target.has_row_ids else [FILE, ROW]
        if self.kind is RowKind.NOT_MATCHED:
            return [sf.lit(None).cast("long").alias(name) for name in names]
        return [sf.col(name) for name in names]

    def _changing(self, rows: DataFrame, *, has_changes: bool) -> ChangeFrame:
        schema = self.target.context.schema
        defaults = {
            name: sf.expr(as_stored(self.target.spark, text))
            for name, text in row_rules(self.target.configuration).defaults.items()
        }
        columns = [aliased(self._value(one, defaults.get(one.name), keeps=has_changes), one.name) for one in schema]
        unfit = [one for one in schema if any(self._unfit(one.name))]
        columns += [aliased(self._by_number.value(self._unfit(one.name)), unfit_name(one)) for one in unfit]
        if has_changes:
            columns += [aliased(self.sides.old(name), old_name(name)) for name in schema.names]
        frame = rows.select(*columns, sf.col(ACTION), *self._locations())
        numbered = self._numbered()
        frame = generated(self.target, number_rows(frame, numbered), self._given())
        return ChangeFrame(frame, self.actions, unfit, tuple(numbered))

    def _value(self, one: StructField, default: Column | None, *, keeps: bool) -> Column:
        """Return the new value of a column by `ACTION`. With `keeps`, deleted rows have their old value."""
        data_type = spark_type(one.type)
        choices: list[tuple[int, object, Column]] = []
        for number, change in enumerate(self.changes):
            given = change.values.get(one.name)
            if given is not None:
                choices.append((number, given, given.value))
            elif change.action is RowAction.UPDATE or (change.action is RowAction.DELETE and keeps):
                choices.append((number, "old", self.sides.old(one.name)))
            elif change.action is RowAction.INSERT and default is not None:
                choices.append((number, "default", default.cast(data_type)))
        return self._by_number.value(choices) if choices else sf.lit(None).cast(data_type)

    def _unfit(self, name: str) -> list[tuple[int, object, Column]]:
        found = ((number, change.values.get(name)) for number, change in enumerate(self.changes))
        return [(n, given, given.unfit) for n, given in found if given is not None and given.unfit is not None]

    def _numbered(self) -> dict[ComputedColumn, Column]:
        """Return the identity columns that get new numbers, each with the condition for the rows to number."""
        found = {}
        for column in row_rules(self.target.configuration).computed:
            numbers = [
                number
                for number, change in enumerate(self.changes)
                if change.action is RowAction.INSERT and column.name not in change.values
            ]
            if column.kind in _IDENTITY and numbers:
                found[column] = self._by_number.is_one_of(numbers)
        return found

    def _given(self) -> dict[str, Column | bool]:
        """Return for each generated column the condition for the rows whose value is given; others are computed."""
        given: dict[str, Column | bool] = {}
        for name in generated_columns(self.target):
            numbers = [
                number
                for number, change in enumerate(self.changes)
                if name in change.values or change.action is RowAction.DELETE
            ]
            given[name] = len(numbers) == len(self.changes) or (bool(numbers) and self._by_number.is_one_of(numbers))
        return given

    @cached_property
    def _by_number(self) -> _ByNumber:
        return _ByNumber(self.target.spark, len(self.changes))


class _ByNumber:
    """Chooses values by the clause that `ACTION` names."""

    def __init__(self, spark: SparkSession, clauses: int) -> None:
        self._spark, self._clauses = spark, clauses
        self._tests: dict[tuple[int, ...], Column] = {}

    def is_one_of(self, numbers: Sequence[int]) -> Column:
        """Return the condition that a row changes by one of these clauses."""
        key = tuple(numbers)
        if key not in self._tests:
            self._tests[key] = sf.col(ACTION).isin(list(key))
        return self._tests[key]

    def value(self, choices: Sequence[tuple[int, object, Column]]) -> Column:
        """Return the value for the clause; null for clauses without a value.

        `choices` are numbers of clauses, keys and values. Clauses with the same key share a branch of the expression.
        """
        grouped: dict[object, tuple[list[int], Column]] = {}
        for number, key, value in choices:
            grouped.setdefault(key if isinstance(key, str) else id(key), ([], value))[0].append(number)
        groups = sorted(grouped.values(), key=lambda one: len(one[0]))  # the largest last
        result = groups.pop()[1] if len(choices) == self._clauses else None
        if not groups:
            assert result is not None
            return result
        return chosen(self._spark, [(self.is_one_of(numbers), value) for numbers, value in groups], result)


def repeated_matches(merged: MergedRows, columns: Sequence[str]) -> InvalidOperationError:
    """Return the error for rows of the table that several source rows would change. Runs a job that finds examples.

    `columns` are the columns shown of each row; if there are none, the first columns of the table.
    """
    names = list(columns or merged.target.configuration.schema.names)[:MOST_COLUMNS]
    keys = [sf.first(merged.sides.old(name)).cast("string").alias(_KEY.format(i)) for i, name in enumerate(names)]
    deleting = [number for number, action in enumerate(merged.actions) if action.deletes]
    taken = merged.taken_by(deleting)
    repeated = taken.groupBy(FILE, ROW).agg(sf.count(sf.lit(1)).alias("rows"), *keys).where("rows > 1")
    found = repeated.orderBy(sf.col("rows").desc()).limit(EXAMPLES).collect()
    shown = [
        f"({', '.join(f'{name}={row[_KEY.format(i)]}' for i, name in enumerate(names))}): {row['rows']} rows"
        for row in found
    ]
    return repeated_match_error(shown)
