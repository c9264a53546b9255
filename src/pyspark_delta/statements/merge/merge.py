"""MERGE: updates and deletes rows of a table and inserts rows of a source, as the two match.

The keys of the source decide which files of the table are read. An engine joins the two sides, finds the clause of each
row, writes the new rows, and records the rows that leave their files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, TypeAlias

import orjson
import pyarrow as pa

from pyspark_delta.engines.contract import CannotRun, Done, RowEngine, first_done
from pyspark_delta.engines.row_changes import Changed, ChangedRows, RowAction
from pyspark_delta.expressions.tree import all_of
from pyspark_delta.features.support import check_removable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation, ReadSet
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.assignments import fill_defaults
from pyspark_delta.statements.conditions import check_deterministic
from pyspark_delta.statements.contract import Engines, Found, Staged, unchanged
from pyspark_delta.statements.merge.clauses import (
    Clause,
    RowKind,
    check_clauses,
    evolve_target,
    is_single_delete,
    of_kind,
)
from pyspark_delta.statements.merge.condition import Key, MatchCondition, understand
from pyspark_delta.statements.merge.keys import SourceKeys, keys_among
from pyspark_delta.statements.outcome import (
    FileChanges,
    apply_deletions,
    draft_change,
    file_metrics,
    milliseconds_since,
    vector_metrics,
)
from pyspark_delta.statements.target import Candidates, Condition, Target


# -------------------------------------------------------------------------------------------------- what runs it
class SourceRows(Protocol):
    """Rows of a source that can be read again: a table in memory, or rows in a temporary file. `nbytes` is their size.

    The methods are those of a PyArrow table.
    """

    @property
    def num_rows(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def schema(self) -> pa.Schema: ...

    def to_batches(self) -> Iterable[pa.RecordBatch]: ...


class MergeSource(Protocol):
    """The source of a merge during one attempt. It is evaluated once, or materialized before it is read again."""

    @property
    def schema(self) -> StructType:
        """Its columns."""

    @property
    def rows(self) -> int | None:
        """The number of its rows; None if it is not known yet."""

    @property
    def materialize_ms(self) -> int:
        """How many milliseconds it took to materialize it."""

    def reads(self, snapshot: Snapshot) -> ReadSet:
        """Return what it reads from the table itself. Raises as `check_unchanged`."""

    def find_keys(self, keys: Sequence[Key]) -> SourceKeys:
        """Read the keys; afterwards the number of rows is known."""

    def collect_if_small(self, columns: StructType) -> pa.Table | None:
        """Return some columns under their names; None if the source is not known to be small enough."""

    def collect(self, columns: StructType) -> SourceRows | None:
        """Return some columns under their names; None if this process should not read so many rows."""


class ResolvedMerge(Protocol):
    """A merge whose condition and clauses are valid on the columns of both sides."""

    @property
    def condition(self) -> str | None:
        """The condition in SQL; None if it has no SQL text."""

    def history_texts(self) -> tuple[str, Sequence[str | None]]:
        """Return the condition, and those of the clauses, as the history shows them."""

    def engines(self, search: MergeSearch) -> Sequence[tuple[str, RowEngine[Changed]]]:
        """Return the engines that run it, in the order in which they are asked."""


class MergeEngines(Engines, Protocol):
    """What runs one attempt at a merge of one source."""

    @property
    def source(self) -> MergeSource:
        """The source."""

    def evolved(self, configuration: TableConfiguration) -> MergeEngines:
        """Return the engines for what the table declares after the merge."""

    def bind(self, condition: Condition, clauses: Sequence[Clause], *, evolves: bool) -> ResolvedMerge:
        """Resolve condition and clauses.

        Raises InvalidOperationError for unknown columns, InvalidPredicateError, and errors about the syntax.
        """


OpenMerge: TypeAlias = Callable[[Snapshot, str | None, TableConfiguration | None], AbstractContextManager[MergeEngines]]
"""Opens a version of a table for an attempt, as `OpenEngines`; at the end it releases what it holds of the source."""


# -------------------------------------------------------------------------------------------------- the statement
@dataclass(frozen=True)
class Merge:
    """A MERGE statement; `alias` is the name of the table in its conditions. `open` knows the source."""

    open: OpenMerge
    condition: Condition
    alias: str | None = None
    clauses: tuple[Clause, ...] = ()
    evolves: bool = False
    name: ClassVar[str] = "MERGE"
    counts: ClassVar[int] = 4

    def find(self, snapshot: Snapshot) -> Found:
        """Find the rows that the merge changes, without writing anything.

        Raises as `stage` about conditions and values.
        """
        self._check()
        with self.open(snapshot, self.alias, None) as engines:
            return _Attempt(self, engines).find()

    def stage(self, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """Find the rows that change and write their new values; return the draft of the commit.

        Raises as `DeltaMergeBuilder.execute`.
        """
        self._check()
        with self.open(snapshot, self.alias, declared) as engines:
            reads = engines.source.reads(snapshot)
            return replace(_Attempt(self, engines).stage(), source_reads=reads)

    def _check(self) -> None:
        check_clauses(self.clauses)
        check_deterministic(self.condition, "MERGE")


class _Attempt:
    """One attempt at a merge, on one version of the table."""

    def __init__(self, merge: Merge, engines: MergeEngines) -> None:
        self._start = time.monotonic()
        if any(clause.action is not RowAction.INSERT for clause in merge.clauses):
            check_removable(engines.target.configuration, "MERGE")
        evolves = merge.evolves or bool(engines.target.options.merge_schema)
        if evolves:
            after = evolve_target(engines.target, engines.source.schema, merge.clauses)
            engines = engines if after is engines.target else engines.evolved(after.configuration)
        self._engines, self._target = engines, engines.target
        self._clauses = tuple(self._filled(clause) for clause in merge.clauses)
        self._resolved = engines.bind(merge.condition, self._clauses, evolves=evolves)
        self._search = MergeSearch.of(engines, self._resolved.condition, self._clauses)
        self._asked = self._resolved.engines(self._search)

    def _filled(self, clause: Clause) -> Clause:
        if clause.values is None:
            return clause
        configuration, is_default = self._target.configuration, self._engines.is_default
        values = fill_defaults(clause.values, configuration, self._target.alias, clause.name, is_default)
        return replace(clause, values=values)

    def find(self) -> Found:
        """Find the rows that change, without writing anything."""
        done = first_done("MERGE", self._asked, lambda engine: engine.find())
        files, rows = done.value.files, done.value.rows
        counts = merge_counts(self._clauses, rows)
        return Found(
            target=self._target,
            candidates=files,
            removed_whole=files.slice(0, 0),
            rows=Done(rows, done.engine, done.declined),
            reads=done.value.reads,
            affected=counts.affected,
            new_rows=counts.inserted + counts.updated,
        )

    def stage(self) -> Staged:
        """Write the rows that change; return the draft that names their files."""
        done = first_done("MERGE", self._asked, lambda engine: engine.change())
        files, rows, reads = done.value.files, done.value.rows, done.value.reads
        scanned = milliseconds_since(self._start)
        changes = apply_deletions(self._target, files, rows, files.slice(0, 0), self._engines.rewriters())
        counts = merge_counts(self._clauses, rows)
        result = (counts.affected, counts.updated, counts.deleted, counts.inserted)
        times = MergeTimes(milliseconds_since(self._start), self._engines.source.materialize_ms, scanned)
        metrics = merge_metrics(changes, counts, self._search.source_rows, times)
        operation = Operation("MERGE", self._parameters(), metrics, done.engine)
        draft = draft_change(self._target, changes, operation, reads)
        is_nothing = changes.is_nothing and self._target.metadata is None
        return unchanged(draft, result) if is_nothing else Staged(draft, result, changes.written)

    def _parameters(self) -> dict[str, str]:
        condition, conditions = self._resolved.history_texts()
        return merge_parameters(condition, self._clauses, conditions)


class MergeSearch:
    """The candidate files of one attempt, found by the keys of the source, and its rows if these are few."""

    def __init__(
        self, target: Target, source: MergeSource, condition: MatchCondition, clauses: Sequence[Clause]
    ) -> None:
        self.condition = condition
        self._target, self._source, self._clauses = target, source, clauses
        self._candidates: Candidates | None = None
        self._collected_rows: int | None = None

    @classmethod
    def of(cls, engines: MergeEngines, condition: str | None, clauses: Sequence[Clause]) -> MergeSearch:
        """Return the search of an attempt; `condition` is that of the merge in SQL, if it has SQL text."""
        target, known = engines.target, MatchCondition()
        if condition is not None:
            zone, source = target.time_zone, engines.source.schema
            known = understand(condition, target.snapshot.schema, target.alias, source, time_zone=zone)
        return cls(target, engines.source, known, clauses)

    @property
    def source_rows(self) -> int | None:
        """The number of rows of the source, if it is known."""
        known = self._source.rows
        return self._collected_rows if known is None else known

    def candidates(self, *, counts: bool = False) -> Candidates:
        """Return the candidate files of the table. With `counts`, the source is counted in any case."""
        if self._candidates is None:
            self._candidates = self._find(counts=counts)
        return self._candidates

    def collect(self, columns: Sequence[str]) -> tuple[Candidates, SourceRows] | CannotRun:
        """Return the candidate files, and some columns of the source if this process can read it."""
        keys = [field.name for key in self.condition.keys if (field := self._source.schema.find(key.source[-1]))]
        asked = StructType(tuple(field for field in self._source.schema if field.name in (*columns, *keys)))
        small = self._source.collect_if_small(asked)
        source: SourceRows | None = small
        if small is not None:
            candidates = self._among(small, keys)
        else:
            candidates = self.candidates(counts=True)
            source = self._source.collect(asked)
        if source is None:
            return CannotRun("the source is too large to collect, or its size is not known")
        self._collected_rows = source.num_rows
        return candidates, source

    def _among(self, source: pa.Table, keys: Sequence[str]) -> Candidates:
        """Return the files that may hold rows with the keys of a source in memory."""
        if of_kind(self._clauses, RowKind.BY_SOURCE):
            return self._target.read_candidates(None)
        found = keys_among(source, self.condition.keys, keys, self._target.time_zone)
        return self._target.read_candidates(all_of(self.condition.own, found.predicate))

    def _find(self, *, counts: bool) -> Candidates:
        if of_kind(self._clauses, RowKind.BY_SOURCE):
            return self._target.read_candidates(None)
        found = self._target.read_candidates(self.condition.own)
        if not self.condition.keys or (found.all.num_rows < 2 and not counts):
            return found
        keys = self._source.find_keys(self.condition.keys)
        return self._target.read_candidates(all_of(self.condition.own, keys.predicate))


# -------------------------------------------------------------------------------------------- its counts and metrics
@dataclass(frozen=True, slots=True)
class MergeCounts:
    """The number of changed rows, by action and kind of rows."""

    inserted: int
    matched_updated: int
    by_source_updated: int
    matched_deleted: int
    by_source_deleted: int

    @property
    def updated(self) -> int:
        """All updated rows."""
        return self.matched_updated + self.by_source_updated

    @property
    def deleted(self) -> int:
        """All deleted rows."""
        return self.matched_deleted + self.by_source_deleted

    @property
    def affected(self) -> int:
        """All affected rows."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class MergeTimes:
    """Times of a merge in milliseconds: `total`, `materialize` for the source, and `scan` until the rows were found."""

    total: int
    materialize: int
    scan: int


def merge_counts(clauses: Sequence[Clause], rows: ChangedRows) -> MergeCounts:
    """Return the counts of a job; a deleted row counts once, however many rows it matched."""

    def total(kind: RowKind, action: RowAction) -> int:
        counted = zip(clauses, rows.counts[: len(clauses)], strict=True)
        return sum(n for clause, n in counted if clause.kind is kind and clause.action is action)

    by_source = total(RowKind.BY_SOURCE, RowAction.DELETE), total(RowKind.BY_SOURCE, RowAction.UPDATE)
    deleted = total(RowKind.MATCHED, RowAction.DELETE)
    if is_single_delete(clauses):
        deleted = sum(len(bitmap) for bitmap in rows.deletions.values()) - sum(by_source)
    return MergeCounts(
        inserted=total(RowKind.NOT_MATCHED, RowAction.INSERT),
        matched_updated=total(RowKind.MATCHED, RowAction.UPDATE),
        by_source_updated=by_source[1],
        matched_deleted=deleted,
        by_source_deleted=by_source[0],
    )


def merge_metrics(
    changes: FileChanges, counts: MergeCounts, source_rows: int | None, times: MergeTimes
) -> dict[str, int]:
    """Return the metrics of a merge, with delta-spark's names; sizes are bytes. Unknown values are absent."""
    files, rewritten, new = file_metrics(changes), changes.rewritten, changes.rows.new
    return {
        **({} if source_rows is None else {"numSourceRows": source_rows}),
        "numTargetRowsInserted": counts.inserted,
        "numTargetRowsUpdated": counts.updated,
        "numTargetRowsMatchedUpdated": counts.matched_updated,
        "numTargetRowsNotMatchedBySourceUpdated": counts.by_source_updated,
        "numTargetRowsDeleted": counts.deleted,
        "numTargetRowsMatchedDeleted": counts.matched_deleted,
        "numTargetRowsNotMatchedBySourceDeleted": counts.by_source_deleted,
        "numTargetRowsCopied": rewritten.rows,
        "numOutputRows": new.rows + rewritten.rows,
        "numTargetFilesAdded": files["numAddedFiles"],
        "numTargetFilesRemoved": files["numRemovedFiles"],
        "numTargetBytesAdded": files["numAddedBytes"],
        "numTargetBytesRemoved": files["numRemovedBytes"],
        "numTargetChangeFilesAdded": files["numAddedChangeFiles"],
        **vector_metrics(changes, "numTargetDeletionVectors"),
        "executionTimeMs": times.total,
        "materializeSourceTimeMs": times.materialize,
        "scanTimeMs": times.scan,
        "rewriteTimeMs": times.total - times.scan,
    }


def merge_parameters(condition: str, clauses: Sequence[Clause], conditions: Sequence[str | None]) -> dict[str, str]:
    """Return the parameters of a merge; `conditions` are those of the clauses, as text."""

    def predicates(kind: RowKind) -> str:
        found = [
            {"predicate": text, "actionType": clause.word} if text is not None else {"actionType": clause.word}
            for clause, text in zip(clauses, conditions, strict=True)
            if clause.kind is kind
        ]
        return orjson.dumps(found).decode()

    return {
        "predicate": orjson.dumps([condition]).decode(),
        "matchedPredicates": predicates(RowKind.MATCHED),
        "notMatchedPredicates": predicates(RowKind.NOT_MATCHED),
        "notMatchedBySourcePredicates": predicates(RowKind.BY_SOURCE),
    }
