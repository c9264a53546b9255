"""`DeltaTable.transaction()`: several changes of definition and rows that are committed together or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.ddl.staged import StagedAlteration
from pyspark_delta.display import html_facts
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import latest_snapshot
from pyspark_delta.spark.api.alter import DeltaTableAlter
from pyspark_delta.spark.api.existing_rows import check_existing_rows
from pyspark_delta.spark.api.merge_builder import DeltaMergeBuilder
from pyspark_delta.spark.conf.arguments import check_values
from pyspark_delta.spark.conf.batches import batch_transaction, call_site
from pyspark_delta.spark.conf.write_defaults import after_commit, resets_version, with_session_defaults
from pyspark_delta.spark.engine.dml.engines import delete_statement, update_statement
from pyspark_delta.spark.engine.dml.execution import counts_frame
from pyspark_delta.spark.engine.dml.merge import merge_statement
from pyspark_delta.spark.engine.write.compaction import auto_compaction, compact_commit
from pyspark_delta.spark.engine.write.save import stage_change, write_feed, write_net_feed
from pyspark_delta.spark.frames.read_marks import mark_read
from pyspark_delta.spark.frames.reading import read_snapshot
from pyspark_delta.statements.contract import Statement
from pyspark_delta.statements.merge.merge import Merge
from pyspark_delta.statements.plan import ChangePlan
from pyspark_delta.statements.target import Condition
from pyspark_delta.transaction.combination import changed_again, operation_of
from pyspark_delta.transaction.commit_info import engine_info
from pyspark_delta.transaction.staging import new_files
from pyspark_delta.transaction.transaction import Transaction
from pyspark_delta.write.change_data import check_one_feed
from pyspark_delta.write.engine import WriteRequest
from pyspark_delta.write.options import WriteOptions, parse_options, transaction_of
from pyspark_delta.write.written import discard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def begin_transaction(spark: SparkSession, snapshot: Snapshot, alias: str | None = None) -> Iterator[DeltaTransaction]:
    """Run a transaction on a snapshot of the table; commit it if the block ends without an exception.

    `alias` is the name of the table in the conditions of statements. Raises UnsupportedFeatureError for a table that
    cannot be written to, and as `commit_draft` at the end of the block.
    """
    compaction, resets = auto_compaction(spark), resets_version(spark)
    with (
        batch_transaction(spark, snapshot.location, ("TRANSACTION", call_site())) as of_batch,
        Transaction.on(snapshot, engine_info=engine_info(f"PySpark/{spark.version}")) as transaction,
    ):
        operations = DeltaTransaction(spark, snapshot, transaction, alias, of_batch)
        yield operations
        operations._complete()
    after_commit(spark, resets=resets)

    def latest() -> Snapshot:
        return latest_snapshot(snapshot.location, snapshot.storage_options, catalog_table=snapshot.catalog_table)

    compact_commit(spark, compaction, latest, operations.version, transaction.configuration)


class DeltaTransaction:
    """Operations on a table, committed together at the end of the block.

    Operations on rows run their Spark jobs when they are called, and see what those before have done. The change data
    feed shows each row once, as it was before the transaction and as it is afterwards. An exception that leaves
    the block discards everything. Everything is discarded too if the table already holds the application transaction
    (`setTransaction`). The end of the block raises CommitConflictError if a concurrent commit changed the definition,
    if the transaction changes it too, or rows that an operation depends on; then run the block again.

    >>> with table.transaction() as txn:                                        # doctest: +SKIP
    ...     txn.delete("day = '2024-01-31'")
    ...     txn.append(corrected)
    """

    def __init__(
        self,
        spark: SparkSession,
        snapshot: Snapshot,
        transaction: Transaction,
        alias: str | None = None,
        of_batch: SetTransaction | None = None,
    ) -> None:
        self._spark, self._snapshot, self._transaction, self._alias = spark, snapshot, transaction, alias
        self._operations: list[Operation] = []
        self._user_metadata: str | None = None
        self._is_done = False
        self._of_batch = of_batch

    @property
    def version(self) -> int | None:
        """The committed version; None before the commit, and if nothing was committed."""
        version = self._transaction.version
        return version if version > self._snapshot.version else None

    # --------------------------------------------------------------------------------------------------- writes
    def append(self, df: DataFrame, **options: object) -> DeltaTransaction:
        """Add rows; `options` are those of DataFrameWriter, such as `mergeSchema=True`. Raises as a write does."""
        return self._write(df, "append", self._options(options))

    def overwrite(self, df: DataFrame, **options: object) -> DeltaTransaction:
        """Replace all rows, or those that `options` select, such as `replaceWhere="month = 1"`.

        Raises as a write does.
        """
        return self._write(df, "overwrite", self._options(options))

    def _write(self, frame: DataFrame, mode: str, options: WriteOptions) -> DeltaTransaction:
        if not self._is_done:
            storage_options = {**(self._snapshot.storage_options or {}), **options.files.storage_options}
            files = replace(options.files, storage_options=storage_options)
            options = replace(options, files=files, catalog_table=self._snapshot.catalog_table)
            request = WriteRequest(self._snapshot.location, mode, options, must_exist=True)
            current = self._defined if mode == "append" else self._current
            draft, reads = stage_change(frame, request, current, current.configuration)
            self._stage(draft)
            self._transaction.depend_on(reads)
        return self

    def _options(self, given: Mapping[str, object]) -> WriteOptions:
        """Return the options of an operation, with the session's defaults."""
        return self._prepared(parse_options(given))

    def _prepared(self, options: WriteOptions) -> WriteOptions:
        """Return options with the session's defaults.

        An application transaction that they name applies to the whole transaction.
        """
        self._transaction.require_open()
        transaction = options.transaction or self._of_batch
        options = with_session_defaults(self._spark, replace(options, transaction=transaction))
        if options.transaction is not None:
            self.setTransaction(options.transaction.app_id, options.transaction.version)
        return options

    # --------------------------------------------------------------------------------------------- statements
    def delete(self, condition: Condition | None = None) -> DataFrame:
        """Delete rows as `DeltaTable.delete` does; return one row with `num_affected_rows`.

        Raises as `DeltaTable.delete`.
        """
        return self._run(delete_statement(self._spark, condition, self._alias))

    def update(
        self,
        condition: Condition | Mapping[str, Condition] | None = None,
        set: Mapping[str, Condition] | None = None,  # noqa: A002 - delta-spark's name
    ) -> DataFrame:
        """Update rows as `DeltaTable.update` does; return one row with `num_affected_rows`. Raises as `delete`."""
        if isinstance(condition, Mapping):
            condition, set = None, condition  # noqa: A001
        return self._run(update_statement(self._spark, check_values("set", set), condition, self._alias))

    def merge(self, source: DataFrame, condition: Condition) -> DeltaMergeBuilder:
        """Return a builder as `DeltaTable.merge` does; `execute` adds the merge to the transaction.

        Raises as `delete`.
        """
        return DeltaMergeBuilder(merge_statement(self._spark, source, condition, self._alias), self._run, _refuse_plan)

    def _run(self, statement: Statement) -> DataFrame:
        self._options({})
        if self._is_done:
            return counts_frame(self._spark, (0,) * statement.counts)
        current = self._current
        staged = statement.stage(current, current.configuration)
        if staged.draft is None:
            self._transaction.depend_on(staged.reads)
        else:
            self._stage(staged.draft, staged.written)
        self._transaction.depend_on(staged.source_reads)
        return counts_frame(self._spark, staged.result)

    # ------------------------------------------------------------------------------------------- definition
    def alter(self) -> DeltaTableAlter:
        """Return an object whose methods change columns, constraints, properties and clustering in the transaction.

        The operations that follow see the changes. Existing rows are checked, and those of operations before; the
        former must not change until the commit. Rows that the transaction has written are null in a new column.

        The methods raise InvalidOperationError for a change that one commit cannot contain together with the operations
        before. The transaction then goes on without it.
        """
        return DeltaTableAlter(self, self._alteration)

    def setProperties(self, properties: Mapping[str, object]) -> DeltaTransaction:
        """Set table properties for the following writes. Raises as the methods of `alter`."""
        self._alteration.set_properties(properties)
        return self

    def unsetProperties(self, *names: str, ifExists: bool = False) -> DeltaTransaction:
        """Reset properties to their defaults. Raises as the methods of `alter`."""
        self._alteration.unset_properties(names, if_exists=ifExists)
        return self

    @property
    def _alteration(self) -> StagedAlteration:
        return StagedAlteration(lambda: self._staged, partial(check_existing_rows, self._spark), stage=self._define)

    def _define(self, draft: CommitDraft) -> DeltaTransaction:
        self._transaction.define(draft)
        self._operations.append(draft.operation)
        return self

    @property
    def _staged(self) -> Snapshot:
        """The table as the commit would leave it now."""
        self._transaction.require_open()
        return self._transaction.staged_snapshot

    @property
    def _current(self) -> Snapshot:
        """The table as the commit would leave it now, for operations that change its rows."""
        self._transaction.require_open()
        return self._transaction.row_snapshot

    @property
    def _defined(self) -> Snapshot:
        """The version at which the transaction began, with its new definition."""
        return self._transaction.changed_snapshot

    # ------------------------------------------------------------------------------------------------ reading
    def toDF(self) -> DataFrame:
        """Return the rows of the table as the commit would leave them now, with its definition then.

        If rows that the transaction writes come from it, the commit fails if a concurrent one changes what it shows.
        """
        return mark_read(read_snapshot(self._spark, self._staged), self._snapshot, None)

    # ----------------------------------------------------------------------------------- commit information
    def setTransaction(self, appId: str, version: int) -> DeltaTransaction:
        """Identify the transaction by an application and its version, so that it is committed only once (C180).

        Nothing is committed if the table already holds this version of the application, or a later one.
        """
        asked = transaction_of(appId, str(version))
        assert asked is not None
        known = self._transaction.application_version(asked.app_id)
        self._is_done = self._is_done or (known is not None and known >= asked.version)
        self._transaction.set_application_version(asked.app_id, asked.version)
        return self

    def userMetadata(self, text: str) -> DeltaTransaction:
        """Set the user metadata that the history shows; it overrides that of the session and of write options."""
        self._user_metadata = text
        return self

    # ------------------------------------------------------------------------------------------------- details
    def _stage(self, draft: CommitDraft, written: Sequence[str] = ()) -> DeltaTransaction:
        try:
            draft = self._with_feed(draft)
            net = self._net_changes(draft)
        except BaseException:
            discard(self._snapshot, [*new_files(draft), *written])
            raise
        self._transaction.stage(draft, written, net)
        self._operations.append(draft.operation)
        return self

    def _with_feed(self, draft: CommitDraft) -> CommitDraft:
        """Return a draft with change data files if earlier changes have them; write those of earlier ones if it has."""
        before = self._transaction.draft
        parts = [part for part in (before, draft) if part.adds.num_rows or part.removes.num_rows]
        silent = [part for part in parts if not part.changes.num_rows]
        if len(silent) == len(parts):
            return draft
        check_one_feed(self._transaction.configuration, self._transaction.preview(draft).configuration, draft.operation)
        if not silent:
            return draft
        changes = write_feed(self._spark, self._transaction.preview(silent[0]))
        if silent[0] is draft:
            return replace(draft, changes=changes)
        self._transaction.represent(changes)
        return draft

    def _net_changes(self, draft: CommitDraft) -> pa.Table | None:
        """Return change data files of the transaction and a draft, if the draft may change rows that it has changed."""
        before = self._transaction.draft
        if not changed_again(before, draft, self._snapshot.location).num_rows:
            return None
        changes = (before.changes, draft.changes)
        configuration = self._transaction.preview(draft).configuration
        return write_net_feed(self._spark, self._snapshot, configuration, changes)

    def _complete(self) -> None:
        """Describe the operations for the history, or clear the draft if there is nothing to commit."""
        if self._is_done:
            self._transaction.discard()
            return
        if self._operations:
            self._transaction.set_operation(operation_of(self._operations))
        if self._user_metadata is not None:
            self._transaction.set_user_metadata(self._user_metadata)

    def __repr__(self) -> str:
        return f"Delta{self._transaction!r}"

    def _repr_html_(self) -> str:
        return html_facts("DeltaTransaction", self._transaction._shown())


def _refuse_plan(merge: Merge) -> ChangePlan[DataFrame]:
    raise InvalidOperationError(
        "A plan has its own commit, so it cannot be made in a transaction. Call execute(), or make the plan with "
        "DeltaTable.merge."
    )
