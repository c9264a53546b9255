"""`DeltaMergeBuilder`, by delta-spark's names: a merge, clause by clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column

from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.spark.conf.arguments import check_condition, check_values
from pyspark_delta.spark.engine.dml.merge import Merge
from pyspark_delta.statements.merge.clauses import Clause, RowKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_delta.spark.engine.dml.plan import ChangePlan
    from pyspark_delta.statements.target import Condition

    Values = Mapping[str, Column | str]


class DeltaMergeBuilder:
    """A merge to which clauses are added; every method returns a new builder, and `execute` carries it out.

    Of the clauses of one kind, a row takes the first whose condition is true. Conditions and values are SQL text or
    Columns; those of matched rows see both sides, those of rows that are not matched see the source, and those of rows
    not matched by the source see the table.
    """

    def __init__(
        self, merge: Merge, execute: Callable[[Merge], DataFrame], plan: Callable[[Merge], ChangePlan]
    ) -> None:
        self._merge = merge
        self._execute = execute
        self._plan = plan

    def whenMatchedUpdate(
        self,
        condition: Condition | None = None,
        set: Values | None = None,  # noqa: A002 - delta-spark's name
    ) -> DeltaMergeBuilder:
        """Give matched rows new values in the columns that `set` names."""
        return self._with(RowKind.MATCHED, RowAction.UPDATE, condition, check_values("set", set))

    def whenMatchedUpdateAll(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Give matched rows the values of the source in all columns, by name."""
        return self._with(RowKind.MATCHED, RowAction.UPDATE, condition)

    def whenMatchedDelete(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Delete matched rows."""
        return self._with(RowKind.MATCHED, RowAction.DELETE, condition)

    def whenNotMatchedInsert(
        self, condition: Condition | None = None, values: Values | None = None
    ) -> DeltaMergeBuilder:
        """Insert a row for each of the source that matches none; columns without a value are null or their default."""
        return self._with(RowKind.NOT_MATCHED, RowAction.INSERT, condition, check_values("values", values))

    def whenNotMatchedInsertAll(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Insert the rows of the source that match none, all columns by name."""
        return self._with(RowKind.NOT_MATCHED, RowAction.INSERT, condition)

    def whenNotMatchedBySourceUpdate(
        self,
        condition: Condition | None = None,
        set: Values | None = None,  # noqa: A002 - delta-spark's name
    ) -> DeltaMergeBuilder:
        """Give rows of the table that no row of the source matches new values."""
        return self._with(RowKind.BY_SOURCE, RowAction.UPDATE, condition, check_values("set", set))

    def whenNotMatchedBySourceDelete(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Delete rows of the table that no row of the source matches."""
        return self._with(RowKind.BY_SOURCE, RowAction.DELETE, condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Let the merge add the columns of the source that the table lacks, as far as clauses give them values."""
        return self._changed(evolves=True)

    def execute(self) -> DataFrame:
        """Carry out the merge, in one commit; one row with the numbers of affected, updated, deleted, inserted rows.

        Nothing is committed where no row changes. Raises InvalidOperationError for clauses that do not fit the table
        or the source, and for rows that several rows of the source match; InvalidPredicateError, SchemaMismatchError,
        ConstraintViolationError, AppendOnlyTableError, and CommitConflictError where concurrent commits were in the
        way again and again.
        """
        return self._execute(self._merge)

    def plan(self) -> ChangePlan:
        """What `execute` would do, found without writing anything. Raises as `execute` does before it writes."""
        return self._plan(self._merge)

    def _with(
        self, kind: RowKind, action: RowAction, condition: Condition | None, values: Values | None = None
    ) -> DeltaMergeBuilder:
        check_condition("condition", condition)
        return self._changed(clauses=(*self._merge.clauses, Clause(kind, action, condition, values)))

    def _changed(self, **changes: Any) -> DeltaMergeBuilder:
        return DeltaMergeBuilder(replace(self._merge, **changes), self._execute, self._plan)
