"""The rows that a merge changes: their new values, their places in files, and the rows before their update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from pyspark_delta.engines.arrow.bound_merge import TARGET, BoundClause, BoundMerge
from pyspark_delta.engines.arrow.matching import Matches, repeated_rows, sides, target_keys, without_repetitions
from pyspark_delta.engines.arrow.new_rows import identity_values
from pyspark_delta.engines.arrow.values import NewValue, compute_value
from pyspark_delta.engines.contract import EngineDeclined
from pyspark_delta.engines.row_changes import ChangeContext, RowAction
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Column
from pyspark_delta.scan.planner import ROW_ID_COLUMN
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.statements.merge.clauses import EXAMPLES, MOST_COLUMNS, repeated_match_error
from pyspark_delta.statements.row_ids import context_of
from pyspark_delta.statements.target import FILE, ROW, Target
from pyspark_delta.write.change_data import change_context

_INSERTED_AT_ONCE = 1 << 17  # rows


class MergedRows:
    """Makes the batches of a merge. With `writes` false, they hold only the places of rows and their clauses."""

    def __init__(self, target: Target, merge: BoundMerge, *, writes: bool) -> None:
        self._target, self._merge, self._writes = target, merge, writes
        self.actions = tuple(clause.action for clause in merge.clauses)
        self.is_written = writes and any(action.is_written for action in self.actions)
        deletes = any(action.deletes for action in self.actions)
        # If rows are only deleted, readers see which ones from the vectors.
        self._has_changes = writes and target.has_feed and deletes and (self.is_written or not target.uses_vectors)
        self._schema = target.context.schema
        self._types = [to_arrow(field.type, all_nullable=True) for field in self._schema]
        self._old = tuple(Column((TARGET, field.name), field.type) for field in self._schema)
        self._deletes = np.array([action.deletes for action in self.actions], np.bool_)
        self._position = 0  # of the next row that gets identity values
        self.context = self._context_of()

    def _context_of(self) -> ChangeContext:
        target = self._target
        if self.is_written:
            data = replace(target.context, numbered=self._merge.numbered)
            actions = (*self.actions, RowAction.PREIMAGE) if self._has_changes else self.actions
            return context_of(target, data, actions, has_changes=self._has_changes, in_any_order=True)
        if self._has_changes:
            return ChangeContext(self.actions, self._schema, changes=change_context(target.context), in_any_order=True)
        return ChangeContext(self.actions)

    def columns_of_table(self) -> tuple[str, ...]:
        """Return the columns of the table that are read."""
        asked = self._merge.columns(TARGET, values=self._writes)
        return tuple(dict.fromkeys((*asked, *(self._schema.names if self._has_changes else ()))))

    # ---------------------------------------------------------------------------------------------------- changes
    def changes(self, found: Matches, rows: pa.RecordBatch, source: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield what clauses make of rows of the table, as `ChangeContext` says.

        Raises EngineDeclined if several rows of the source change one of them, and for a row that violates a condition.
        """
        found = self._deduplicated(found, rows)
        for number, clause in enumerate(self._merge.clauses):
            taken = found.only(found.clause == number)
            if not len(taken.target):
                continue
            places = _Places.of(rows, taken.target)
            if not self._has_columns:
                yield self._batch([], number, places)
                continue
            is_update = clause.action is RowAction.UPDATE
            if not (is_update or self._has_changes):
                nothing = [pa.nulls(len(taken.target), data_type) for data_type in self._types]
                yield self._batch(nothing, number, places)
                continue
            both = sides(rows, source, taken.target, taken.source)
            if is_update:
                yield self._batch(self._new(clause, both), number, places)
            if self._has_changes:
                old = self._columns(self._old, both)
                yield self._batch(old, len(self.actions) if is_update else number, places)

    def inserts(self, found: Matches, source: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the new rows, as `ChangeContext` says. Raises EngineDeclined for a row that violates a condition."""
        for number, clause in enumerate(self._merge.clauses):
            taken = found.only(found.clause == number)
            for start in range(0, len(taken.source), _INSERTED_AT_ONCE):
                given = taken.source[start : start + _INSERTED_AT_ONCE]
                columns = []
                if self._has_columns:
                    columns = self._new(clause, sides(source, source, np.full(len(given), -1), given))
                yield self._batch(columns, number, _Places.nowhere(len(given)))

    @property
    def _has_columns(self) -> bool:
        return bool(self.context.columns.fields)

    def _deduplicated(self, found: Matches, rows: pa.RecordBatch) -> Matches:
        """Return the matches without repeated deletions, if several source rows may match a row."""
        is_deleted = self._deletes[found.clause]
        repeated, counts = repeated_rows(found, is_deleted)
        if not len(repeated):
            return found
        if not self._merge.is_single_delete:
            error = repeated_match_error(self._shown(rows, repeated[:EXAMPLES], counts))
            raise EngineDeclined("several rows of the source match a row of the table", error)
        return without_repetitions(found, is_deleted)

    def _shown(self, rows: pa.RecordBatch, repeated: np.ndarray, counts: np.ndarray) -> list[str]:
        """Return the keys of some rows as text, and how many rows of the source matched each."""
        names = [column.path[0] for key in target_keys(self._merge.keys) for column in columns_of(key)]
        names = list(dict.fromkeys(names or (name for name in self._schema.names if name in rows.schema.names)))
        shown = rows.take(pa.array(repeated)).select(names[:MOST_COLUMNS]).to_pylist()
        return [
            f"({', '.join(f'{name}={value}' for name, value in row.items())}): {count} rows"
            for row, count in zip(shown, counts.tolist(), strict=False)
        ]

    # ----------------------------------------------------------------------------------------------------- values
    def _new(self, clause: BoundClause, both: pa.RecordBatch) -> list[pa.Array]:
        """Return the new values of a clause in the columns of the table, by all rules."""
        columns = self._columns(clause.values, both)
        for column in clause.numbered:
            place = self._schema.names.index(column.name)
            try:
                columns[place] = identity_values(column, self._position, both.num_rows)
            except ConstraintViolationError as error:
                raise EngineDeclined("an identity value does not fit its type", error) from None
        if clause.numbered:
            self._position += both.num_rows
        return clause.rules.apply(columns, self._schema.names, self._target.context)

    def _columns(self, values: Sequence[NewValue], both: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns of the table, in the types that readers get."""
        found = [compute_value(value, both) for value in values]
        return [
            v if v.type == data_type else v.cast(data_type) for v, data_type in zip(found, self._types, strict=True)
        ]

    def _batch(self, columns: list[pa.Array], action: int, places: _Places) -> pa.RecordBatch:
        rows = len(places.files)
        ids = (places.ids, pa.nulls(rows, pa.int64()))[: len(self.context.columns) - len(columns)]
        arrays = [*columns, *ids, pa.repeat(pa.scalar(action, pa.int32()), rows), places.files, places.rows]
        return pa.RecordBatch.from_arrays(arrays, [str(number) for number in range(len(arrays))])


@dataclass(frozen=True, slots=True)
class _Places:
    """The files and positions of rows, and their ids; null for new rows."""

    files: pa.Array
    rows: pa.Array
    ids: pa.Array

    @classmethod
    def of(cls, rows: pa.RecordBatch, taken: np.ndarray) -> _Places:
        indices = pa.array(taken)
        has_ids = ROW_ID_COLUMN in rows.schema.names
        return cls(
            rows.column(FILE).take(indices),
            rows.column(ROW).take(indices),
            rows.column(ROW_ID_COLUMN).take(indices) if has_ids else pa.nulls(len(taken), pa.int64()),
        )

    @classmethod
    def nowhere(cls, count: int) -> _Places:
        return cls(*(pa.nulls(count, pa.int64()) for _ in range(3)))
