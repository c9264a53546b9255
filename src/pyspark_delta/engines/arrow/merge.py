"""MERGE in this process: joins rows of the table with those of the source, part by part, and writes what changes.

The rows of the table are read once, in chunks. A source that does not fit into memory is split by the hashes of its
keys into temporary files, and so are the rows of the table that may match; then each part is merged by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.engines.arrow.bound_merge import SOURCE, BoundMerge, bind_merge
from pyspark_delta.engines.arrow.key_hashes import HashFilter, hash_keys
from pyspark_delta.engines.arrow.key_search import Keys, RowFilter, find_rows
from pyspark_delta.engines.arrow.matching import SourceSide, source_keys, target_keys
from pyspark_delta.engines.arrow.merged_rows import MergedRows
from pyspark_delta.engines.arrow.spill import Parts, SpillFolder
from pyspark_delta.engines.contract import DRIVER, CannotRun, Done, EngineDeclined, answer
from pyspark_delta.engines.row_changes import Changed, ChangedRows, RowAction, carry_out, changed_rows
from pyspark_delta.expressions.evaluate import compute
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.schema.types import StructType
from pyspark_delta.statements.merge.clauses import Clause, RowKind
from pyspark_delta.statements.merge.merge import MergeSearch, SourceRows
from pyspark_delta.statements.target import Target


@dataclass(frozen=True)
class ArrowMerge:
    """Merges a source that this process reads.

    `source` is its schema. `condition` is SQL; `clauses` are those of the merge in SQL, None for one without SQL text.
    `search` finds the candidate files, and reads the columns of the source that the merge needs. With `evolves`, the
    source may lack columns of the table.
    """

    target: Target
    source: StructType
    condition: str
    clauses: Callable[[], Sequence[Clause | None]]
    search: MergeSearch
    evolves: bool = False

    def find(self) -> Done[Changed] | CannotRun:
        """Join the two sides in this process, and count the rows that change."""
        return self._run(writes=False)

    def change(self) -> Done[Changed] | CannotRun:
        """Join the two sides in this process, and write the rows that change."""
        return self._run(writes=True)

    def _run(self, *, writes: bool) -> Done[Changed] | CannotRun:
        merge = bind_merge(self.target, self.source, self.condition, self.clauses(), evolves=self.evolves)
        if isinstance(merge, CannotRun):
            return merge
        columns = merge.columns(SOURCE, values=writes) or self.source.names[:1]
        found = self.search.collect(columns)
        if isinstance(found, CannotRun):
            return found
        candidates, source = found
        if self._needs_spark(merge, candidates.all):
            return CannotRun("the merge needs all rows of the table, which Spark reads faster")

        def changed() -> Done[Changed]:
            rows = merge_in_driver(self.target, merge, candidates.all, source, writes)
            return Done(Changed(candidates.all, rows, candidates.reads), DRIVER)

        return answer(changed)

    def _needs_spark(self, merge: BoundMerge, files: pa.Table) -> bool:
        """Return True if the merge reads all rows of many files, and there is a session whose tasks can do so."""
        needs_all = not merge.keys or merge.has(RowKind.BY_SOURCE)
        target = self.target
        return (
            needs_all and target.tasks is not None and not target.cost.reads_in_driver(target.snapshot.location, files)
        )


def merge_in_driver(
    target: Target, merge: BoundMerge, files: pa.Table, source: SourceRows, writes: bool = True
) -> ChangedRows:
    """Merge into the files that may have matching rows; `source` has the columns of the merge, by name.

    Without `writes`, the changes are only counted. Raises EngineDeclined and ComputationError for a row that is left to
    the next engine; then no file stays behind. Also raises as `read_tasks` and `RollingFileWriter`.
    """
    try:
        merging = _Merging(target, merge, files, source, writes=writes)
        return changed_rows(carry_out(merging.rows.context, merging.batches()), merging.rows.context)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EngineDeclined(f"Arrow does not join the two sides: {error}") from None


class _Merging:
    """One merge."""

    def __init__(self, target: Target, merge: BoundMerge, files: pa.Table, source: SourceRows, *, writes: bool) -> None:
        self._target, self._merge, self._files, self._source = target, merge, files, source
        self.rows = MergedRows(target, merge, writes=writes)
        self._part_bytes = target.cost.merge_bytes // 4
        self._pairs = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that change, as `ChangeContext` says."""
        if self._source.nbytes <= self._target.cost.merge_bytes or not self._merge.keys:
            source = as_batch(pa.Table.from_batches(self._source.to_batches(), self._source.schema))
            yield from self._merged(source, self._found(self._keys_in(source)))
        else:
            with SpillFolder() as folder:
                yield from self._in_parts(folder)

    def _keys_in(self, source: pa.RecordBatch) -> RowFilter | None:
        """Return the values of keys that the source has; None if all rows of the table are needed."""
        merge = self._merge
        if not merge.keys or merge.has(RowKind.BY_SOURCE):
            return None
        columns = source_keys(merge.keys, source)
        values = tuple(pc.unique(column).drop_null() for column in columns)
        nulls = (key.is_null_safe and column.null_count > 0 for key, column in zip(merge.keys, columns, strict=True))
        return Keys(target_keys(merge.keys), values, tuple(nulls))

    def _found(self, keys: RowFilter | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the table that may match, in chunks."""
        row_ids = self._target.has_row_ids and self.rows.is_written and RowAction.UPDATE in self.rows.actions
        for rows in find_rows(self._target, self._files, keys, self.rows.columns_of_table(), row_ids=row_ids):
            yield as_batch(rows)

    def _merged(self, source: pa.RecordBatch, chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the changes by a part of the source, with all rows of the table that may match it."""
        side = SourceSide(self._merge, source)
        for rows in chunks:
            self._limit_pairs(rows, source)
            yield from self.rows.changes(side.matches(rows), rows, source)
        if self._merge.has(RowKind.NOT_MATCHED):
            yield from self.rows.inserts(side.unmatched(), source)

    def _limit_pairs(self, rows: pa.RecordBatch, source: pa.RecordBatch) -> None:
        if self._merge.keys or self._merge.rest == NEVER:
            return
        self._pairs += rows.num_rows * source.num_rows
        most = self._target.cost.compared_pairs
        if self._pairs > most:
            raise EngineDeclined(
                f"the condition of the merge has no equal keys, and more than {most} pairs of rows would be compared"
            )

    # ------------------------------------------------------------------------------------------------- large sources
    def _in_parts(self, folder: SpillFolder) -> Iterator[pa.RecordBatch]:
        """Split both sides by their keys, and merge part by part."""
        merge, source = self._merge, self._source
        count = Parts.count_for(source.nbytes, self._part_bytes)
        given, found = (Parts(folder, name, count, self._part_bytes) for name in ("source", "table"))
        try:
            keys = HashFilter.of(target_keys(merge.keys), self._split_source(given, count), source.num_rows)
            given.finish()
            for rows in self._found(None if merge.has(RowKind.BY_SOURCE) else keys):
                found.add(rows, _parts(hash_keys([compute(key, rows) for key in keys.columns]), count))
            found.finish()
        finally:
            given.close()
            found.close()
        for number in range(count):
            part = as_batch(pa.Table.from_batches(given.batches(number), source.schema))
            yield from self._merged(part, found.batches(number))

    def _split_source(self, parts: Parts, count: int) -> Iterator[np.ndarray]:
        """Add the rows of the source to the parts; yield the hashes of their keys."""
        for batch in self._source.to_batches():
            hashes = hash_keys(source_keys(self._merge.keys, batch))
            parts.add(batch, _parts(hashes, count))
            yield hashes


def _parts(hashes: np.ndarray, count: int) -> np.ndarray:
    """Return the part of each row, by the upper half of the hash of its keys."""
    parts: np.ndarray = (hashes >> np.uint64(32)) % np.uint64(count)
    return parts


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table, which has at least one column, as one batch."""
    return pa.RecordBatch.from_struct_array(table.to_struct_array().combine_chunks())
