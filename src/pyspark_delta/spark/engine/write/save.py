"""`df.write.format("delta").save(path)` and `insertInto`: the write pipeline with a DataFrame as its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, ReadSet
from pyspark_delta.scan.file_source import FileSource, file_source
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import latest_snapshot
from pyspark_delta.spark.conf.active import active
from pyspark_delta.spark.conf.batches import batch_transaction
from pyspark_delta.spark.conf.limits import reexecutions
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.conf.strings import as_read_here
from pyspark_delta.spark.conf.write_defaults import (
    after_commit,
    default_properties,
    file_options,
    is_set,
    resets_version,
    with_session_defaults,
)
from pyspark_delta.spark.engine.frame_reads import frame_reads
from pyspark_delta.spark.engine.write.alignment import frame_schema
from pyspark_delta.spark.engine.write.compaction import auto_compaction, compact_commit
from pyspark_delta.spark.engine.write.exchange import exchange_of
from pyspark_delta.spark.engine.write.job import (
    write_changes,
    write_feed_rows,
    write_frame,
    write_kept,
)
from pyspark_delta.spark.engine.write.net_changes import write_net_changes
from pyspark_delta.spark.engine.write.row_matches import ConditionMatch, RowMatch, match_rows, replace_rows
from pyspark_delta.spark.engine.write.rules import apply_rules
from pyspark_delta.spark.frames.change_feed import read_last_changes
from pyspark_delta.spark.frames.positions import by_position
from pyspark_delta.spark.frames.reading import read_files
from pyspark_delta.spark.frames.schemas import empty_frame, to_spark
from pyspark_delta.transaction.write_plan import FileOptions, write_context
from pyspark_delta.write.engine import WritePlan, WriteRequest, WriteSession
from pyspark_delta.write.options import WriteOptions, parse_mode, parse_options
from pyspark_delta.write.pipeline import plan_write, stage_rows, write_rows
from pyspark_delta.write.replacement import Replaced
from pyspark_delta.write.selection import ReplaceWhere, Where
from pyspark_delta.write.written import Written, has_row_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def save(
    frame: DataFrame,
    location: str,
    mode: str | None = None,
    partition_by: Sequence[str] | None = None,
    options: Mapping[str, object] | None = None,
    *,
    cluster_by: Sequence[str] = (),
    catalog_table: CatalogTable | None = None,
) -> int | None:
    """Write a frame to the table at `location`; return the committed version, None if there was nothing to do.

    `mode` is append, overwrite, error (the default; also errorifexists) or ignore, as for DataFrameWriter. A table that
    does not exist is created. Nothing is visible before the one commit at the end; a failed write leaves the table
    unchanged.

    Raises TableAlreadyExistsError (mode error), SchemaMismatchError, ConstraintViolationError, InvalidOptionError,
    UnsupportedFeatureError for a table with features that this package cannot write, and CommitConflictError.
    """
    parsed = replace(parse_options(options), catalog_table=catalog_table)
    if partition_by:
        parsed = replace(parsed, partition_by=tuple(partition_by))
    if cluster_by:
        parsed = replace(parsed, cluster_by=tuple(cluster_by))
    return write_table(frame, WriteRequest(location, parse_mode(mode), parsed))


def insert_into(frame: DataFrame, location: str, options: WriteOptions, *, overwrite: bool) -> int | None:
    """Write a frame to an existing table, with columns, and members of structs, matched by position.

    Raises TableNotFoundError, SchemaMismatchError for another number of columns or fewer members, and as `save`.
    """
    storage_options = options.files.storage_options
    schema = Snapshot.load(location, storage_options=storage_options, catalog_table=options.catalog_table).schema
    names = schema.names
    if len(frame.columns) != len(names):
        raise SchemaMismatchError(
            f"insertInto matches columns by position, but the data has {len(frame.columns)} columns "
            f"({', '.join(frame.columns)}) and the table {len(names)} ({', '.join(names)}). Select as many columns, in "
            "the order of the table; or write by name with df.write.mode('append').save(path).",
            error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        )
    mode = "overwrite" if overwrite else "append"
    rows = by_position(frame, names, schema)
    return write_table(rows, WriteRequest(location, mode, options, must_exist=True))


def write_table(frame: DataFrame, request: WriteRequest) -> int | None:
    """Write in one commit; return the committed version, None if there was nothing to do. Raises as `save`."""
    return write_frame_rows(FrameRows(frame), request)


def write_frame_rows(rows: FrameRows, request: WriteRequest, opened: Snapshot | None = None) -> int | None:
    """Write the rows of a frame, as `write_table`. `opened` is the newest version if the caller has opened it."""
    frame = rows.frame
    spark, options = frame.sparkSession, request.options
    compaction, resets = auto_compaction(spark), resets_version(spark)
    with active(spark), _transaction(spark, request) as transaction:
        request = replace(request, options=with_session_defaults(spark, replace(options, transaction=transaction)))
        committed = write_rows(request, frame_schema(frame), SparkSessionChoices(spark), rows, opened)
    if committed is not None or request.mode != "ignore":
        after_commit(spark, resets=resets)
    if committed is None:
        return None
    options = request.options

    def latest() -> Snapshot:
        return latest_snapshot(request.location, options.files.storage_options, catalog_table=options.catalog_table)

    compact_commit(spark, compaction, latest, committed.version, committed.configuration)
    return committed.version


def _transaction(spark: SparkSession, request: WriteRequest) -> AbstractContextManager[SetTransaction | None]:
    """Return what yields the transaction of a write: that of its options, or the one that its batch names."""
    if request.options.transaction is not None:
        return nullcontext(request.options.transaction)
    return batch_transaction(spark, request.location, f"{request.statement} {request.mode} {request.options}")


def check_write(frame: DataFrame, request: WriteRequest, snapshot: Snapshot | None) -> None:
    """Raise what a write raises for its options and columns on a version of the table; None if it does not exist."""
    spark = frame.sparkSession
    request = replace(request, options=with_session_defaults(spark, request.options))
    plan_write(request, frame_schema(frame), snapshot, SparkSessionChoices(spark))


def stage_change(
    frame: DataFrame,
    request: WriteRequest,
    snapshot: Snapshot,
    before: TableConfiguration,
) -> tuple[CommitDraft, ReadSet]:
    """Write the files of a write without a commit, as `stage_rows`. `request` includes the session's defaults."""
    session, rows = SparkSessionChoices(frame.sparkSession), FrameRows(frame)
    data = frame_schema(frame)
    return stage_rows(request, data, snapshot, before, session, rows)


def write_feed(spark: SparkSession, snapshot: Snapshot) -> pa.Table:
    """Write change data files with the changes of the last version of a snapshot, which lacks them; return the files.

    A commit that has other changes in change data files needs them (C169).
    """
    configuration = snapshot.configuration
    context = write_context(snapshot.location, configuration, _feed_options(spark, snapshot, configuration))
    return write_feed_rows(read_last_changes(spark, snapshot), configuration.schema, context)


def write_net_feed(
    spark: SparkSession, snapshot: Snapshot, configuration: TableConfiguration, changes: tuple[pa.Table, pa.Table]
) -> pa.Table:
    """Write change data files with what the first and then the second `changes` do, as `write_net_changes`.

    `configuration` is what the table of the snapshot declares after both.
    """
    options = _feed_options(spark, snapshot, configuration)
    return write_net_changes(spark, snapshot.location, configuration, options, changes)


def _feed_options(spark: SparkSession, snapshot: Snapshot, configuration: TableConfiguration) -> FileOptions:
    return replace(file_options(spark, configuration, WriteOptions()), storage_options=snapshot.storage_options)


class SparkSessionChoices(WriteSession):
    """The settings of a Spark session for writes."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(session_time_zone(spark))
        self._spark = spark

    def default_properties(self) -> Mapping[str, str]:
        """Return the session's properties for new tables."""
        return default_properties(self._spark)

    def file_options(self, configuration: TableConfiguration, options: WriteOptions) -> FileOptions:
        """Return how files are written, by the options and by the session's Parquet settings."""
        return file_options(self._spark, configuration, options)

    def replace_where(self) -> ReplaceWhere:
        """Return the session's settings for replaceWhere. Spark evaluates more conditions than this package."""
        return ReplaceWhere(
            data_columns=is_set(self._spark, "replaceWhere.dataColumns.enabled", default=True),
            check=is_set(self._spark, "replaceWhere.constraintCheck.enabled", default=True),
            is_understood=partial(_is_understood, self._spark),
            as_read=partial(as_read_here, self._spark),
        )

    def reexecutions(self) -> int:
        """Return how often the session runs a write again after a conflict. Raises InvalidOptionError."""
        return reexecutions(self._spark)


def _is_understood(spark: SparkSession, text: str, schema: StructType) -> bool:
    try:
        with probing():
            empty_frame(spark, to_spark(schema)).where(text).schema  # noqa: B018 - it is analyzed
    except Exception:
        return False
    return True


class FrameRows:
    """The rows of a frame, which Spark jobs write (`RowWriter`)."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame, self._spark = frame, frame.sparkSession
        self.engine = f"PySpark/{self._spark.version}"

    def source_reads(self, snapshot: Snapshot, isolation: IsolationLevel | None) -> ReadSet:
        """Return what the frame reads from the table itself. Raises as `frame_reads`."""
        return frame_reads(self._spark, self.frame, snapshot, "WRITE", isolation)

    def rows(self) -> DataFrame:
        """Return the frame whose plan the jobs run."""
        return self.frame

    def write_new(self, plan: WritePlan) -> Written:
        """Write the rows of the frame. Raises as `apply_rules` and `write_frame`."""
        ruled = apply_rules(self.rows(), plan.data, plan.context, plan.rules())
        context = ruled.context
        exchange = exchange_of(self._spark, plan.options, plan.configuration, context.schema.names)
        if exchange is None:
            return Written.of(write_frame(ruled.frame, context), context)
        with exchange.sized(self._spark):
            return Written.of(write_frame(exchange.apply(ruled.frame), context, few_partitions=True), context)

    def replaced_rows(self, plan: WritePlan, snapshot: Snapshot, new: Written) -> JoinedRows:
        """Return the rows of the table that the new rows replace."""
        return JoinedRows(self._spark, plan, snapshot, new)

    matched_rows = replaced_rows


@dataclass(frozen=True)
class JoinedRows:
    """The rows of a table that new rows replace; Spark jobs find and write them (`MatchedRows`)."""

    spark: SparkSession
    plan: WritePlan
    snapshot: Snapshot
    new: Written

    def find(self) -> Replaced:
        """Return the files with replaced rows. Runs a Spark job over the files that may have such rows."""
        assert isinstance(self.match, RowMatch)
        return replace_rows(self.spark, self.snapshot, self.match, self.plan.time_zone)

    def write_kept(self, replaced: Replaced) -> Written:
        """Write the rows that stay from partly replaced files."""
        before = self.snapshot.configuration
        rows = read_files(self.spark, self._source, replaced.partly, row_tracking=has_row_ids(before))
        return write_kept(self.match.kept(rows), before, self.plan.context)

    def write_changes(self, replaced: Replaced) -> pa.Table:
        """Write change data files with the replaced rows and the new rows."""
        deleted = self.match.matched(read_files(self.spark, self._source, replaced.removed))
        before, after = self.snapshot.configuration.schema, self.plan.configuration.schema
        return write_changes(deleted, self.inserted, before, after, self.plan.context)

    @cached_property
    def inserted(self) -> DataFrame:
        """The new rows, from their files."""
        return new_rows(self.spark, self.plan, self.new)

    @cached_property
    def match(self) -> RowMatch | ConditionMatch:
        """The condition or join that finds the replaced rows."""
        selection = self.plan.selection
        return ConditionMatch(selection.text) if isinstance(selection, Where) else match_rows(selection, self.inserted)

    @property
    def _source(self) -> FileSource:
        return file_source(self.snapshot)


def new_rows(spark: SparkSession, plan: WritePlan, new: Written) -> DataFrame:
    """Return the new rows, read from the files just written, so that Spark computes the data only once."""
    source = FileSource(plan.target.location, plan.configuration, plan.context.storage_options)
    return read_files(spark, source, new.files)
