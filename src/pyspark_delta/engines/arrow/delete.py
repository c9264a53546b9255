"""DELETE with a condition that Arrow computes."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyspark_delta.engines.arrow.file_changes import RowUpdate, change_files
from pyspark_delta.engines.arrow.row_search import search_rows
from pyspark_delta.engines.contract import CannotRun, Done, answer
from pyspark_delta.engines.row_changes import ChangeContext, ChangedRows
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.statements.target import Target


def not_exact(target: Target, condition: str) -> CannotRun:
    """Return why Arrow does not compute a condition."""
    return CannotRun(f"the condition is not one that Arrow computes exactly: {target.inexact_reason(condition)}")


@dataclass(frozen=True)
class ArrowDelete:
    """Deletes the rows of some files that meet a condition in SQL."""

    target: Target
    files: pa.Table
    condition: str
    context: ChangeContext

    def find(self) -> Done[ChangedRows] | CannotRun:
        """Find the rows by the columns of the condition alone."""
        condition = self.target.exact_condition(self.condition)
        return not_exact(self.target, self.condition) if condition is None else answer(lambda: self._find(condition))

    def change(self) -> Done[ChangedRows] | CannotRun:
        """Find the rows, and write them to change data files if the context has some."""
        if self.context.changes is None:
            return self.find()
        condition = self.target.exact_condition(self.condition)
        return not_exact(self.target, self.condition) if condition is None else answer(lambda: self._change(condition))

    def _find(self, condition: Expression) -> Done[ChangedRows]:
        found = search_rows(self.target, self.files, condition)
        return Done(ChangedRows.of_deletions(found.value), found.engine)

    def _change(self, condition: Expression) -> Done[ChangedRows]:
        return change_files(self.target, self.files, condition, RowUpdate(self.context, self.context.columns))
