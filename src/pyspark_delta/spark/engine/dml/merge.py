"""MERGE in a session: resolves the condition and the clauses on frames, and runs the merge as a Spark job.

One job joins the two sides, finds the clause of each row, writes the new rows, and records which rows are deleted from
their files. Arrow is asked first: it runs a merge with a small source if it computes the same results as Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pyspark_delta.engines.arrow.merge import ArrowMerge
from pyspark_delta.engines.contract import SPARK, Done, RowEngine
from pyspark_delta.engines.row_changes import Changed, ChangedRows
from pyspark_delta.errors import DeltaError, InvalidOptionError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf import arguments
from pyspark_delta.spark.engine.dml.conditions import check_analyzed
from pyspark_delta.spark.engine.dml.engines import SparkEngines, in_order
from pyspark_delta.spark.engine.dml.job import change_rows
from pyspark_delta.spark.engine.dml.merge_rows import MergedRows, RowChange, repeated_matches, row_changes
from pyspark_delta.spark.engine.dml.merge_sides import Scopes, Sides, clause_text, resolve
from pyspark_delta.spark.engine.dml.merge_source import SparkSource
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.frames.catalyst.qualified import Labels
from pyspark_delta.spark.frames.column_text import text_on
from pyspark_delta.statements.merge.clauses import Clause, RowKind, is_single_delete, of_kind
from pyspark_delta.statements.merge.merge import Merge, MergeSearch
from pyspark_delta.statements.target import Candidates, Condition
from pyspark_delta.write.written import discard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEEPS_SOURCE = ("right_outer", "source_anti")


def merge_statement(
    spark: SparkSession,
    source: DataFrame,
    condition: Condition,
    alias: str | None = None,
    qualifier: tuple[str, ...] = (),
) -> Merge:
    """Return a MERGE of the rows of `source` for a session, without clauses. The condition is SQL text or a Column.

    `alias` and `qualifier` as in `SparkTarget`. Raises TypeError for arguments of other types, and ValueError if the
    condition is None.
    """
    arguments.check_source("source", source)
    if condition is None:
        raise ValueError("condition of a merge cannot be None: it determines which rows match.")
    arguments.check_condition("condition", condition)
    return Merge(partial(_open, spark, source, qualifier), condition, alias)


@contextmanager
def _open(
    spark: SparkSession,
    source: DataFrame,
    qualifier: tuple[str, ...],
    snapshot: Snapshot,
    alias: str | None,
    declared: TableConfiguration | None,
) -> Iterator[SparkMergeEngines]:
    with ExitStack() as stack:
        target = SparkTarget.of(spark, snapshot, alias, declared, qualifier)
        yield SparkMergeEngines(target, SparkSource(spark, source, target, stack))


@dataclass(frozen=True)
class SparkMergeEngines(SparkEngines):
    """The engines of one attempt at a merge (`statements.merge.merge.MergeEngines`)."""

    source: SparkSource

    def evolved(self, configuration: TableConfiguration) -> SparkMergeEngines:
        """Return the engines for what the table declares after the merge."""
        return replace(self, target=replace(self.target, evolved=configuration))

    def bind(self, condition: Condition, clauses: Sequence[Clause], *, evolves: bool) -> SparkMerge:
        """Let Spark resolve the names in the condition and in the clauses.

        Raises InvalidOperationError for unknown columns, InvalidPredicateError, and Spark's own errors.
        """
        return SparkMerge(self.target, self.source, condition, clauses, evolves=evolves)


class SparkMerge:
    """A merge whose names Spark has resolved (`statements.merge.merge.ResolvedMerge`)."""

    def __init__(
        self,
        target: SparkTarget,
        source: SparkSource,
        condition: Condition,
        clauses: Sequence[Clause],
        *,
        evolves: bool,
    ) -> None:
        self._target, self._source, self._on, self._evolves = target, source, condition, evolves
        self._given = clauses
        self._scopes = scopes = Scopes(target.empty(), source.given)
        resolve(scopes.joined, [condition], "the condition of the merge")
        check_analyzed(scopes.joined.where(condition), condition, "MERGE")
        sides = Sides(target, source.given, source.schema)
        self._clauses, early = scopes.qualify(clauses, sides)
        for clause in clauses:
            if clause.condition is not None:
                name = f"the clause {clause.name}"
                check_analyzed(scopes.of(clause.kind).where(clause.condition), clause.condition, name)
        self._sides = replace(sides, early=early)

    @cached_property
    def condition(self) -> str | None:
        """The condition in SQL; None for a Column without SQL text."""
        try:
            return text_on(self._scopes.joined, self._on, self._target.labels)
        except InvalidOptionError:
            return None

    def history_texts(self) -> tuple[str, Sequence[str | None]]:
        """Return the condition, and those of the clauses: in SQL, or as Spark prints a Column without SQL text."""

        def text(condition: Condition, frame: DataFrame) -> str:
            try:
                return text_on(frame, condition, self._target.labels)
            except DeltaError:
                return str(condition)

        conditions = [
            None if clause.condition is None else text(clause.condition, self._scopes.of(clause.kind))
            for clause in self._given
        ]
        return text(self._on, self._scopes.joined), conditions

    def engines(self, search: MergeSearch) -> Sequence[tuple[str, RowEngine[Changed]]]:
        """Return the engines in the order in which they are asked."""
        texts = partial(_texts, self._given, self._scopes, self._target.labels)
        source, condition = self._source.schema, self.condition or ""
        arrow: RowEngine[Changed] = ArrowMerge(self._target, source, condition, texts, search, self._evolves)
        return in_order(self._target, arrow, _SparkJob(self, search))

    # ---------------------------------------------------------------------------------------------- the Spark job
    @cached_property
    def _changes(self) -> tuple[RowChange, ...]:
        """The clauses, with their values resolved for Spark."""
        return row_changes(self._sides, self._clauses, evolves=self._evolves)

    def run_job(self, search: MergeSearch, *, writes: bool) -> Changed:
        """Run the Spark job that finds the rows; with `writes`, it also writes their new values.

        Raises InvalidOperationError if several source rows would change one row of the table, and deletes the files
        that the job wrote.
        """
        candidates = search.candidates()
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
            raise repeated_matches(merged, search.condition.columns)
        return Changed(candidates.all, rows, candidates.reads)

    def _merged(self, candidates: Candidates) -> MergedRows:
        how, kind = _join(self._changes)
        rows, sides = self._target.rows(candidates.all), replace(self._sides, source=self._source.observed())
        if how in _KEEPS_SOURCE and self._source.is_small:
            # Spark never broadcasts the preserved side of an outer join: it would sort all rows of the table. So only
            # those that match a row of the source take part in the join.
            rows = sides.meeting(rows, self._on)
        return MergedRows(sides, self._changes, sides.joined(rows, self._on, how), kind)


@dataclass(frozen=True)
class _SparkJob:
    """The Spark engine of a merge."""

    merge: SparkMerge
    search: MergeSearch

    def find(self) -> Done[Changed]:
        return Done(self.merge.run_job(self.search, writes=False), SPARK)

    def change(self) -> Done[Changed]:
        return Done(self.merge.run_job(self.search, writes=True), SPARK)


def _texts(clauses: Sequence[Clause], scopes: Scopes, labels: Labels) -> list[Clause | None]:
    """Return the clauses in SQL; None for a clause if an expression has no SQL text, or if Spark rejects it."""
    return [clause_text(clause, scopes, labels) for clause in clauses]


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
