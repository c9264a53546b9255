"""`Table.merge`: a merge built clause by clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.statements.merge.clauses import Clause, RowKind, merge_html, merge_text
from pyspark_delta.statements.merge.merge import Merge
from pyspark_delta.statements.plan import ChangePlan
from pyspark_delta.table.arguments import check_arguments
from pyspark_delta.table.results import ChangeResult

MERGED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
Values = Mapping[str, str]


class TableMerge:
    """A merge. Every method returns a new one with one more clause; `execute` runs it in one commit.

    A row takes the first clause of its kind whose condition is true. Conditions and values are SQL text. Clauses for
    matched rows see both sides, clauses for rows without a match see the source.
    """

    def __init__(self, merge: Merge, run: Callable[[Merge, bool], Any]) -> None:
        self._merge = merge
        self._run = run

    @check_arguments
    def when_matched_update(self, values: Values, condition: str | None = None) -> TableMerge:
        """Give matched rows new values in some columns."""
        return self._with(RowKind.MATCHED, RowAction.UPDATE, condition, values)

    @check_arguments
    def when_matched_update_all(self, condition: str | None = None) -> TableMerge:
        """Give matched rows the values of the source in all columns, by name."""
        return self._with(RowKind.MATCHED, RowAction.UPDATE, condition)

    @check_arguments
    def when_matched_delete(self, condition: str | None = None) -> TableMerge:
        """Delete matched rows."""
        return self._with(RowKind.MATCHED, RowAction.DELETE, condition)

    @check_arguments
    def when_not_matched_insert(self, values: Values, condition: str | None = None) -> TableMerge:
        """Insert a row for each source row without a match. Columns without a value get their default or null."""
        return self._with(RowKind.NOT_MATCHED, RowAction.INSERT, condition, values)

    @check_arguments
    def when_not_matched_insert_all(self, condition: str | None = None) -> TableMerge:
        """Insert the source rows without a match, all columns by name."""
        return self._with(RowKind.NOT_MATCHED, RowAction.INSERT, condition)

    @check_arguments
    def when_not_matched_by_source_update(self, values: Values, condition: str | None = None) -> TableMerge:
        """Update rows of the table that no row of the source matches."""
        return self._with(RowKind.BY_SOURCE, RowAction.UPDATE, condition, values)

    @check_arguments
    def when_not_matched_by_source_delete(self, condition: str | None = None) -> TableMerge:
        """Delete rows of the table that no row of the source matches."""
        return self._with(RowKind.BY_SOURCE, RowAction.DELETE, condition)

    def execute(self) -> ChangeResult:
        """Run the merge. Nothing is committed if no row changes.

        Raises InvalidOperationError for clauses that do not fit the table or the source, for rows that several source
        rows match, and for what Arrow does not compute exactly; InvalidPredicateError, SchemaMismatchError,
        ConstraintViolationError, AppendOnlyTableError, and CommitConflictError.
        """
        result: ChangeResult = self._run(self._merge, False)
        return result

    def plan(self) -> ChangePlan[ChangeResult]:
        """Return what `execute` would do, without writing anything.

        Raises as `execute`, except for values that break a rule of the table.
        """
        result: ChangePlan[ChangeResult] = self._run(self._merge, True)
        return result

    def __repr__(self) -> str:
        return merge_text("TableMerge", self._merge.condition, self._merge.clauses)

    def _repr_html_(self) -> str:
        return merge_html("TableMerge", self._merge.condition, self._merge.clauses)

    def _with(
        self, kind: RowKind, action: RowAction, condition: str | None, values: Values | None = None
    ) -> TableMerge:
        clause = Clause(kind, action, condition, values)
        return TableMerge(replace(self._merge, clauses=(*self._merge.clauses, clause)), self._run)
