"""Arrow as the only engine of a statement, for callers without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from pyspark_delta.engines.arrow.delete import ArrowDelete
from pyspark_delta.engines.arrow.rewriting import rewrite_files
from pyspark_delta.engines.arrow.update import ArrowUpdate
from pyspark_delta.engines.contract import ARROW, CannotRun, Done, RowEngine, answer
from pyspark_delta.engines.cost import DEFAULT, CostModel
from pyspark_delta.engines.row_changes import ChangeContext, Changed, ChangedRows
from pyspark_delta.features.support import check_writable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.assignments import is_default_word
from pyspark_delta.statements.conditions import check_columns, check_deterministic
from pyspark_delta.statements.contract import Rewriter, RowCondition
from pyspark_delta.statements.target import Candidates, Condition, Target
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
        """Return the engine of an UPDATE. Raises TypeError for a value that is not text."""
        texts = {path: _text(value, f"The value of '{'.'.join(path)}'") for path, value in values.items()}
        text = None if condition is None else condition.text
        return [(ARROW, ArrowUpdate(self.target, candidates, text, lambda: texts))]

    def rewriters(self) -> Sequence[tuple[str, Rewriter]]:
        """Return what rewrites files that keep some of their rows."""
        return [(ARROW, partial(rewrite, self.target))]


def rewrite(target: Target, files: pa.Table) -> Done[Written] | CannotRun:
    """Call `rewrite_files`; a file that only Spark can read is an answer."""
    return answer(lambda: rewrite_files(target, files))


def _text(value: Condition, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is SQL text, found {type(value).__name__} {value!r}.")
    return value
