"""Writes and changes of a table without Spark: the write pipeline and the statements, with Arrow as the only engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pyarrow.compute as pc

from pyspark_delta.data.writer import COMPRESSIONS
from pyspark_delta.engines.arrow.new_rows import bind_new_rows
from pyspark_delta.engines.arrow.write import ArrowRows
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.maintenance.auto_compaction import compact_after
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.draft import ReadSet, no_files
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import latest_snapshot
from pyspark_delta.statements.contract import Statement
from pyspark_delta.statements.execution import execute
from pyspark_delta.statements.plan import (
    APPEND,
    REWRITE,
    WHOLE_FILES,
    ChangePlan,
    conflict_surface,
    plan_change,
    require_version,
)
from pyspark_delta.table.results import ChangeResult
from pyspark_delta.table.sources import RowStream
from pyspark_delta.transaction.column_rules import check_distinct
from pyspark_delta.transaction.write_plan import FileOptions
from pyspark_delta.write.engine import WritePlan, WriteRequest, WriteSession
from pyspark_delta.write.options import WriteOptions, transaction_of
from pyspark_delta.write.pipeline import plan_write, write_rows
from pyspark_delta.write.replacement import Replaced, replace_everything, replace_matching
from pyspark_delta.write.selection import Everything, Where


@dataclass(frozen=True)
class Place:
    """Where a table is: its location, the options of its store, and the table in its catalog if it has one."""

    location: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    catalog_table: CatalogTable | None = None

    @classmethod
    def of(cls, snapshot: Snapshot) -> Place:
        """Return the place of an existing table."""
        return cls(snapshot.location, snapshot.storage_options, snapshot.catalog_table)

    def latest(self) -> Snapshot:
        """Return the latest version."""
        return latest_snapshot(self.location, self.storage_options, catalog_table=self.catalog_table)

    def options(self, **chosen: Any) -> WriteOptions:
        """Return the options of a change."""
        files = replace(chosen.pop("files", FileOptions()), storage_options=dict(self.storage_options))
        return WriteOptions(files=files, catalog_table=self.catalog_table, **chosen)


# --------------------------------------------------------------------------------------------------------- options
def file_options(
    max_records_per_file: int | None = None, target_file_size: int | None = None, compression: str | None = None
) -> FileOptions:
    """Return how data files are written. Raises InvalidOptionError."""
    for name, value in (("max_records_per_file", max_records_per_file), ("target_file_size", target_file_size)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InvalidOptionError(f"{name} is a whole number from 1 on, found {value!r}.", option=name)
    if compression is not None and compression.lower() not in COMPRESSIONS:
        raise InvalidOptionError(
            f"'{compression}' is not a compression; valid values are {', '.join(COMPRESSIONS)}.", option="compression"
        )
    return FileOptions(
        compression=compression, max_records_per_file=max_records_per_file, target_file_size=target_file_size
    )


def provenance(txn: tuple[str, int] | None, commit_info: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the application transaction and the user metadata of a commit, as options.

    Raises InvalidOptionError, and TypeError for metadata that is neither text nor a dict of values that JSON has.
    """
    if txn is not None and not _is_transaction(txn):
        raise InvalidOptionError(
            f"txn is the id of an application and the number of its write, as in ('job', 7), found {txn!r}."
        )
    transaction = None if txn is None else transaction_of(txn[0], str(txn[1]))
    return {"transaction": transaction, "user_metadata": _info_text(commit_info)}


def _is_transaction(txn: object) -> bool:
    if not isinstance(txn, Sequence) or isinstance(txn, str) or len(txn) != 2:
        return False
    application, number = txn
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 63
    return isinstance(application, str) and bool(application) and is_number


def _info_text(commit_info: object) -> str | None:
    if commit_info is None or isinstance(commit_info, str):
        return commit_info
    if not isinstance(commit_info, Mapping):
        raise TypeError(f"commit_info must be a string or a dict, found {type(commit_info).__name__} {commit_info!r}.")
    try:
        return orjson.dumps(dict(commit_info)).decode()
    except TypeError as error:
        raise TypeError(f"commit_info must hold values that JSON has: {error}.") from None


# ---------------------------------------------------------------------------------------------------------- writes
def write(
    place: Place, rows: RowStream, mode: str, options: WriteOptions, *, must_exist: bool, statement: str = ""
) -> ChangeResult:
    """Write rows in one commit; auto compaction follows it. `statement` is that of a `WriteRequest`.

    Raises as `write.pipeline.write_rows`.
    """
    request = WriteRequest(place.location, mode, options, must_exist=must_exist, statement=statement)
    committed = write_rows(request, rows.types, WriteSession(), ArrowRows(rows.batches, rows.reads, rows.total))
    if committed is None:
        return ChangeResult(None)
    compact_after(place.latest, committed.version, committed.configuration)
    return ChangeResult(committed.version, committed.metrics)


def plan_of_write(place: Place, rows: RowStream, mode: str, options: WriteOptions) -> ChangePlan[ChangeResult]:
    """Return the plan of a write to an existing table, without reading the rows.

    Raises the errors that the write raises before it reads rows.
    """
    check_distinct(rows.types)
    snapshot = place.latest()
    request = WriteRequest(place.location, mode, options, must_exist=True)
    plan = plan_write(request, rows.types, snapshot, WriteSession())
    bind_new_rows(plan)
    replaced = _replaced(plan, snapshot)
    whole, partly = (replaced.whole, replaced.partly) if replaced is not None else (no_files(), no_files())

    def run() -> ChangeResult:
        require_version(place.latest(), snapshot)
        return write(place, rows, mode, options, must_exist=True)

    return ChangePlan(
        operation="WRITE",
        version=snapshot.version,
        method=REWRITE if partly.num_rows else WHOLE_FILES if whole.num_rows else APPEND,
        rows_affected=-1,
        rows_written=-1,
        rows_copied=-1 if partly.num_rows else 0,
        files_removed=whole.num_rows,
        files_changed=partly.num_rows,
        files_untouched=snapshot.num_files() - whole.num_rows - partly.num_rows,
        bytes_removed=pc.sum(whole["size"]).as_py() or 0,
        bytes_rewritten=pc.sum(partly["size"]).as_py() or 0,
        conflicts_with=conflict_surface(ReadSet() if replaced is None else replaced.reads),
        engine="Arrow in the driver",
        engine_reason="",
        _execute=run,
    )


def _replaced(plan: WritePlan, snapshot: Snapshot) -> Replaced | None:
    match plan.selection:
        case Everything():
            return replace_everything(snapshot)
        case Where(_, predicate):
            return replace_matching(snapshot, predicate, plan.time_zone)
        case _:
            return None


# ------------------------------------------------------------------------------------------------------ statements
def run_statement(place: Place, statement: Statement, options: WriteOptions, counted: Sequence[str]) -> ChangeResult:
    """Run a statement; auto compaction follows its commit. `counted` are the metrics of its result.

    Raises as `statements.execution.execute`.
    """
    return _executed(place, place.latest, statement, options, counted)


def plan_statement(
    place: Place, statement: Statement, options: WriteOptions, counted: Sequence[str]
) -> ChangePlan[ChangeResult]:
    """Return the plan of a statement on the latest version. Raises as `statements.plan.plan_change`."""
    return plan_change(place.latest, statement, lambda current: _executed(place, current, statement, options, counted))


def _executed(
    place: Place, current: Callable[[], Snapshot], statement: Statement, options: WriteOptions, counted: Sequence[str]
) -> ChangeResult:
    staged = execute(current, statement, transaction=options.transaction)
    if staged is None:
        return ChangeResult(None)
    if staged.draft is None:
        return ChangeResult(None, dict.fromkeys(counted, 0))
    compact_after(place.latest, staged.version, staged.configuration)
    return ChangeResult(staged.version, staged.draft.operation.metrics)
