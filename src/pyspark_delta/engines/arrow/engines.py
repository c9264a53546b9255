"""Arrow as the only engine of a statement, for callers without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from pyspark_delta.engines.arrow.delete import ArrowDelete
from pyspark_delta.engines.arrow.merge import ArrowMerge
from pyspark_delta.engines.arrow.merge_source import ArrowSource, HeldRows
from pyspark_delta.engines.arrow.rewriting import rewrite_files
from pyspark_delta.engines.arrow.update import ArrowUpdate
from pyspark_delta.engines.contract import ARROW, CannotRun, Done, RowEngine, answer
from pyspark_delta.engines.cost import DEFAULT, CostModel
from pyspark_delta.engines.row_changes import ChangeContext, Changed, ChangedRows
from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.name_resolution import find_fields, suggestion
from pyspark_delta.expressions.syntax import parse
from pyspark_delta.features.support import check_writable
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import IsolationLevel, ReadSet
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.assignments import is_default_word
from pyspark_delta.statements.conditions import check_columns, check_deterministic
from pyspark_delta.statements.contract import Rewriter
from pyspark_delta.statements.merge.clauses import Clause
from pyspark_delta.statements.merge.merge import MergeSearch, OpenMerge
from pyspark_delta.statements.target import Candidates, Condition, RowCondition, Target
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.written import Written


@dataclass(frozen=True)
class ArrowSettings:
    """The settings of statements without Spark; `open` makes the engines of an attempt.

    `time_zone` applies to times without one. Files are read and written by this process alone.
    """

    options: WriteOptions = field(default_factory=WriteOptions)
    time_zone: str = "UTC"
    cost: CostModel = DEFAULT

    def open(self, snapshot: Snapshot, alias: str | None, declared: TableConfiguration | None) -> ArrowEngines:
        """Return the engines of an attempt, as `statements.contract.OpenEngines` says."""
        check_writable(declared or snapshot.configuration, snapshot.location)
        options = self.options
        return ArrowEngines(Target(snapshot, alias, declared, options, options.files, self.time_zone, self.cost))

    def merging(
        self,
        source: pa.Table | HeldRows,
        alias: str | None = None,
        reads: Callable[[Snapshot, IsolationLevel | None], ReadSet] = lambda snapshot, isolation: ReadSet(),
    ) -> OpenMerge:
        """Return what opens the engines of a MERGE of a table in memory, or of held rows.

        `alias` is the name of the source in conditions; None allows any. `reads` returns what the source was read from,
        if it is the table itself. Raises SchemaMismatchError for columns of types that no Delta table has.
        """
        held = source if isinstance(source, HeldRows) else HeldRows(source.to_batches(), source.schema, None)
        return partial(self._open_merge, ArrowSource(held, alias, reads, self.time_zone))

    @contextmanager
    def _open_merge(
        self, source: ArrowSource, snapshot: Snapshot, alias: str | None, declared: TableConfiguration | None
    ) -> Iterator[ArrowMergeEngines]:
        yield ArrowMergeEngines(self.open(snapshot, alias, declared).target, source)


@dataclass(frozen=True)
class ArrowEngines:
    """The Arrow engine for an attempt. Conditions and values are SQL text that Arrow computes as Spark does."""

    target: Target

    def resolve(self, condition: Condition, statement: str) -> RowCondition:
        """Check a condition. Raises TypeError if it is not text, and InvalidPredicateError."""
        text = _text(condition, f"The condition of {statement}")
        check_columns(text, self.target.configuration.schema, self.target.alias)
        check_deterministic(text, statement)
        return RowCondition(text, text)

    def is_default(self, value: Condition) -> bool:
        """Return True if a new value is SQL's word DEFAULT."""
        return isinstance(value, str) and is_default_word((value,))

    def delete(
        self, files: pa.Table, condition: RowCondition, context: ChangeContext
    ) -> Sequence[tuple[str, RowEngine[ChangedRows]]]:
        """Return the engine of a DELETE."""
        return [(ARROW, ArrowDelete(self.target, files, condition.text, context))]

    def update(
        self, candidates: Candidates, condition: RowCondition | None, values: Mapping[tuple[str, ...], Condition]
    ) -> Sequence[tuple[str, RowEngine[Changed]]]:
        """Return the engine of an UPDATE. Raises TypeError for a value that is not text, and as `check_columns`."""
        texts = {path: _text(value, f"The value of '{'.'.join(path)}'") for path, value in values.items()}
        for value in texts.values():
            check_columns(value, self.target.configuration.schema, self.target.alias)
        text = None if condition is None else condition.text
        return [(ARROW, ArrowUpdate(self.target, candidates, text, lambda: texts))]

    def rewriters(self) -> Sequence[tuple[str, Rewriter]]:
        """Return what rewrites files that keep some of their rows."""
        return [(ARROW, partial(rewrite, self.target))]


# ----------------------------------------------------------------------------------------------------------- MERGE
@dataclass(frozen=True)
class ArrowMergeEngines(ArrowEngines):
    """The Arrow engine for an attempt at a merge."""

    source: ArrowSource

    def evolved(self, configuration: TableConfiguration) -> ArrowMergeEngines:
        """Return the engine for what the table declares after the merge."""
        return replace(self, target=replace(self.target, evolved=configuration))

    def bind(self, condition: Condition, clauses: Sequence[Clause], *, evolves: bool) -> ArrowResolvedMerge:
        """Check that condition and values are text.

        Raises TypeError, and InvalidPredicateError for a name of neither side.
        """
        text = _text(condition, "The condition of MERGE")
        self._check_names(text)
        for clause in clauses:
            for value in (*([] if clause.condition is None else [clause.condition]), *(clause.values or {}).values()):
                self._check_names(_text(value, f"The condition or value of {clause.name}"))
        return ArrowResolvedMerge(self, text, clauses, evolves)

    def _check_names(self, text: str) -> None:
        """Raise InvalidPredicateError for a name of neither side, and for a column that its side does not have."""
        source, alias, table = self.source, self.target.alias, self.target.configuration.schema
        if source.alias is None or alias is None:
            return
        sides = {alias.casefold(): table, source.alias.casefold(): source.schema}
        for column in parse(text).find_all(exp.Column):
            parts = [part.name for part in column.parts]
            if any(find_fields(parts, schema) is not None for schema in (table, source.schema)):
                continue
            side = sides.get(parts[0].casefold()) if len(parts) > 1 else None
            if side is not None and find_fields(parts[1:], side) is None:
                whole = f"'{alias}'" if side is table else f"'{source.alias}'"
                raise InvalidPredicateError(
                    f"There is no column '{'.'.join(parts[1:])}' in {whole}. {suggestion(parts[1:], side)}",
                    column=".".join(parts),
                )
            if side is None:
                what = (
                    f"'{parts[0]}' in '{text}' names neither side of the merge"
                    if len(parts) > 1
                    else (f"There is no column '{parts[0]}' on either side of the merge")
                )
                raise InvalidPredicateError(f"{what}: '{alias}' is the table, '{source.alias}' the source.")


@dataclass(frozen=True)
class ArrowResolvedMerge:
    """A merge in SQL, as `statements.merge.merge.ResolvedMerge` says."""

    bound: ArrowMergeEngines
    condition: str
    clauses: Sequence[Clause]
    evolves: bool = False

    def history_texts(self) -> tuple[str, Sequence[str | None]]:
        """Return the condition and those of the clauses."""
        return self.condition, [clause.condition for clause in self.clauses]

    def engines(self, search: MergeSearch) -> Sequence[tuple[str, RowEngine[Changed]]]:
        """Return the engine."""
        target, source = self.bound.target, self.bound.source.schema
        return [(ARROW, ArrowMerge(target, source, self.condition, lambda: self.clauses, search, self.evolves))]


def rewrite(target: Target, files: pa.Table) -> Done[Written] | CannotRun:
    """Call `rewrite_files`; a file that only Spark can read is an answer."""
    return answer(lambda: rewrite_files(target, files))


def _text(value: Condition, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is SQL text, found {type(value).__name__} {value!r}.")
    return value
