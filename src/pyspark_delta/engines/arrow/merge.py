"""MERGE in this process: collects the matching rows of the table, joins them with the source, and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.partitions import null_empty_partitions
from pyspark_delta.engines.arrow.bound_merge import SOURCE, TARGET, BoundMerge, JoinKey, bind_merge
from pyspark_delta.engines.arrow.checks import check_rows
from pyspark_delta.engines.arrow.key_search import Keys, find_rows
from pyspark_delta.engines.contract import DRIVER, CannotRun, Done, EngineDeclined, answer
from pyspark_delta.engines.row_changes import ChangeContext, Changed, ChangedRows, RowAction, carry_out, changed_rows
from pyspark_delta.expressions.evaluate import compute, evaluate
from pyspark_delta.expressions.literals import INTEGRAL_BITS
from pyspark_delta.expressions.tree import Cast, Column, Expression, type_of
from pyspark_delta.scan.planner import ROW_ID_COLUMN
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import LONG, StructType
from pyspark_delta.statements.merge.clauses import Clause, RowKind
from pyspark_delta.statements.merge.merge import MergeSearch
from pyspark_delta.statements.row_ids import context_of
from pyspark_delta.statements.target import FILE, ROW, Target
from pyspark_delta.write.change_data import change_context

_NOWHERE = -1  # no row of the source, or no clause


@dataclass(frozen=True)
class ArrowMerge:
    """Merges a source that this process collects.

    `source` is its schema. `condition` is SQL; `clauses` are those of the merge in SQL, None for one without SQL text.
    `search` finds the candidate files, and collects the columns of the source that the merge reads.
    """

    target: Target
    source: StructType
    condition: str
    clauses: Callable[[], Sequence[Clause | None]]
    search: MergeSearch

    def find(self) -> CannotRun:
        """Leave plans to Spark, which counts the rows without holding them in memory."""
        return CannotRun("plans of merges are made by Spark")

    def change(self) -> Done[Changed] | CannotRun:
        """Join the two sides in this process, and write the rows that change."""
        merge = bind_merge(self.target, self.source, self.condition, self.clauses())
        if isinstance(merge, CannotRun):
            return merge
        found = self.search.collect(merge.columns(SOURCE), [key.source.name for key in merge.keys])
        if isinstance(found, CannotRun):
            return found
        candidates, source = found

        def changed() -> Done[Changed]:
            rows = merge_in_driver(self.target, merge, candidates.all, source)
            return Done(Changed(candidates.all, rows, candidates.reads), DRIVER)

        return answer(changed)


def merge_in_driver(target: Target, merge: BoundMerge, files: pa.Table, source: pa.Table) -> ChangedRows:
    """Merge into the files that may have matching rows; `source` has the columns of the merge, by name.

    Raises EngineDeclined and ComputationError for a row that is left to Spark; then nothing is written. Also raises as
    `read_tasks` and `RollingFileWriter`.
    """
    try:
        return _Merging(target, merge, files, _as_batch(source)).run()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EngineDeclined(f"Arrow does not join the two sides: {error}") from None


class _Merging:
    """A merge with its source in memory."""

    def __init__(self, target: Target, merge: BoundMerge, files: pa.Table, source: pa.RecordBatch) -> None:
        self._target, self._merge, self._files, self._source = target, merge, files, source
        self._actions = tuple(clause.action for clause in merge.clauses)
        self._is_written = any(action.is_written for action in self._actions)
        deletes = any(action.deletes for action in self._actions)
        # If rows are only deleted, readers see which ones from the vectors.
        self._has_changes = target.has_feed and deletes and (self._is_written or not target.uses_vectors)
        self._context = self._context_of()

    def run(self) -> ChangedRows:
        rows = self._rows()
        found = self._deduplicated(find_matches(self._merge, rows, self._source))
        return changed_rows(carry_out(self._context, self._batches(found, rows)), self._context)

    def _context_of(self) -> ChangeContext:
        target = self._target
        if not self._is_written:
            if not self._has_changes:
                return ChangeContext(self._actions)
            return ChangeContext(
                self._actions, target.context.schema, changes=change_context(target.context), in_any_order=True
            )
        actions = (*self._actions, RowAction.PREIMAGE) if self._has_changes else self._actions
        return context_of(target, target.context, actions, has_changes=self._has_changes, in_any_order=True)

    def _rows(self) -> pa.RecordBatch:
        """Return the rows of the table that may match."""
        asked = self._merge.columns(TARGET)
        if self._has_changes:
            asked = tuple(dict.fromkeys((*asked, *self._target.configuration.schema.names)))
        row_ids = self._target.has_row_ids and RowAction.UPDATE in self._actions
        keys = keys_of(self._merge.keys, self._source)
        return _as_batch(find_rows(self._target, self._files, keys, asked, row_ids=row_ids))

    def _deduplicated(self, found: Matches) -> Matches:
        """Return the matches without repeated deletions, if several source rows may match a row."""
        deleted = np.array([action.deletes for action in self._actions], np.bool_)[found.clause]
        if not has_repetitions(found, deleted):
            return found
        if not self._merge.is_single_delete:
            raise EngineDeclined("several rows of the source match a row of the table")
        return without_repetitions(found, deleted)

    # ---------------------------------------------------------------------------------------------- what is written
    def _batches(self, found: Matches, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows that change, by clause, as `ChangeContext` says."""
        for number, clause in enumerate(self._merge.clauses):
            taken = found.only(found.clause == number)
            if not len(taken.source):
                continue
            both = sides(rows, self._source, taken.target, taken.source)
            locations = _RowLocations.of(rows, taken, clause.kind)
            old = self._old if self._has_changes and clause.kind is RowKind.MATCHED else ()
            is_written = clause.action.is_written
            columns = self._columns(clause.values if is_written else old, both)
            if is_written:
                self._check(columns)
            yield self._batch(columns, number, locations)
            if self._has_changes and clause.action is RowAction.UPDATE:
                yield self._batch(self._columns(old, both), len(self._actions), locations)

    @property
    def _old(self) -> tuple[Expression, ...]:
        return tuple(Column((TARGET, field.name), field.type) for field in self._target.configuration.schema)

    def _columns(self, values: Sequence[Expression], both: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns of the table; null columns if no value is needed."""
        if not self._context.columns.fields:
            return []
        types = [to_arrow(field.type, all_nullable=True) for field in self._target.context.schema]
        if not values:
            return [pa.nulls(both.num_rows, data_type) for data_type in types]
        found = [compute(value, both) for value in values]
        return [v if v.type == data_type else v.cast(data_type) for v, data_type in zip(found, types, strict=True)]

    def _check(self, columns: list[pa.Array]) -> None:
        if self._merge.checks:
            names = list(self._target.context.schema.names)
            rows = pa.RecordBatch.from_arrays(columns, names)
            check_rows(self._merge.checks, null_empty_partitions(self._target.context, rows))

    def _batch(self, columns: list[pa.Array], action: int, locations: _RowLocations) -> pa.RecordBatch:
        rows = len(locations.files)
        ids = (locations.ids, pa.nulls(rows, pa.int64()))[: len(self._context.columns) - len(columns)]
        arrays = [*columns, *ids, pa.repeat(pa.scalar(action, pa.int32()), rows), locations.files, locations.rows]
        return pa.RecordBatch.from_arrays(arrays, [str(number) for number in range(len(arrays))])


@dataclass(frozen=True, slots=True)
class _RowLocations:
    """The files and positions of rows, and their ids; null for new rows."""

    files: pa.Array
    rows: pa.Array
    ids: pa.Array

    @classmethod
    def of(cls, rows: pa.RecordBatch, taken: Matches, kind: RowKind) -> _RowLocations:
        count = len(taken.source)
        if kind is RowKind.NOT_MATCHED:
            return cls(*(pa.nulls(count, pa.int64()) for _ in range(3)))
        indices = pa.array(taken.target)
        has_ids = ROW_ID_COLUMN in rows.schema.names
        return cls(
            rows.column(FILE).take(indices),
            rows.column(ROW).take(indices),
            rows.column(ROW_ID_COLUMN).take(indices) if has_ids else pa.nulls(count, pa.int64()),
        )


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(table.to_struct_array().combine_chunks())


# ------------------------------------------------------------------------------------------------ matching rows
@dataclass(frozen=True, slots=True)
class Matches:
    """Rows that clauses take: `target` and `source` are the positions of their rows on the two sides.

    `target` is -1 in rows that match nothing. `clause` is the number of the clause that takes a row.
    """

    target: np.ndarray
    source: np.ndarray
    clause: np.ndarray

    def only(self, mask: np.ndarray) -> Matches:
        """Return the rows that a mask selects."""
        return Matches(self.target[mask], self.source[mask], self.clause[mask])


def keys_of(keys: Sequence[JoinKey], source: pa.RecordBatch) -> Keys:
    """Return the values that columns of the table may have to match a row of the source."""
    values = tuple(pc.unique(_of_source(key, source)).drop_null() for key in keys)
    return Keys(tuple(_joined_as(key) for key in keys), values)


def find_matches(merge: BoundMerge, target: pa.RecordBatch, source: pa.RecordBatch) -> Matches:
    """Return the rows that a clause takes. Raises ComputationError if a condition cannot be computed."""
    rows, given = _joined(merge.keys, target, source)
    if merge.rest is not None and len(rows):
        kept = _is_true(merge.rest, sides(target, source, rows, given))
        rows, given = rows[kept], given[kept]
    matched = Matches(rows, given, np.full(len(rows), _NOWHERE))
    is_matched = np.zeros(source.num_rows, np.bool_)
    is_matched[given] = True
    others = np.flatnonzero(~is_matched)
    unmatched = Matches(np.full(len(others), _NOWHERE), others, np.full(len(others), _NOWHERE))
    parts = []
    for kind, found in ((RowKind.MATCHED, matched), (RowKind.NOT_MATCHED, unmatched)):
        _choose(merge, kind, found, target, source)
        parts.append(found.only(found.clause != _NOWHERE))
    return Matches(*(np.concatenate([getattr(part, name) for part in parts]) for name in Matches.__slots__))


def sides(target: pa.RecordBatch, source: pa.RecordBatch, rows: np.ndarray, given: np.ndarray) -> pa.RecordBatch:
    """Return rows of both sides next to each other, as structs.

    The table's struct is missing if `rows` are no positions.
    """
    structs = {SOURCE: source.take(pa.array(given)).to_struct_array()}
    if not len(rows) or rows[0] != _NOWHERE:
        structs[TARGET] = target.take(pa.array(rows)).to_struct_array()
    return pa.RecordBatch.from_pydict(structs)


def without_repetitions(found: Matches, is_deleted: np.ndarray) -> Matches:
    """Return the rows with each deleted row of the table, as `is_deleted` says, only once."""
    deleted = np.flatnonzero(is_deleted)
    _, first = np.unique(found.target[deleted], return_index=True)
    kept = ~is_deleted
    kept[deleted[first]] = True
    return found.only(kept)


def has_repetitions(found: Matches, is_deleted: np.ndarray) -> bool:
    """Return True if a deleted row of the table, as `is_deleted` says, occurs more than once."""
    rows = found.target[is_deleted]
    return len(np.unique(rows)) < len(rows)


def _choose(merge: BoundMerge, kind: RowKind, found: Matches, target: pa.RecordBatch, source: pa.RecordBatch) -> None:
    """Set for each row of a kind the first clause whose condition is true; later conditions see only rows left over."""
    for number, clause in enumerate(merge.clauses):
        if clause.kind is not kind:
            continue
        left = np.flatnonzero(found.clause == _NOWHERE)
        if clause.condition is not None and len(left):
            left = left[_is_true(clause.condition, sides(target, source, found.target[left], found.source[left]))]
        found.clause[left] = number


def _is_true(condition: Expression, rows: pa.RecordBatch) -> np.ndarray:
    passed: np.ndarray = pc.fill_null(evaluate(condition, rows), False).to_numpy(zero_copy_only=False)
    return passed


def _joined(keys: Sequence[JoinKey], target: pa.RecordBatch, source: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of rows with equal keys, in the order of the table; null equals nothing."""
    names = [f"k{number}" for number in range(len(keys))]
    ours = pa.table([compute(_joined_as(key), target) for key in keys], names)
    theirs = pa.table([_of_source(key, source) for key in keys], names)
    both = ours.append_column("t", pa.array(np.arange(len(ours)))).join(
        theirs.append_column("s", pa.array(np.arange(len(theirs)))), names, join_type="inner"
    )
    rows, given = both["t"].to_numpy(), both["s"].to_numpy()
    order = np.lexsort((given, rows))
    return rows[order], given[order]


def _joined_as(key: JoinKey) -> Expression:
    """Return the column of the table in the type in which both sides are compared."""
    is_wide = key.target.type == LONG or key.target.type not in INTEGRAL_BITS
    return key.target if is_wide else Cast(key.target, LONG)


def _of_source(key: JoinKey, source: pa.RecordBatch) -> pa.Array:
    """Return the column of the source in that type."""
    return source.column(key.source.name).cast(to_arrow(type_of(_joined_as(key))))
