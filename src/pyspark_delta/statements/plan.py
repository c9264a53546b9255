"""The plan of a statement: which files and rows it would change, how, and which commits it could conflict with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.display import counted, html_facts
from pyspark_delta.errors import ConcurrentWriteError
from pyspark_delta.expressions.current_time import one_moment
from pyspark_delta.expressions.text import to_sql
from pyspark_delta.protocol.draft import ReadSet
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.contract import Found, Statement
from pyspark_delta.transaction.deleted_rows import delete_rows

ResultT = TypeVar("ResultT")

VECTORS, REWRITE, WHOLE_FILES, APPEND, NOTHING = (
    "deletion vectors",
    "rewrite of files",
    "whole files",
    "new files only",
    "nothing",
)
"""How a statement takes rows out of files."""


@dataclass(frozen=True, repr=False)
class ChangePlan(Generic[ResultT]):
    """What a statement would do to version `version` of a table.

    `files_removed` lose all their rows, `files_changed` some of them, by `method`; `files_untouched` none.
    `rows_copied` and `bytes_rewritten` are 0 unless files are rewritten; sizes are bytes. `conflicts_with` says which
    concurrent commits would make the statement run again. `engine` is the engine that found the rows, `engine_reason`
    why others could not. `execute` runs the statement.
    """

    operation: str
    version: int
    method: str
    rows_affected: int
    rows_written: int
    rows_copied: int
    files_removed: int
    files_changed: int
    files_untouched: int
    bytes_removed: int
    bytes_rewritten: int
    conflicts_with: str
    engine: str
    engine_reason: str
    _execute: Callable[[], ResultT] = field(repr=False, compare=False)

    def execute(self) -> ResultT:
        """Run the statement; return its counts, as without a plan.

        Raises ConcurrentWriteError if the table has a newer version than the plan.
        """
        return self._execute()

    def facts(self) -> dict[str, str | int]:
        """Return the plan as names and values."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __repr__(self) -> str:
        rows = "" if self.rows_affected < 0 else f"{counted(self.rows_affected, 'row')}, "
        changed = counted(self.files_removed + self.files_changed, "file")
        return f"ChangePlan({self.operation} on version {self.version}: {rows}{changed}, {self.method})"

    def __str__(self) -> str:
        return "\n".join(f"{name.replace('_', ' '):<16} {value}" for name, value in self.facts().items())

    def _repr_html_(self) -> str:
        return html_facts("ChangePlan", {name.replace("_", " "): value for name, value in self.facts().items()})


def plan_change(
    current: Callable[[], Snapshot],
    statement: Statement,
    execute: Callable[[Callable[[], Snapshot]], ResultT],
) -> ChangePlan[ResultT]:
    """Return the plan of a statement on the newest version.

    `execute` runs the statement on the newest version, which it gets from its argument. Finds the rows, and writes
    nothing. Raises as staging the statement does about its conditions and values.
    """
    snapshot = current()
    with one_moment():
        found = statement.find(snapshot)
    deleted = delete_rows(snapshot.location, snapshot.storage_options, found.candidates, found.rows.value.deletions)
    updated, removed = deleted.updated, pa.concat_tables([found.removed_whole, deleted.removed])
    rewrites = bool(updated.num_rows) and not found.target.uses_vectors
    return ChangePlan(
        operation=statement.name,
        version=snapshot.version,
        method=_method(updated, removed, found),
        rows_affected=found.affected,
        rows_written=found.new_rows,
        rows_copied=deleted.remaining_rows if rewrites else 0,
        files_removed=removed.num_rows,
        files_changed=updated.num_rows,
        files_untouched=snapshot.num_files() - removed.num_rows - updated.num_rows,
        bytes_removed=pc.sum(removed["size"]).as_py() or 0,
        bytes_rewritten=(pc.sum(updated["size"]).as_py() or 0) if rewrites else 0,
        conflicts_with=conflict_surface(found.reads),
        engine=found.rows.engine,
        engine_reason=found.rows.reason,
        _execute=lambda: execute(lambda: require_version(current(), snapshot)),
    )


def _method(updated: pa.Table, removed: pa.Table, found: Found) -> str:
    if updated.num_rows:
        return VECTORS if found.target.uses_vectors else REWRITE
    if removed.num_rows:
        return WHOLE_FILES
    return APPEND if found.new_rows else NOTHING


def conflict_surface(reads: ReadSet) -> str:
    """Return which commits of other writers would change the rows of the statement."""
    if reads.whole_table:
        return "any commit that adds or removes rows"
    if reads.predicates:
        text = " or ".join(to_sql(predicate) for predicate in reads.predicates)
        files = f", or remove one of the {len(reads.paths)} files that were read" if reads.paths else ""
        return f"commits that add rows that may match {text}{files}"
    return "nothing but changes of schema or protocol"


def require_version(newest: Snapshot, planned: Snapshot) -> Snapshot:
    """Return the newest version. Raises ConcurrentWriteError if it is not the planned one."""
    if newest.version != planned.version:
        raise ConcurrentWriteError(
            f"The plan is for version {planned.version} of '{planned.location}', which is at version "
            f"{newest.version} now. Nothing was changed. Make the plan again.",
            version=newest.version,
        )
    return newest
