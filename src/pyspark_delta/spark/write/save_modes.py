"""`df.write.format("delta").save(path)`: create, append to, or overwrite a table in one commit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.errors import InvalidOptionError, TableAlreadyExistsError, TableNotFoundError
from pyspark_delta.features.support import check_writable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet, no_files
from pyspark_delta.protocol.identity import move_marks
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.store_assignment import check_storable
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.write.columns import frame_schema
from pyspark_delta.spark.write.job import furthest_marks, write_frame
from pyspark_delta.spark.write.options import WriteOptions, parse_mode, parse_options
from pyspark_delta.spark.write.rules import apply_rules
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.commit_info import engine_info
from pyspark_delta.transaction.new_table import check_distinct, new_table
from pyspark_delta.transaction.numbering import commit_numbered
from pyspark_delta.transaction.row_rules import row_rules
from pyspark_delta.transaction.write_plan import write_context

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REMOVED_COLUMNS = (
    "path",
    "partition_values",
    "size",
    "deletion_vector",
    "tags",
    "base_row_id",
    "default_row_commit_version",
)


def save(
    frame: DataFrame,
    location: str,
    mode: str | None = None,
    partition_by: Sequence[str] | None = None,
    options: Mapping[str, object] | None = None,
) -> int | None:
    """Write a frame to the table at `location`; the version that was committed, None when nothing was to do.

    `mode` is append, overwrite, error (the default; also errorifexists) or ignore, as of DataFrameWriter. A table that
    is not there is created. Nothing is visible before the one commit at the end; when the write fails, the table is as
    it was.

    Raises TableAlreadyExistsError (mode error), SchemaMismatchError, ConstraintViolationError, InvalidOptionError,
    UnsupportedFeatureError naming each feature of the table that is not yet written, CommitConflictError.
    """
    save_mode, parsed = parse_mode(mode), parse_options(options)
    data = frame_schema(frame)
    check_distinct(data)
    snapshot = _open(location, parsed)
    if snapshot is None:
        return _create(frame, data, location, save_mode, tuple(partition_by or ()), parsed)
    if save_mode == "error":
        raise TableAlreadyExistsError(location)
    if save_mode == "ignore" or _is_done(snapshot, parsed.transaction):
        return None
    _check_existing(snapshot, data, partition_by, parsed)
    if save_mode == "append":
        return _append(frame, data, snapshot, parsed)
    return _overwrite(frame, data, snapshot, parsed)


def _create(
    frame: DataFrame,
    data: StructType,
    location: str,
    mode: str,
    partition_by: tuple[str, ...],
    options: WriteOptions,
) -> int:
    configuration = new_table(data, partition_by, options.properties)
    base = TableState(location=location, storage_options=dict(options.files.storage_options))
    written = _write(frame, data, location, configuration, options)
    draft = _draft(frame, _MODE_NAMES[mode], configuration, written, options)
    draft = replace(draft, protocol=configuration.protocol, metadata=draft.metadata or configuration.metadata)
    return commit_draft(draft, base).version


def _append(frame: DataFrame, data: StructType, snapshot: Snapshot, options: WriteOptions) -> int:
    def stage(base: TableState) -> CommitDraft:
        configuration = base.configuration or snapshot.configuration
        written = _write(frame, data, base.location, configuration, options)
        return _draft(frame, "Append", configuration, written, options)

    def current() -> TableState:
        return state_of(Snapshot.load(snapshot.location, storage_options=options.files.storage_options))

    return commit_numbered(state_of(snapshot), stage, current).version


def _overwrite(frame: DataFrame, data: StructType, snapshot: Snapshot, options: WriteOptions) -> int:
    written = _write(frame, data, snapshot.location, snapshot.configuration, options)
    removed = snapshot.files(_REMOVED_COLUMNS)
    draft = _draft(frame, "Overwrite", snapshot.configuration, written, options)
    metrics = {
        **draft.operation.metrics,
        "numRemovedFiles": removed.num_rows,
        "numRemovedBytes": pc.sum(removed.column("size")).as_py() or 0,
    }
    draft = replace(
        draft,
        removes=removed,
        reads=ReadSet(whole_table=True, transactions=draft.reads.transactions),
        operation=replace(draft.operation, metrics=metrics),
    )
    return commit_draft(draft, state_of(snapshot)).version


_MODE_NAMES = {"append": "Append", "overwrite": "Overwrite", "error": "ErrorIfExists", "ignore": "Ignore"}


@dataclass(frozen=True, slots=True)
class _Written:
    """The files of one write, how many rows they hold, and how far identity columns have counted."""

    files: pa.Table
    rows: int
    marks: Mapping[str, int]


def _open(location: str, options: WriteOptions) -> Snapshot | None:
    try:
        return Snapshot.load(location, storage_options=options.files.storage_options)
    except TableNotFoundError:
        return None


def _is_done(snapshot: Snapshot, transaction: SetTransaction | None) -> bool:
    """Whether the table holds this write of the application already (C180)."""
    if transaction is None:
        return False
    known = snapshot.transactions().get(transaction.app_id)
    return known is not None and known.version >= transaction.version


def _check_existing(
    snapshot: Snapshot, data: StructType, partition_by: Sequence[str] | None, options: WriteOptions
) -> None:
    configuration = snapshot.configuration
    check_writable(configuration, snapshot.location)
    check_storable(data, configuration.schema)
    asked = [name.casefold() for name in partition_by or ()]
    if asked and asked != [name.casefold() for name in configuration.partition_columns]:
        raise InvalidOptionError(
            f"The table is partitioned by {_listed(configuration.partition_columns)}, but partitionBy asks for "
            f"{_listed(partition_by or ())}. Leave partitionBy out; to partition the table anew, write a new table.",
            error_class="DELTA_PARTITION_COLUMNS_MISMATCH",
        )
    for name, value in options.properties.items():
        if configuration.properties.get(name) != value:
            raise InvalidOptionError(
                f"The option '{name}' is a table property: it counts when a table is created, and this one exists.",
                option=name,
            )


def _write(
    frame: DataFrame, data: StructType, location: str, configuration: TableConfiguration, options: WriteOptions
) -> _Written:
    context = write_context(location, configuration, _with_session_defaults(frame, configuration, options).files)
    ruled = apply_rules(frame, data, context, row_rules(configuration))
    files = write_frame(ruled.frame, ruled.context)
    rows = pc.sum(files.column("num_records")).as_py() or 0
    marks = furthest_marks(files, ruled.context)
    return _Written(files.drop_columns(["num_records", "marks"]) if files.num_rows else no_files(), rows, marks)


def _with_session_defaults(frame: DataFrame, configuration: TableConfiguration, options: WriteOptions) -> WriteOptions:
    """The session's settings for Parquet files, where neither option nor table says otherwise."""
    conf, files = frame.sparkSession.conf, options.files
    if files.compression is None and "delta.parquet.compression.codec" not in configuration.properties:
        files = replace(files, compression=conf.get("spark.sql.parquet.compression.codec", "snappy"))
    if files.max_records_per_file is None:
        limit = int(conf.get("spark.sql.files.maxRecordsPerFile", "0") or 0)
        files = replace(files, max_records_per_file=limit if limit > 0 else None)
    return replace(options, files=files)


def _draft(
    frame: DataFrame, mode: str, configuration: TableConfiguration, written: _Written, options: WriteOptions
) -> CommitDraft:
    metrics = {
        "numFiles": written.files.num_rows,
        "numOutputRows": written.rows,
        "numOutputBytes": pc.sum(written.files.column("size")).as_py() or 0,
    }
    parameters = {"mode": mode, "partitionBy": orjson.dumps(list(configuration.partition_columns)).decode()}
    transactions: tuple[SetTransaction, ...] = ()
    if options.transaction is not None:
        transactions = (replace(options.transaction, last_updated=int(time.time() * 1000)),)
    return CommitDraft(
        operation=Operation("WRITE", parameters, metrics),
        adds=written.files,
        metadata=move_marks(configuration, written.marks),
        transactions=transactions,
        reads=ReadSet(transactions=frozenset(t.app_id for t in transactions)),
        user_metadata=options.user_metadata
        or frame.sparkSession.conf.get("spark.databricks.delta.commitInfo.userMetadata", None),
        engine_info=engine_info(f"PySpark/{frame.sparkSession.version}"),
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "no column"
