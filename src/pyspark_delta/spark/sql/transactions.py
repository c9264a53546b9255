"""BEGIN TRANSACTION, COMMIT and ROLLBACK: statements of a session about one table, committed together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_delta.ddl.alter import Alteration
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.api.alter import alteration
from pyspark_delta.spark.api.transaction import DeltaTransaction, begin_transaction
from pyspark_delta.spark.conf.arrow import frame_of_changes
from pyspark_delta.spark.conf.sessions import session_key
from pyspark_delta.spark.engine.dml.execution import run_statement
from pyspark_delta.spark.engine.write.save import write_table
from pyspark_delta.spark.sql.targets import SqlTable
from pyspark_delta.statements.contract import Statement
from pyspark_delta.write.engine import WriteRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class _Begun:
    """The table of a transaction, and its operations."""

    table: SqlTable
    operations: DeltaTransaction


@dataclass
class _Open:
    """A transaction that is open. It begins on the table of its first statement.

    `is_altering` is True while Spark analyzes an ALTER TABLE of it.
    """

    stack: ExitStack = field(default_factory=ExitStack)
    begun: _Begun | None = None
    failure: Exception | None = None
    is_altering: bool = False

    def on(self, spark: SparkSession, table: SqlTable) -> _Begun:
        """Return the transaction for a statement on a table.

        Raises InvalidOperationError for another table than that of the statements before, and after a failure.
        """
        if self.failure is not None:
            raise _state(f"An earlier statement of the transaction failed ({_line(self.failure)}). Run ROLLBACK.")
        if self.begun is None:
            operations = self.stack.enter_context(begin_transaction(spark, table.snapshot()))
            self.begun = _Begun(table, operations)
        elif self.begun.table.location != table.location:
            raise _state(
                f"The transaction changes {self.begun.table.text}, so it cannot change {table.text}: all of its "
                "statements are about one table. Run COMMIT or ROLLBACK first."
            )
        return self.begun

    def discard(self) -> None:
        """Discard the changes: an exception ends the block of the transaction."""
        with suppress(_DiscardedError), self.stack:
            raise _DiscardedError


class _DiscardedError(Exception):
    """Ends the block of a transaction that is rolled back."""


_transactions: dict[str, _Open] = {}  # by session


def begin(spark: SparkSession) -> None:
    """Begin a transaction. Raises InvalidOperationError if one is open."""
    if is_open(spark):
        raise _state("A transaction is open already. Run COMMIT or ROLLBACK first.")
    _transactions[session_key(spark)] = _Open()


def commit(spark: SparkSession) -> DataFrame:
    """Commit the transaction; return one row with its `version`, null if nothing was changed.

    Raises InvalidOperationError if none is open or a statement of it failed, and CommitConflictError. The transaction
    is over in any case.
    """
    found = _transactions.pop(session_key(spark), None)
    if found is None:
        raise _state("No transaction is open. Run BEGIN TRANSACTION first.")
    if found.failure is not None:
        found.discard()
        raise _state(
            f"A statement of the transaction failed ({_line(found.failure)}), so nothing was committed. Begin again."
        )
    found.stack.close()
    version = None if found.begun is None else found.begun.operations.version
    return frame_of_changes(spark, {"version": version})


def rollback(spark: SparkSession) -> None:
    """Discard the changes of the transaction. Raises InvalidOperationError if none is open."""
    found = _transactions.pop(session_key(spark), None)
    if found is None:
        raise _state("No transaction is open, so there is nothing to roll back.")
    found.discard()


def end(spark: SparkSession) -> None:
    """Discard the transaction of a session that is disabled, if one is open."""
    found = _transactions.pop(session_key(spark), None)
    if found is not None:
        found.discard()


def is_open(spark: SparkSession) -> bool:
    """Return True if a transaction of the session is open."""
    return _current(spark) is not None


def snapshot_of(spark: SparkSession, table: SqlTable) -> Snapshot:
    """Return a table with the definition that a statement uses: the newest version, or that of its transaction.

    The latter lacks the rows of the transaction.
    """
    found = _current(spark)
    return table.snapshot() if found is None else found.on(spark, table).operations._defined


def run(spark: SparkSession, table: SqlTable, statement: Statement) -> DataFrame:
    """Run a statement on a table, in the open transaction if there is one; return its counts.

    Raises as `run_statement` and `DeltaTransaction.delete`.
    """
    found = _current(spark)
    if found is None:
        return run_statement(spark, table.snapshot, statement)
    return found.on(spark, table).operations._run(statement)


def write(spark: SparkSession, table: SqlTable, frame: DataFrame, request: WriteRequest) -> None:
    """Write rows to a table, in the open transaction if there is one. Raises as `write_table`."""
    found = _current(spark)
    if found is None:
        write_table(frame, request)
        return
    operations = found.on(spark, table).operations
    operations._write(frame, request.mode, operations._prepared(request.options))


def alteration_of(spark: SparkSession, open_snapshot: Callable[[], Snapshot], name: tuple[str, ...] = ()) -> Alteration:
    """Return what changes the definition of a table, in the open transaction if there is one.

    Without one, each change is a commit on the version that `open_snapshot` returns. `name` are the parts of the name.
    """
    found = _current(spark)
    if found is None:
        return alteration(spark, open_snapshot)
    opened = open_snapshot()
    table = SqlTable(name, opened.location, opened.storage_options, opened.catalog_table)
    return found.on(spark, table).operations._alteration


@contextmanager
def altering(spark: SparkSession, table: SqlTable) -> Iterator[None]:
    """Let Spark analyze an ALTER TABLE with the definition of the open transaction, and remember its failure."""
    found = _current(spark)
    if found is None:
        yield
        return
    with remembering_failure(spark):
        found.on(spark, table)
        found.is_altering = True
        try:
            yield
        finally:
            found.is_altering = False


def altered(spark: SparkSession, snapshot: Snapshot) -> Snapshot | None:
    """Return what an ALTER TABLE sees of a table in place of its newest version; None if that is what it sees."""
    found = _current(spark)
    if found is None or not found.is_altering or found.begun is None or found.begun.table.location != snapshot.location:
        return None
    return found.begun.operations._defined


def staged(spark: SparkSession, location: str) -> Snapshot | None:
    """Return what a query sees of the table at a location: the open transaction's result; None if none changes it."""
    found = _current(spark)
    if found is None or found.begun is None or found.begun.table.location != location:
        return None
    return found.begun.operations._staged


def shown(spark: SparkSession, table: SqlTable) -> Snapshot:
    """Return what DESCRIBE and SHOW show of a table: `staged`, otherwise the version that its name selects."""
    return staged(spark, table.location) or table.selected(spark)


def staged_frame(spark: SparkSession, location: str) -> DataFrame | None:
    """Return the rows that a query sees of the table at a location, as `staged`."""
    found = _current(spark)
    if found is None or found.begun is None or staged(spark, location) is None:
        return None
    return found.begun.operations.toDF()


def table_of(spark: SparkSession) -> SqlTable | None:
    """Return the table of the open transaction; None if there is none."""
    found = _current(spark)
    return None if found is None or found.begun is None else found.begun.table


@contextmanager
def remembering_failure(spark: SparkSession) -> Iterator[None]:
    """Remember an exception that leaves the block: the open transaction can then only be rolled back."""
    try:
        yield
    except Exception as error:
        found = _current(spark)
        if found is not None and found.failure is None:
            found.failure = error
        raise


def check_none(spark: SparkSession, statement: str) -> None:
    """Raise InvalidOperationError if a transaction is open, for a statement that makes a commit of its own."""
    if is_open(spark):
        raise _state(f"{statement} cannot be part of a transaction. Nothing was changed. Run COMMIT or ROLLBACK first.")


def _current(spark: SparkSession) -> _Open | None:
    return _transactions.get(session_key(spark)) if _transactions else None


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _state(text: str) -> InvalidOperationError:
    return InvalidOperationError(text, error_class="DELTA_INVALID_TRANSACTION_STATE", sqlstate="25000")
