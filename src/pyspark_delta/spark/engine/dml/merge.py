"""MERGE: updates and deletes rows of a table and inserts rows of a source, as the two match.

One job joins the two sides, finds the clause of each row, writes the new rows, and records the rows that leave their
files. The source is evaluated once, except for reading its keys if that avoids reading files. A small source is
collected into this process instead, if Arrow computes the clauses exactly as Spark does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from pyspark_delta.engines.arrow.bound_merge import SOURCE, BoundMerge
from pyspark_delta.engines.arrow.merge import ArrowMerge
from pyspark_delta.engines.contract import SPARK, CannotRun, Done, RowEngine, first_done
from pyspark_delta.engines.row_changes import Changed, ChangedRows, RowAction
from pyspark_delta.errors import DeltaError, InvalidOptionError
from pyspark_delta.expressions.tree import Expression, all_of
from pyspark_delta.features.support import check_removable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import IsolationLevel, Operation
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf import arguments
from pyspark_delta.spark.engine.dml.assignments import is_default
from pyspark_delta.spark.engine.dml.conditions import check_analyzed
from pyspark_delta.spark.engine.dml.engines import SparkEngines
from pyspark_delta.spark.engine.dml.job import change_rows
from pyspark_delta.spark.engine.dml.merge_rows import MergedRows, RowChange, repeated_matches, row_changes
from pyspark_delta.spark.engine.dml.merge_sides import Scopes, Sides, clause_text, resolve
from pyspark_delta.spark.engine.dml.merge_source import (
    SourceCount,
    collect,
    collected,
    find_keys,
    keys_among,
    materialized,
)
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.engine.frame_reads import frame_reads
from pyspark_delta.spark.engine.write.alignment import frame_schema
from pyspark_delta.spark.frames.column_text import text_on
from pyspark_delta.statements.assignments import fill_defaults
from pyspark_delta.statements.conditions import check_deterministic
from pyspark_delta.statements.contract import Found, Staged
from pyspark_delta.statements.merge.clauses import (
    Clause,
    RowKind,
    check_clauses,
    evolve_target,
    is_single_delete,
    of_kind,
)
from pyspark_delta.statements.merge.condition import MatchCondition, understand
from pyspark_delta.statements.merge.outcome import MergeTimes, merge_counts, merge_metrics, merge_parameters
from pyspark_delta.statements.outcome import apply_deletions, draft_change, milliseconds_since
from pyspark_delta.statements.target import Candidates, Condition
from pyspark_delta.write.written import discard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEEPS_SOURCE = ("right_outer", "source_anti")


@dataclass(frozen=True)
class Merge:
    """A MERGE statement; `alias` is the name of the table in its conditions."""

    spark: SparkSession
    source: DataFrame
    condition: Condition
    alias: str | None = None
    clauses: tuple[Clause, ...] = ()
    evolves: bool = False
    name: ClassVar[str] = "MERGE"
    counts: ClassVar[int] = 4

    def __post_init__(self) -> None:
        arguments.check_source("source", self.source)
        if self.condition is None:
            raise ValueError("condition of a merge cannot be None: it says which rows match.")
        arguments.check_condition("condition", self.condition)

    def find(self, snapshot: Snapshot) -> Found:
        """Find the rows that the merge changes, without writing anything.

        Raises as `stage` about conditions and values.
        """
        with ExitStack() as stack:
            return self._staging(snapshot, stack).find()

    def stage(self, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """Find the rows that change and write their new values; return the draft of the commit.

        Raises as `DeltaMergeBuilder.execute`.
        """
        reads = frame_reads(self.spark, self.source, snapshot, self.name, IsolationLevel.SERIALIZABLE)
        with ExitStack() as stack:
            return replace(self._staging(snapshot, stack, declared).stage(), source_reads=reads)

    def _staging(self, snapshot: Snapshot, stack: ExitStack, declared: TableConfiguration | None = None) -> _Staging:
        check_clauses(self.clauses)
        check_deterministic(self.condition, "MERGE")
        target = SparkTarget.of(self.spark, snapshot, self.alias, declared)
        if any(clause.action is not RowAction.INSERT for clause in self.clauses):
            check_removable(target.configuration, "MERGE")
        evolves = self.evolves or bool(target.options.merge_schema)
        if evolves:
            target = evolve_target(target, frame_schema(self.source), self.clauses)
        return _Staging(self, target, evolves, stack)


class _Staging:
    """One attempt at a merge, on one version of the table."""

    def __init__(self, merge: Merge, target: SparkTarget, evolves: bool, stack: ExitStack) -> None:
        self._start = time.monotonic()
        self._merge, self._target, self._stack = merge, target, stack
        self._schema = frame_schema(merge.source)
        scopes = Scopes(target.empty(), merge.source)
        resolve(scopes.joined, [merge.condition], "the condition of the merge")
        check_analyzed(scopes.joined.where(merge.condition), merge.condition, "MERGE")
        self._given = [self._filled(clause) for clause in merge.clauses]
        sides = Sides(target, merge.source, self._schema)
        self._clauses, early = scopes.qualify(self._given, sides)
        for given, clause in zip(merge.clauses, self._clauses, strict=True):
            if given.condition is not None:
                name = f"the clause {clause.name}"
                check_analyzed(scopes.of(clause.kind).where(given.condition), given.condition, name)
        self._scopes, self._evolves = scopes, evolves
        self._sides = replace(sides, early=early)
        self._count = SourceCount()
        self._known_candidates: Candidates | None = None
        self._materialize_ms = 0
        self._collected_rows = 0

    @cached_property
    def _changes(self) -> tuple[RowChange, ...]:
        """The clauses, with their values resolved for Spark."""
        return row_changes(self._sides, self._clauses, evolves=self._evolves)

    def _filled(self, clause: Clause) -> Clause:
        if clause.values is None:
            return clause
        target = self._target
        return replace(
            clause, values=fill_defaults(clause.values, target.configuration, target.alias, clause.name, is_default)
        )

    def find(self) -> Found:
        """Find the rows that change, without writing anything."""
        done = first_done("MERGE", self._engines(), lambda engine: engine.find())
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
        done = first_done("MERGE", self._engines(), lambda engine: engine.change())
        files, rows, reads = done.value.files, done.value.rows, done.value.reads
        scanned = milliseconds_since(self._start)
        rewriters = SparkEngines(self._target).rewriters()
        changes = apply_deletions(self._target, files, rows, files.slice(0, 0), rewriters)
        counts = merge_counts(self._clauses, rows)
        result = (counts.affected, counts.updated, counts.deleted, counts.inserted)
        if changes.is_nothing and self._target.metadata is None:
            return Staged(None, result, reads=reads)
        times = MergeTimes(milliseconds_since(self._start), self._materialize_ms, scanned)
        source_rows = self._count.get() if done.engine == SPARK else self._collected_rows
        metrics = merge_metrics(changes, counts, source_rows, times)
        operation = Operation("MERGE", self._parameters(), metrics, done.engine)
        draft = draft_change(self._target, changes, operation, reads)
        return Staged(draft, result, changes.written)

    # ------------------------------------------------------------------------------------------------- engines
    def _engines(self) -> list[tuple[str, RowEngine[Changed]]]:
        known = self._understood()
        arrow = ArrowMerge(
            self._target, self._schema, known.text, self._texts, lambda merge: self._collected(known, merge)
        )
        return SparkEngines(self._target)._ordered(arrow, _SparkMerge(self, known))

    def _texts(self) -> list[Clause | None]:
        """Return the clauses in SQL; None for a clause with an expression without SQL text, or that Spark rejects."""
        return [clause_text(clause, self._scopes) for clause in self._given]

    def _collected(self, known: MatchCondition, merge: BoundMerge) -> tuple[Candidates, pa.Table] | CannotRun:
        """Return the candidate files and the rows of the source if it is small enough to collect."""
        asked = merge.columns(SOURCE)
        columns = StructType(tuple(field for field in self._schema if field.name in asked))
        source = collected(self._merge.source, columns, self._target.cost)
        if source is not None:
            names = [key.source.name for key in merge.keys]
            found = keys_among(source, known.keys, names, self._target.time_zone)
            candidates = self._target.read_candidates(all_of(known.own, found.predicate))
        else:
            candidates = self._candidates(known, counts=True)
            rows = self._count.get() if self._count.is_known else None
            if rows is None or rows > self._target.cost.collected_rows(len(columns)):
                return CannotRun("the source is too large to collect, or its size is not known")
            source = collect(self._sides.source, columns)
        self._collected_rows = source.num_rows
        return candidates, source

    def by_spark(self, known: MatchCondition, *, writes: bool) -> Changed:
        """Run the Spark job that finds the rows, and that also writes their new values if it `writes`."""
        candidates = self._candidates(known)
        merged = self._merged(candidates)
        if not writes:
            rows = change_rows(*merged.search())
        elif not candidates.all.num_rows and not of_kind(self._clauses, RowKind.NOT_MATCHED):
            rows = ChangedRows.nothing(len(self._clauses))
        else:
            rows = change_rows(*merged.job())
        if rows.has_repetitions and not is_single_delete(self._clauses):
            written = [*rows.new.files["path"].to_pylist(), *rows.changes["path"].to_pylist()]
            discard(self._target.snapshot, written)
            raise repeated_matches(merged, known.columns)
        return Changed(candidates.all, rows, candidates.reads)

    # ---------------------------------------------------------------------------------------------- which files
    def _understood(self) -> MatchCondition:
        try:
            text = text_on(self._scopes.joined, self._merge.condition)
        except InvalidOptionError:  # a Column without a SQL text
            return MatchCondition()
        target = self._target
        return understand(text, target.snapshot.schema, target.alias, self._schema, time_zone=target.time_zone)

    def _candidates(self, known: MatchCondition, *, counts: bool = False) -> Candidates:
        """Return the candidate files of the table. With `counts`, the source is counted in any case."""
        if self._known_candidates is None:
            self._known_candidates = self._look(known, counts=counts)
        return self._known_candidates

    def _look(self, known: MatchCondition, *, counts: bool) -> Candidates:
        if of_kind(self._clauses, RowKind.BY_SOURCE):
            return self._target.read_candidates(None)
        found = self._target.read_candidates(known.own)
        if not known.keys or (found.all.num_rows < 2 and not counts):
            return found
        source, self._materialize_ms = self._stack.enter_context(materialized(self._merge.source))
        keys = find_keys(source, known.keys, self._target.time_zone)
        self._count = SourceCount(keys.rows)
        self._sides = replace(self._sides, source=source)
        predicate: Expression | None = all_of(known.own, keys.predicate)
        return self._target.read_candidates(predicate)

    # ----------------------------------------------------------------------------------------------- which rows
    def _merged(self, candidates: Candidates) -> MergedRows:
        how, kind = _join(self._changes)
        sides = self._sides
        if not self._count.is_known:
            sides = replace(sides, source=self._count.observe(sides.source))
        rows = self._target.rows(candidates.all)
        if how in _KEEPS_SOURCE and self._is_small():
            # Spark never broadcasts the preserved side of an outer join, and would sort the table instead.
            rows = sides.meeting(rows, self._merge.condition)
        return MergedRows(sides, self._changes, sides.joined(rows, self._merge.condition, how), kind)

    def _is_small(self) -> bool:
        """Return True if the source is known to be small enough to broadcast."""
        return self._count.is_known and (self._count.get() or 0) <= self._target.cost.broadcast_rows

    def _parameters(self) -> dict[str, str]:
        given = self._merge

        def text(condition: Condition, frame: DataFrame) -> str:
            try:
                return text_on(frame, condition)
            except DeltaError:
                return str(condition)

        condition = text(given.condition, self._scopes.joined)
        conditions = [
            None if clause.condition is None else text(clause.condition, self._scopes.of(clause.kind))
            for clause in given.clauses
        ]
        return merge_parameters(condition, given.clauses, conditions)


@dataclass(frozen=True)
class _SparkMerge:
    """MERGE as a Spark job."""

    staging: _Staging
    known: MatchCondition

    def find(self) -> Done[Changed]:
        return Done(self.staging.by_spark(self.known, writes=False), SPARK)

    def change(self) -> Done[Changed]:
        return Done(self.staging.by_spark(self.known, writes=True), SPARK)


def _join(changes: Sequence[RowChange]) -> tuple[str, RowKind | None]:
    """Return the join type that the clauses need, and the kind of its rows if there is only one."""
    kinds = {change.clause.kind for change in changes}
    if kinds == {RowKind.MATCHED}:
        single = is_single_delete([change.clause for change in changes])
        return ("left_semi" if single else "inner"), RowKind.MATCHED
    if kinds == {RowKind.NOT_MATCHED}:
        return "source_anti", RowKind.NOT_MATCHED
    if kinds == {RowKind.BY_SOURCE}:
        return "left_anti", RowKind.BY_SOURCE
    if RowKind.NOT_MATCHED not in kinds:
        return "left_outer", None
    return ("full_outer" if RowKind.BY_SOURCE in kinds else "right_outer"), None
