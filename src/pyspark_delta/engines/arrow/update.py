"""UPDATE with values that Arrow computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from pyspark_delta.engines.arrow.checks import bound_checks
from pyspark_delta.engines.arrow.delete import NOT_EXACT
from pyspark_delta.engines.arrow.file_changes import RowUpdate, change_files
from pyspark_delta.engines.arrow.row_search import search_rows
from pyspark_delta.engines.contract import NONE, CannotRun, Done, answer
from pyspark_delta.engines.row_changes import Changed, ChangedRows, RowAction
from pyspark_delta.expressions.exact import exact_value, names_of_table
from pyspark_delta.expressions.name_resolution import find_fields, is_collated, is_padded
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.schema.types import VARIANT, VOID, DecimalType, PrimitiveType, StructField
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
            rows = change_files(self.target, files, condition, update)
            return Done(Changed(files, rows.value, self.candidates.reads), rows.engine)

        return answer(changed)

    def _exact(self) -> Expression | CannotRun | None:
        """Return the condition as Arrow computes it; None for all rows."""
        if self.condition is None:
            return None
        return self.target.exact_condition(self.condition) or NOT_EXACT

    def _nothing(self, files: pa.Table) -> Done[Changed]:
        return Done(Changed(files, ChangedRows.nothing(1), self.candidates.reads), NONE)


def bind_update(target: Target, values: Mapping[tuple[str, ...], str | None]) -> RowUpdate | CannotRun:
    """Bind new values, valid SQL by the path of their column, as Arrow computes them.

    None stands for a value without SQL text.
    """
    checks = bound_checks(target)
    if isinstance(checks, CannotRun):
        return checks
    bound = _bound_values(target, values)
    if isinstance(bound, CannotRun):
        return bound
    actions = (RowAction.UPDATE, *([RowAction.PREIMAGE] if target.has_feed else []))
    context = context_of(target, target.context, actions, has_changes=target.has_feed)
    moves = not bound.keys().isdisjoint(target.context.partition_columns)
    return RowUpdate(replace(context, in_any_order=moves), target.context.schema, bound, checks)


def _bound_values(target: Target, values: Mapping[tuple[str, ...], str | None]) -> dict[str, Expression] | CannotRun:
    bound: dict[str, Expression] = {}
    for path, text in values.items():
        field = target.configuration.schema.find(path[0])
        value = None if len(path) > 1 or field is None or text is None else _bound_value(target, field, text)
        if value is None:
            return CannotRun(f"Arrow does not compute the new value of '{'.'.join(path)}' exactly")
        bound[path[0]] = value
    return bound


def _bound_value(target: Target, field: StructField, text: str) -> Expression | None:
    """Return the value of a column; None if Arrow does not compute it and its store assignment exactly."""
    schema = target.configuration.schema
    if not _is_simple(field):
        return None
    value = exact_value(text, field.type, schema, names_of_table(schema, target.alias), target.time_zone)
    if value is None:
        return None
    used = [fields for column in columns_of(value) if (fields := find_fields(column.path, schema)) is not None]
    return None if any(is_padded(fields) or is_collated(fields) for fields in used) else value


def _is_simple(field: StructField) -> bool:
    """Return True if the type has no nested parts and no special meaning."""
    plain = isinstance(field.type, PrimitiveType | DecimalType) and field.type not in (VARIANT, VOID)
    return plain and field.type.annotation is None and not (is_padded([field]) or is_collated([field]))
