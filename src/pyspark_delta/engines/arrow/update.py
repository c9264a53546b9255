"""UPDATE with values that Arrow computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from pyspark_delta.engines.arrow.delete import not_exact
from pyspark_delta.engines.arrow.file_changes import RowUpdate, change_files
from pyspark_delta.engines.arrow.rewriting import update_files
from pyspark_delta.engines.arrow.row_rules import RuleBinder
from pyspark_delta.engines.arrow.row_search import search_rows
from pyspark_delta.engines.arrow.values import ValueBinder
from pyspark_delta.engines.contract import DRIVER, NONE, CannotRun, Done, answer
from pyspark_delta.engines.row_changes import Changed, ChangedRows, RowAction
from pyspark_delta.expressions.exact import names_of_table
from pyspark_delta.expressions.tree import Column, Expression
from pyspark_delta.protocol.draft import no_files
from pyspark_delta.statements.row_ids import context_of
from pyspark_delta.statements.target import Candidates, Target, by_partition


@dataclass(frozen=True)
class ArrowUpdate:
    """Updates rows of candidate files that meet a condition in SQL, or all rows if it is None.

    `texts` returns the new values as SQL by the path of their column, None for one without SQL text.
    """

    target: Target
    candidates: Candidates
    condition: str | None
    texts: Callable[[], Mapping[tuple[str, ...], str | None]]

    def find(self) -> Done[Changed] | CannotRun:
        """Find the rows by the columns of the condition alone."""
        condition = self._exact()
        if isinstance(condition, CannotRun):
            return condition
        files = self.candidates.all
        if not files.num_rows:
            return self._nothing(files)

        def found() -> Done[Changed]:
            rows = search_rows(self.target, files, condition)
            return Done(Changed(files, ChangedRows.of_deletions(rows.value), self.candidates.reads), rows.engine)

        return answer(found)

    def change(self) -> Done[Changed] | CannotRun:
        """Write the rows with their new values."""
        condition = self._exact()
        if isinstance(condition, CannotRun):
            return condition
        update = bind_update(self.target, self.texts())
        if isinstance(update, CannotRun):
            return update
        files = by_partition(self.candidates.all, self.target.context)
        if not files.num_rows:
            return self._nothing(files)

        def changed() -> Done[Changed]:
            change = self._rewritten if _keeps_places(self.target, update) else self._moved
            rows = change(files, condition, update)
            return Done(Changed(files, rows.value, self.candidates.reads), rows.engine)

        return answer(changed)

    def _moved(self, files: pa.Table, condition: Expression | None, update: RowUpdate) -> Done[ChangedRows]:
        """Write the updated rows to new files; they are deleted from their old files."""
        return change_files(self.target, files, condition, update)

    def _rewritten(self, files: pa.Table, condition: Expression | None, update: RowUpdate) -> Done[ChangedRows]:
        """Rewrite files that have a row to update; rows keep their order."""
        found = search_rows(self.target, files, condition).value
        if not found:
            return Done(ChangedRows.nothing(1), DRIVER)
        written = update_files(self.target, files, found, update)
        count, new = sum(map(len, found.values())), written.value
        rows = ChangedRows(
            new, no_files(), {}, (count,), count, rewritten=tuple(sorted(found)), copied=new.rows - count
        )
        return Done(rows, written.engine)

    def _exact(self) -> Expression | CannotRun | None:
        """Return the condition as Arrow computes it; None for all rows."""
        if self.condition is None:
            return None
        return self.target.exact_condition(self.condition) or not_exact(self.target, self.condition)

    def _nothing(self, files: pa.Table) -> Done[Changed]:
        return Done(Changed(files, ChangedRows.nothing(1), self.candidates.reads), NONE)


def _keeps_places(target: Target, update: RowUpdate) -> bool:
    """Return True if files are rewritten and an updated row stays in its partition, and no change data is written."""
    return not (target.uses_vectors or target.has_feed or update.context.in_any_order)


def bind_update(target: Target, values: Mapping[tuple[str, ...], str | None]) -> RowUpdate | CannotRun:
    """Bind new values, valid SQL by the path of their column, as Arrow computes them.

    None stands for a value without SQL text.
    """
    schema = target.configuration.schema
    names = names_of_table(schema, target.alias)
    binder = ValueBinder(schema, names, target.time_zone, lambda field: Column((field.name,), field.type))
    bound = binder.columns(schema, values)
    if isinstance(bound, CannotRun):
        return bound
    rules = RuleBinder(target).bind(bound.keys())
    if isinstance(rules, CannotRun):
        return rules
    actions = (RowAction.UPDATE, *([RowAction.PREIMAGE] if target.has_feed else []))
    context = context_of(target, target.context, actions, has_changes=target.has_feed)
    changed = {*bound, *(field.name for field, _ in rules.generated)}
    moves = not changed.isdisjoint(target.context.partition_columns)
    return RowUpdate(replace(context, in_any_order=moves), target.context.schema, bound, rules)
