"""DELETE: removes the rows for which a condition is true.

Files that match fully by partition values and statistics are removed without reading them. An engine finds the rows in
the other files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import orjson
import pyarrow as pa

from pyspark_delta.engines.contract import NONE, CannotRun, Done, RowEngine, first_done
from pyspark_delta.engines.row_changes import ChangeContext, ChangedRows, RowAction
from pyspark_delta.features.support import check_removable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.contract import Engines, Found, OpenEngines, Staged, unchanged
from pyspark_delta.statements.outcome import apply_deletions, draft_change, file_metrics, milliseconds_since
from pyspark_delta.statements.target import Candidates, Condition, RowCondition, by_partition
from pyspark_delta.write.change_data import change_context
from pyspark_delta.write.replacement import count_rows

_DELETE = (RowAction.DELETE,)


@dataclass(frozen=True)
class Delete:
    """A DELETE statement; without a condition it deletes all rows. `open` makes the engines of each attempt."""

    open: OpenEngines
    condition: Condition | None = None
    alias: str | None = None
    name: ClassVar[str] = "DELETE"
    counts: ClassVar[int] = 1

    def stage(self, snapshot: Snapshot, declared: TableConfiguration | None = None) -> Staged:
        """Find the rows, and write the files that replace theirs; return the draft of the commit.

        Raises AppendOnlyTableError, InvalidPredicateError, and as the engines about the condition.
        """
        start = time.monotonic()
        search = self._search(snapshot, declared)
        target, candidates = search.engines.target, search.candidates
        writes_changes = target.has_feed and not target.uses_vectors and candidates.partially_matched.num_rows > 0
        if writes_changes:  # change data files hold all changes of a commit (C169), so all rows are read
            files = by_partition(candidates.all, target.context)
            candidates = Candidates(files.slice(0, 0), files, candidates.reads)
        context = ChangeContext(_DELETE)
        if writes_changes:
            context = ChangeContext(_DELETE, target.context.schema, changes=change_context(target.context))
        done = search.run(candidates.partially_matched, context, lambda engine: engine.change())
        rows, scanned = done.value, milliseconds_since(start)
        changes = apply_deletions(
            target, candidates.partially_matched, rows, candidates.fully_matched, search.engines.rewriters()
        )
        deleted = _deleted(candidates, rows)
        metrics = file_metrics(changes)
        if deleted is not None:
            metrics["numDeletedRows"] = deleted
        metrics["executionTimeMs"] = milliseconds_since(start)
        metrics["scanTimeMs"], metrics["rewriteTimeMs"] = scanned, metrics["executionTimeMs"] - scanned
        operation = self._operation(search.predicate_text, metrics, done.engine)
        draft = draft_change(target, changes, operation, candidates.reads)
        if changes.is_nothing:
            return unchanged(draft, (0,))
        return Staged(draft, (-1 if deleted is None else deleted,), changes.written)

    def find(self, snapshot: Snapshot) -> Found:
        """Find the rows to delete. Raises as `stage`."""
        search = self._search(snapshot)
        candidates = search.candidates
        files = candidates.partially_matched
        done = search.run(files, ChangeContext(_DELETE), lambda engine: engine.find())
        deleted = _deleted(candidates, done.value)
        affected = -1 if deleted is None else deleted
        return Found(search.engines.target, files, candidates.fully_matched, done, candidates.reads, affected)

    def _operation(self, predicate: str, metrics: Mapping[str, int], engine: str) -> Operation:
        return Operation("DELETE", {"predicate": predicate}, metrics, engine)

    def _search(self, snapshot: Snapshot, declared: TableConfiguration | None = None) -> _Search:
        engines = self.open(snapshot, self.alias, declared)
        target = engines.target
        check_removable(target.configuration, self.name)
        condition = None if self.condition is None else engines.resolve(self.condition, "DELETE")
        return _Search(engines, condition, target.candidates(condition))


@dataclass(frozen=True)
class Truncate(Delete):
    """A TRUNCATE TABLE statement: deletes all rows, as a DELETE without a condition."""

    name: ClassVar[str] = "TRUNCATE"

    def _operation(self, predicate: str, metrics: Mapping[str, int], engine: str) -> Operation:
        return Operation(
            "TRUNCATE", {}, {name: metrics[name] for name in ("numRemovedFiles", "executionTimeMs")}, engine
        )


@dataclass(frozen=True)
class _Search:
    """One attempt: its engines, the condition in SQL, and the candidate files."""

    engines: Engines
    condition: RowCondition | None
    candidates: Candidates

    @property
    def predicate_text(self) -> str:
        """The condition as the history shows it."""
        return orjson.dumps(["true" if self.condition is None else self.condition.text]).decode()

    def run(
        self,
        files: pa.Table,
        context: ChangeContext,
        ask: Callable[[RowEngine[ChangedRows]], Done[ChangedRows] | CannotRun],
    ) -> Done[ChangedRows]:
        """Ask the engines for the rows of files that are partially matched."""
        if not files.num_rows or self.condition is None:
            return Done(ChangedRows.nothing(len(_DELETE)), NONE)
        return first_done("DELETE", self.engines.delete(files, self.condition, context), ask)


def _deleted(candidates: Candidates, rows: ChangedRows) -> int | None:
    """Return the number of deleted rows; None if a removed file does not state its number of rows."""
    known = count_rows(candidates.fully_matched)
    return None if known is None else known + rows.deletion_count
