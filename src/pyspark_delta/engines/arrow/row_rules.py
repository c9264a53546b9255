"""The rules of a table for rows that a statement changes: generated columns, identity values, conditions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from pyspark_delta.data.partitions import as_readers_get
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.engines.arrow.new_rows import bound_check, check_rows
from pyspark_delta.engines.arrow.values import typed
from pyspark_delta.engines.contract import CannotRun, EngineDeclined
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.expressions.exact import Names, exact_value, inexact_reason, names_of_table
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.rows import CheckKind, ComputedKind, RowCheck
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.statements.target import Target
from pyspark_delta.transaction.row_rules import RowRules, row_rules
from pyspark_delta.write.new_rows import computed_columns, row_checks


@dataclass(frozen=True, slots=True)
class BoundRules:
    """Columns that are generated from the others, and conditions that changed rows must meet; picklable.

    NOT NULL is not among the conditions: the writer of the rows checks it.
    """

    generated: tuple[tuple[StructField, Expression], ...] = ()
    checks: tuple[tuple[RowCheck, Expression], ...] = ()

    def apply(self, columns: list[pa.Array], names: Sequence[str], context: WriteContext) -> list[pa.Array]:
        """Return the columns of changed rows with generated values. `names` are theirs, `context` is the table's.

        Raises EngineDeclined for a row that violates a condition, and ComputationError.
        """
        if not (self.generated or self.checks):
            return columns
        rows = as_readers_get(context, pa.RecordBatch.from_arrays(columns, list(names)))
        if self.generated:
            found = [typed(compute(value, rows), field.type) for field, value in self.generated]
            for (field, _), values in zip(self.generated, found, strict=True):
                rows = rows.set_column(rows.schema.names.index(field.name), field.name, values)
            rows = as_readers_get(context, rows)
        for check, condition in self.checks:
            try:
                check_rows(check, condition, rows)
            except ConstraintViolationError as error:
                raise EngineDeclined("a row breaks a condition of the table", error) from None
        return list(rows.columns)


NO_RULES = BoundRules()


@dataclass(frozen=True)
class RuleBinder:
    """Binds the rules of a table for the clauses of a statement."""

    target: Target

    def bind(self, given: Collection[str]) -> BoundRules | CannotRun:
        """Return the rules of rows in which the columns `given` have new values that the statement states."""
        computed = computed_columns(self._rules, self.target.context.schema)
        generated = [one for one in computed.values() if one.kind is ComputedKind.GENERATED]
        stated = [one for one in generated if one.name in given]
        bound: list[tuple[StructField, Expression]] = []
        for column in generated:
            if column.name in given:
                continue
            field = self.target.configuration.schema.find(column.name)
            assert field is not None
            value = exact_value(column.expression, field.type, *self._scope)
            if value is None:
                reason = inexact_reason(column.expression, *self._scope, field.type)
                return CannotRun(f"Arrow does not compute the generated column '{column.name}' exactly: {reason}")
            bound.append((field, value))
        checks: list[tuple[RowCheck, Expression]] = []
        for check in row_checks(self._rules, stated, (), self.target.context):
            condition = bound_check(check, self.target.configuration.schema, self.target.time_zone)
            if condition is None:
                return CannotRun(f"{_reason(check)}: {inexact_reason(check.condition, *self._scope)}")
            checks.append((check, condition))
        return BoundRules(tuple(bound), tuple(checks))

    @cached_property
    def _rules(self) -> RowRules:
        return row_rules(self.target.configuration)

    @property
    def _scope(self) -> tuple[StructType, Names, str]:
        schema = self.target.configuration.schema
        return schema, names_of_table(schema, None), self.target.time_zone


def _reason(check: RowCheck) -> str:
    if check.kind is CheckKind.GENERATED:
        return f"Arrow does not check the value of the generated column '{check.name}' exactly"
    return f"Arrow does not compute the {check.kind.value} '{check.name}' exactly"
