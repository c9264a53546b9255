"""UPDATE: gives some columns new values in the rows for which a condition is true.

An engine finds the rows, writes them with their new values to new files, and records them as deleted from their old
files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import orjson

from pyspark_delta.engines.contract import Done, RowEngine, first_done
from pyspark_delta.engines.row_changes import Changed
from pyspark_delta.features.support import check_removable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.assignments import check_no_identity, fill_defaults, resolve_assignments
from pyspark_delta.statements.contract import Engines, Found, OpenEngines, Staged, unchanged
from pyspark_delta.statements.outcome import apply_deletions, draft_change, file_metrics, milliseconds_since
from pyspark_delta.statements.target import Condition, RowCondition


@dataclass(frozen=True)
class Update:
    """An UPDATE statement: `assignments` are the new values by column; without a condition all rows get them.

    `open` makes the engines of each attempt.
    """

    open: OpenEngines
    assignments: Mapping[str, Condition]
    condition: Condition | None = None
    alias: str | None = None
    name: ClassVar[str] = "UPDATE"
    counts: ClassVar[int] = 1

    def stage(self, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """Find the rows and write them with their new values; return the draft of the commit.

        Raises AppendOnlyTableError, InvalidOperationError and SchemaMismatchError for the assignments,
        ConstraintViolationError, and as the engines about condition and values.
        """
        start = time.monotonic()
        attempt = self._attempt(snapshot, declared)
        target = attempt.engines.target
        done = first_done("UPDATE", attempt.asked, lambda engine: engine.change())
        files, rows, reads = done.value.files, done.value.rows, done.value.reads
        scanned = milliseconds_since(start)
        changes = apply_deletions(target, files, rows, files.slice(0, 0), attempt.engines.rewriters())
        updated = 0 if changes.is_nothing else rows.counts[0]
        metrics = {
            **file_metrics(changes, with_updated=True),
            "numUpdatedRows": updated,
            "executionTimeMs": milliseconds_since(start),
        }
        metrics["scanTimeMs"], metrics["rewriteTimeMs"] = scanned, metrics["executionTimeMs"] - scanned
        predicate = [] if attempt.condition is None else [attempt.condition.text]
        operation = Operation("UPDATE", {"predicate": orjson.dumps(predicate).decode()}, metrics, done.engine)
        draft = draft_change(target, changes, operation, reads)
        return unchanged(draft, (0,)) if changes.is_nothing else Staged(draft, (updated,), changes.written)

    def find(self, snapshot: Snapshot) -> Found:
        """Find the rows to change. Raises as `stage`, except for values that break a rule."""
        attempt = self._attempt(snapshot)
        done = first_done("UPDATE", attempt.asked, lambda engine: engine.find())
        files, rows, count = done.value.files, done.value.rows, done.value.rows.deletion_count
        found = Done(rows, done.engine, done.declined)
        return Found(attempt.engines.target, files, files.slice(0, 0), found, done.value.reads, count, count)

    def _attempt(self, snapshot: Snapshot, declared: TableConfiguration | None = None) -> _Attempt:
        engines = self.open(snapshot, self.alias, declared)
        target = engines.target
        check_removable(target.configuration, "UPDATE")
        schema = target.snapshot.schema
        given = fill_defaults(self.assignments, target.configuration, self.alias, "UPDATE", engines.is_default)
        values = resolve_assignments(schema, given, self.alias, "UPDATE")
        check_no_identity(schema, values, "UPDATE")
        condition = None if self.condition is None else engines.resolve(self.condition, "UPDATE")
        return _Attempt(engines, condition, engines.update(target.candidates(condition), condition, values))


@dataclass(frozen=True)
class _Attempt:
    """One attempt: its engines, in the order in which they are `asked`, and the condition in SQL."""

    engines: Engines
    condition: RowCondition | None
    asked: Sequence[tuple[str, RowEngine[Changed]]]
