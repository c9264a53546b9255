"""`DeltaMergeBuilder`, with delta-spark's names: builds a merge clause by clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column

from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.spark.conf.arguments import check_condition, check_values
from pyspark_delta.statements.merge.clauses import Clause, RowKind, merge_html, merge_text
from pyspark_delta.statements.merge.merge import Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_delta.statements.plan import ChangePlan
    from pyspark_delta.statements.target import Condition

    Values = Mapping[str, Column | str]


class DeltaMergeBuilder:
    """A builder for a merge. Every method returns a new builder; `execute` runs the merge.

    For each row, the first clause of its kind whose condition is true applies. Conditions and values are SQL text or
    Columns. Clauses for matched rows may use columns of both sides, clauses for rows that are not matched those of the
    source, and clauses for rows not matched by the source those of the table.
    """

    def __init__(
        self, merge: Merge, execute: Callable[[Merge], DataFrame], plan: Callable[[Merge], ChangePlan[DataFrame]]
    ) -> None:
        self._merge = merge
        self._execute = execute
        self._plan = plan

    def whenMatchedUpdate(
        self,
        condition: Condition | None = None,
        set: Values | None = None,  # noqa: A002 - delta-spark's name
    ) -> DeltaMergeBuilder:
        """Update matched rows; `set` maps columns to their new values."""
        return self._with(RowKind.MATCHED, RowAction.UPDATE, condition, check_values("set", set))

    def whenMatchedUpdateAll(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Update all columns of matched rows with the source columns of the same names."""
        return self._with(RowKind.MATCHED, RowAction.UPDATE, condition)

    def whenMatchedDelete(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Delete matched rows."""
        return self._with(RowKind.MATCHED, RowAction.DELETE, condition)

    def whenNotMatchedInsert(
        self, condition: Condition | None = None, values: Values | None = None
    ) -> DeltaMergeBuilder:
        """Insert the source rows without a match; `values` maps columns to values, others get their default or null."""
        return self._with(RowKind.NOT_MATCHED, RowAction.INSERT, condition, check_values("values", values))

    def whenNotMatchedInsertAll(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Insert the source rows without a match; all columns get the source columns of the same names."""
        return self._with(RowKind.NOT_MATCHED, RowAction.INSERT, condition)

    def whenNotMatchedBySourceUpdate(
        self,
        condition: Condition | None = None,
        set: Values | None = None,  # noqa: A002 - delta-spark's name
    ) -> DeltaMergeBuilder:
        """Update rows of the table that match no row of the source; `set` maps columns to their new values."""
        return self._with(RowKind.BY_SOURCE, RowAction.UPDATE, condition, check_values("set", set))

    def whenNotMatchedBySourceDelete(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Delete rows of the table that match no row of the source."""
        return self._with(RowKind.BY_SOURCE, RowAction.DELETE, condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Add the source columns that the table lacks, if clauses give them values."""
        return self._changed(evolves=True)

    def execute(self) -> DataFrame:
        """Run the merge in one commit.

        Return one row with `num_affected_rows`, `num_updated_rows`, `num_deleted_rows` and `num_inserted_rows`. Nothing
        is committed if no row changes. Raises InvalidOperationError for clauses that do not fit the table or the
        source, and if several source rows would change one row; InvalidPredicateError, SchemaMismatchError,
        ConstraintViolationError and AppendOnlyTableError; and CommitConflictError if concurrent commits conflict too
        often.
        """
        return self._execute(self._merge)

    def plan(self) -> ChangePlan[DataFrame]:
        """Return what `execute` would do, without writing anything.

        Raises the errors that `execute` raises before it writes.
        """
        return self._plan(self._merge)

    def __repr__(self) -> str:
        return merge_text("DeltaMergeBuilder", self._merge.condition, self._merge.clauses)

    def _repr_html_(self) -> str:
        return merge_html("DeltaMergeBuilder", self._merge.condition, self._merge.clauses)

    def _with(
        self, kind: RowKind, action: RowAction, condition: Condition | None, values: Values | None = None
    ) -> DeltaMergeBuilder:
        check_condition("condition", condition)
        return self._changed(clauses=(*self._merge.clauses, Clause(kind, action, condition, values)))

    def _changed(self, **changes: Any) -> DeltaMergeBuilder:
        return DeltaMergeBuilder(replace(self._merge, **changes), self._execute, self._plan)
