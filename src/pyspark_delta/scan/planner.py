"""The scan planner: from a snapshot, columns and a predicate to the files to read and how to read them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.expressions.name_resolution import suggestion
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import columns_of, conjuncts, is_opaque, to_sql
from pyspark_delta.expressions.tree import And, Expression, all_of
from pyspark_delta.features import Feature, is_active, is_supported
from pyspark_delta.log.request import FileRequest
from pyspark_delta.logs import logger, timed
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import (
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
)
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.scan.plan import (
    ColumnPlan,
    FromFile,
    Missing,
    PartitionConstant,
    PruningStage,
    ReadContext,
    RowCommitVersion,
    RowId,
    RowIndex,
    ScanPlan,
)
from pyspark_delta.scan.skipping import Skipping, plan_skipping
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.types import LONG, VOID, StructField, StructType
from pyspark_delta.schema.widening import check_type_changes
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.credentials import CarriedOptions

_log = logger(__name__)

PARTITION_PRUNING, DATA_SKIPPING = "partition pruning", "data skipping"
ROW_TRACKING_FIELDS = (StructField("_row_id", LONG), StructField("_row_commit_version", LONG))
"""The columns of row ids and row commit versions that users ask for."""

# Statements keep ids under names that no table has: users may have columns of the names above.
ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN = "__pyspark_delta_row_id", "__pyspark_delta_row_commit_version"
KEPT_ROW_TRACKING_FIELDS = (StructField(ROW_ID_COLUMN, LONG), StructField(ROW_COMMIT_VERSION_COLUMN, LONG))

_FILE_COLUMNS = ("path", "size", "modification_time", "partition_values", "deletion_vector")
_ROW_TRACKING_COLUMNS = ("base_row_id", "default_row_commit_version")


def plan_scan(
    snapshot: Snapshot,
    columns: Sequence[str] | None = None,
    where: str | Expression | None = None,
    *,
    row_ids: bool = False,
    statistics: bool = False,
    time_zone: str = "UTC",
) -> ScanPlan:
    """Plan a read of some columns (all by default, in the order given) of the rows for which `where` is true.

    `where` is SQL text or an expression bound to the table's schema. All parts of a text must be supported here. In an
    expression, conjuncts with Opaque parts only skip files, and the caller checks them on the rows. `row_ids` adds the
    columns `_row_id` and `_row_commit_version`, `statistics` the column `stats` of the files. `time_zone` is the
    session time zone: for timestamps in `where` and for partition values without a zone (C421).

    Raises InvalidPredicateError, UnsupportedTableError for a recorded change of type that cannot be read, and
    InvalidOperationError for unknown columns or a table without row tracking.
    """
    configuration = snapshot.configuration
    if row_ids:
        require_row_tracking(configuration)
    output = select_columns(columns, configuration.schema)
    predicate = parse_predicate(where, configuration.schema, time_zone=time_zone) if isinstance(where, str) else where
    skipping = plan_skipping(predicate, configuration)
    context = read_context(
        snapshot.location,
        configuration,
        output,
        residual=_computable(skipping.split.residual),
        row_ids=row_ids,
        row_id_fields=ROW_TRACKING_FIELDS,
        storage_options=snapshot.storage_options,
        time_zone=time_zone,
    )
    fields = {plan.field.name: plan.field for plan in context.columns}
    files = _selected(snapshot, skipping, time_zone, row_ids=row_ids, statistics=statistics)
    return ScanPlan(
        version=snapshot.version,
        schema=StructType(tuple(fields[name] for name in context.output)),
        context=context,
        files=files,
        stages=_stages(skipping),
    )


def select_files(
    snapshot: Snapshot, where: Expression | None, *, row_ids: bool, statistics: bool, time_zone: str
) -> pa.Table:
    """Return the files that `plan_scan` selects for a predicate, with the column `stats` if `statistics`.

    `row_ids` adds what row ids are computed from.
    """
    skipping = plan_skipping(where, snapshot.configuration)
    return _selected(snapshot, skipping, time_zone, row_ids=row_ids, statistics=statistics)


def _selected(snapshot: Snapshot, skipping: Skipping, time_zone: str, *, row_ids: bool, statistics: bool) -> pa.Table:
    names = (*_FILE_COLUMNS, *(_ROW_TRACKING_COLUMNS if row_ids else ()), *(("stats",) if statistics else ()))
    with timed(_log, "Selecting the files of %s", snapshot.location):
        files = _read_files(snapshot, skipping, names, time_zone)
    if _log.isEnabledFor(logging.INFO):
        _log_files(snapshot, files)
    return files


def _log_files(snapshot: Snapshot, files: pa.Table) -> None:
    text = "Planned a scan of version %d of %s: %d files of %d bytes, %d files skipped"
    kept, size = files.num_rows, pc.sum(files["size"]).as_py() or 0
    _log.info(text, snapshot.version, snapshot.location, kept, size, snapshot.num_files() - kept)


def read_context(
    location: str,
    configuration: TableConfiguration,
    output: Sequence[StructField] | None = None,
    *,
    residual: Expression | None = None,
    row_ids: bool = False,
    row_id_fields: tuple[StructField, StructField] = KEPT_ROW_TRACKING_FIELDS,
    row_index: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    time_zone: str = "UTC",
) -> ReadContext:
    """Return how tasks read files of a table: the columns `output` (all by default) of rows for which `residual` is
    true.

    `row_ids` adds the columns `row_id_fields`; `row_index` names one for the position of each row in its file. Raises
    UnsupportedTableError for a recorded change of type that cannot be read, and InvalidOperationError for a table
    without row tracking.
    """
    if is_supported(configuration, Feature.TYPE_WIDENING):
        check_type_changes(configuration.schema)
    shown = configuration.schema.fields if output is None else tuple(output)
    plans = [_plan_column(f, configuration) for f in shown]
    hidden = [_plan_column(f, configuration) for f in _only_in(residual, shown, configuration.schema)]
    added = _row_tracking_columns(configuration, row_id_fields) if row_ids else []
    if row_index is not None:
        added.append(RowIndex(StructField(row_index, LONG)))
    return ReadContext(
        table_location=location,
        columns=(*plans, *added, *hidden),
        output=tuple(plan.field.name for plan in (*plans, *added)),
        column_mapping_mode=mapping_mode(configuration),
        residual=residual,
        storage_options=CarriedOptions(storage_options or {}),
        time_zone=time_zone,
    )


# ------------------------------------------------------------------------------------------------------ columns
def select_columns(columns: Sequence[str] | None, schema: StructType) -> tuple[StructField, ...]:
    """Return the columns of these names in the given order, all if None.

    Raises InvalidOperationError for an unknown name, InvalidOptionError for one that is given twice.
    """
    if columns is None:
        return schema.fields
    if isinstance(columns, str):
        raise InvalidOptionError(f"Give the columns as a list of names, such as ['{columns}'], not as one string.")
    selected: dict[str, StructField] = {}
    for name in columns:
        f = schema.find(name)
        if f is None:
            raise InvalidOperationError(
                f"There is no column '{name}' in the table. {suggestion([name], schema)}",
                error_class="DELTA_COLUMN_NOT_FOUND",
                column=name,
            )
        if f.name in selected:
            raise InvalidOptionError(f"The column '{f.name}' is selected twice.")
        selected[f.name] = f
    return tuple(selected.values())


def _only_in(residual: Expression | None, output: Sequence[StructField], schema: StructType) -> list[StructField]:
    """Return the columns that are read only to check the rows."""
    shown = {f.name for f in output}
    names = {} if residual is None else dict.fromkeys(column.path[0] for column in columns_of(residual))
    return [f for name in names if name not in shown and (f := schema.find(name)) is not None]


def _plan_column(f: StructField, configuration: TableConfiguration) -> ColumnPlan:
    physical = physical_field(f, mapping_mode(configuration))
    if f.name.casefold() in {name.casefold() for name in configuration.partition_columns}:
        return PartitionConstant(f, physical.name)
    if f.type == VOID:
        return Missing(f)
    return FromFile(f, physical)


def require_row_tracking(configuration: TableConfiguration) -> None:
    """Raise InvalidOperationError if rows have no reliable ids, or a column of the table has a name that they need."""
    for shown in ROW_TRACKING_FIELDS:
        taken = configuration.schema.find(shown.name)
        if taken is not None:
            raise InvalidOperationError(
                f"The table has a column '{taken.name}', which conflicts with the column of row ids. Rename the "
                "column, or read without row ids.",
                error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
                column=taken.name,
            )
    _require_row_ids(configuration)


def _require_row_ids(configuration: TableConfiguration) -> None:
    """Raise InvalidOperationError if rows have no reliable ids.

    Ids are reliable if row tracking is enabled (C327, C328); if it is only supported, rewriting a row may change its id
    (C321).
    """
    if not is_active(configuration, Feature.ROW_TRACKING):
        raise InvalidOperationError(
            "The table has no stable row ids: row tracking is not enabled. Enable it with the table property "
            "delta.enableRowTracking.",
            error_class="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
        )


def _row_tracking_columns(
    configuration: TableConfiguration, fields: tuple[StructField, StructField]
) -> list[ColumnPlan]:
    _require_row_ids(configuration)
    properties = configuration.properties
    row_id, row_commit_version = fields
    return [
        RowId(row_id, properties.get(MATERIALIZED_ROW_ID.name)),
        RowCommitVersion(row_commit_version, properties.get(MATERIALIZED_ROW_COMMIT_VERSION.name)),
    ]


def _computable(residual: Expression | None) -> Expression | None:
    """Return the condition without the conjuncts that only Spark evaluates."""
    if residual is None or not is_opaque(residual):
        return residual
    return all_of(*(condition for condition in conjuncts(residual) if not is_opaque(condition)))


# -------------------------------------------------------------------------------------------------------- files
def _read_files(snapshot: Snapshot, skipping: Skipping, names: Sequence[str], time_zone: str) -> pa.Table:
    """Return the files that no predicate drops, as one table of only the columns that reading needs."""
    schema = pa.schema([f for f in FILE_FIELDS if f.name in names])
    split = skipping.split
    if NEVER in (split.partition, split.stats):
        return schema.empty_table()
    request = file_request(snapshot.configuration, tuple(schema.names), split.partition, split.stats, time_zone)
    request = replace(request, makes_texts=False)  # statistics are used only for a few checks
    batches = [batch.select(schema.names) for batch in snapshot.read_files(request)]
    return pa.Table.from_batches(batches, schema) if batches else schema.empty_table()


def file_request(
    configuration: TableConfiguration,
    columns: tuple[str, ...],
    partition: Expression | None = None,
    stats: Expression | None = None,
    time_zone: str = "UTC",
) -> FileRequest:
    """Return the request for the files of a table that two split predicates do not drop."""
    mode = mapping_mode(configuration)
    fields = (configuration.schema.find(name) for name in configuration.partition_columns)
    partition_schema = StructType(tuple(physical_field(f, mode) for f in fields if f is not None))
    return FileRequest(columns, partition, stats, partition_schema, time_zone)


def _stages(skipping: Skipping) -> tuple[PruningStage, ...]:
    partition, stats, _ = skipping.split
    stages: list[PruningStage] = []
    if partition is not None:
        stages.append(PruningStage(PARTITION_PRUNING, None, None, _text(skipping.partition_conditions), "", partition))
    note = "; ".join(skipping.reasons)
    if stats is not None or note:
        stages.append(PruningStage(DATA_SKIPPING, None, None, _text(skipping.stats_conditions), note, stats))
    return tuple(stages)


def _text(conditions: Sequence[Expression]) -> str:
    return to_sql(And(tuple(conditions))) if conditions else ""
