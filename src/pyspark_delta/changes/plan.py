"""The plan of a change feed: for a range of versions, the files that hold the changed rows and how to read them.

Planning reads the commits of the range and the configuration before them, nothing else of the log. All files with the
same partitioning form one scan, across versions: the facts of a commit that its rows need are constant in each file,
and are passed as partition values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import DELETION_VECTOR, SELECTS_ROWS
from pyspark_delta.actions.model import Metadata
from pyspark_delta.changes.commits import FileActions, parse_files, read_range
from pyspark_delta.changes.configuration_ranges import (
    ConfigurationRange,
    check_columns,
    check_enabled,
    configuration_ranges,
)
from pyspark_delta.changes.feed_columns import (
    CHANGE_COLUMNS,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    DELETE,
    INSERT,
    with_change_columns,
)
from pyspark_delta.changes.removed_files import with_partition_values
from pyspark_delta.changes.vectors import paired, vector_changes
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.errors import UnsupportedTableError
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import columns_of, conjuncts, is_opaque
from pyspark_delta.expressions.tree import Expression, all_of
from pyspark_delta.log.arrays import map_array, map_value
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.plan import ChangeType, ColumnPlan, PartitionConstant, ReadContext, ScanPlan
from pyspark_delta.scan.planner import read_context, select_columns
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.partition_values import parse_partition_column, serialize_partition_column
from pyspark_delta.schema.types import TIMESTAMP, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.percent import resolve_column

_CONSTANTS = tuple(field.name for field in CHANGE_COLUMNS)
_RANGE, _KEY = "range", "key"


@dataclass(frozen=True, slots=True)
class ChangeScan:
    """Files of one scan: `configuration` has the columns at the end of the range, with the partitioning of the files.

    In addition to the columns of its tasks, the files of `plan` have "version" and "_change_type", null for change data
    files.
    """

    configuration: TableConfiguration
    plan: ScanPlan


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """The changes of a range of versions; at most one scan for each partitioning of the table."""

    versions: VersionRange
    schema: StructType  # the logical output schema
    scans: tuple[ChangeScan, ...]


def plan_changes(
    latest: Snapshot,
    versions: VersionRange,
    columns: Sequence[str] | None = None,
    where: str | Expression | None = None,
    *,
    time_zone: str = "UTC",
) -> FeedPlan:
    """Plan to read the changes of a range of versions, with the columns that the table has at its end.

    `columns` and `where` may also name columns of the feed; both as in `plan_scan`.

    Raises InvalidOperationError if the feed was off, VersionNotFoundError if commits are missing, UnsupportedTableError
    if the columns changed in a way that no single schema can represent, and CorruptLogError.
    """
    if not versions:
        schema = StructType(select_columns(columns, with_change_columns(latest.schema)))
        return FeedPlan(versions, schema, ())
    commits = read_range(latest, versions)
    ranges = configuration_ranges(latest, versions, commits.declared)
    check_enabled(ranges, versions, latest.location)
    files = _changed_files(parse_files(commits, ranges, latest), ranges, latest)
    check_columns(files[_RANGE].unique().to_pylist(), ranges, versions)
    files = _with_constants(files.sort_by("version"), ranges, commits.times(ranges), versions)

    everything = with_change_columns(ranges[-1].configuration.schema)
    schema = StructType(select_columns(columns, everything))
    predicate = parse_predicate(where, everything, time_zone=time_zone) if isinstance(where, str) else where
    scans = []
    for configuration, numbers in _layouts(ranges):
        own = files.filter(pc.is_in(files[_RANGE], value_set=pa.array(numbers, pa.int64())))
        if own.num_rows:
            context = _context(latest, configuration, schema, predicate, time_zone)
            own = _matching(own.drop_columns([_RANGE]), context)
            scans.append(ChangeScan(configuration, ScanPlan(versions.last, schema, context, own)))
    return FeedPlan(versions, schema, tuple(scans))


def change_schema(latest: Snapshot, versions: VersionRange) -> StructType:
    """Return the columns of the changes of a range: the table's at its end, and those of the feed."""
    if not versions or versions.last == latest.version:
        return with_change_columns(latest.schema)
    end = latest.at_version(versions.last)
    return with_change_columns(end.schema)


# -------------------------------------------------------------------------------------------------------- files
def _changed_files(actions: FileActions, ranges: Sequence[ConfigurationRange], latest: Snapshot) -> pa.Table:
    """Return all files with changed rows: "_change_type" is null for change data files, which store it in each row."""
    adds = _keyed(_with_range_number(actions.adds, ranges), latest)
    removes = with_partition_values(actions.removes, actions.adds, latest)
    removes = _keyed(_with_range_number(removes, ranges, before=True), latest)
    added, removed = paired(adds, removes, _KEY)
    changed = vector_changes(removes.take(removed), adds.take(added), latest)
    whole = [
        _whole(_without(adds, added), INSERT),
        _whole(_without(removes, removed), DELETE),
        _whole(
            _with_range_number(actions.cdc, ranges).append_column(
                DELETION_VECTOR, _nulls(actions.cdc, DELETION_VECTOR)
            ),
            None,
        ),
    ]
    names = [name for name in changed.column_names if name != _KEY]
    return pa.concat_tables([table.select(names) for table in (changed, *whole)])


def _whole(files: pa.Table, kind: str | None) -> pa.Table:
    """Return files all of whose live rows were changed, with one kind of change."""
    files = files.append_column(SELECTS_ROWS, _nulls(files, SELECTS_ROWS))
    return files.append_column(CHANGE_TYPE.name, pa.repeat(pa.scalar(kind, pa.string()), files.num_rows))


def _nulls(files: pa.Table, field: pa.Field) -> pa.Array:
    return pa.nulls(files.num_rows, field.type)


def _without(files: pa.Table, rows: pa.Array) -> pa.Table:
    rest = np.ones(files.num_rows, np.bool_)
    rest[np.asarray(rows)] = False
    return files.filter(pa.array(rest))


def _keyed(files: pa.Table, latest: Snapshot) -> pa.Table:
    """Add the version and location of each file as one string: a file may be changed by many commits."""
    locations = resolve_column(latest.location, files["path"])
    return files.append_column(_KEY, pc.binary_join_element_wise(files["version"].cast(pa.string()), locations, "\0"))


def _with_range_number(files: pa.Table, ranges: Sequence[ConfigurationRange], *, before: bool = False) -> pa.Table:
    """Add the number of the configuration range of each file: that of its commit, or of the version `before` it."""
    starts = np.array([current.first for current in ranges[1:]], np.int64)
    versions = files["version"].to_numpy()
    return files.append_column(_RANGE, pa.array(np.searchsorted(starts, versions, side="left" if before else "right")))


def _with_constants(
    files: pa.Table, ranges: Sequence[ConfigurationRange], times: dict[int, int], versions: VersionRange
) -> pa.Table:
    """Add the constants of the feed to the partition values of each file."""
    files = files.combine_chunks()
    maps = files["partition_values"].combine_chunks()
    own = {name: pc.coalesce(*(map_value(maps, key) for key in keys)) for name, keys in _partition_keys(ranges).items()}
    in_order = pa.array([times[v] * 1000 for v in range(versions.first, versions.last + 1)], pa.timestamp("us", "UTC"))
    texts = serialize_partition_column(in_order, TIMESTAMP)
    constants = [
        files[CHANGE_TYPE.name].combine_chunks(),
        files["version"].combine_chunks().cast(pa.string()),
        texts.take(pc.subtract(files["version"].combine_chunks(), versions.first)),
    ]
    merged = map_array([*own, *_CONSTANTS], [*own.values(), *constants], files.num_rows)
    files = files.set_column(files.column_names.index("partition_values"), "partition_values", merged)
    size = pc.fill_null(files["size"], 0)  # a remove may lack it
    return files.set_column(files.column_names.index("size"), "size", size)


def _partition_keys(ranges: Sequence[ConfigurationRange]) -> dict[str, list[str]]:
    """Return the physical names of the last partition columns, each with its keys in partition values.

    An overwritten schema may spell a column in another case. Raises UnsupportedTableError for a name of the feed, which
    a column may have had before it was renamed.
    """
    last = ranges[-1].configuration
    at_end = (physical_field(field, mapping_mode(last)).name for field in last.schema)
    spelled = {name.casefold(): name for name in at_end}
    found: dict[str, list[str]] = {}
    for key in dict.fromkeys(name for current in ranges for name in current.partition_names):
        if key.casefold() in _CONSTANTS:
            raise UnsupportedTableError(
                f"The changes of '{last.location}' cannot be read: a partition column has the name '{key}', which is "
                "reserved for the change data feed. Copy the table to one that never had a column of that name.",
                error_class="DELTA_RESERVED_COLUMN_NAMES",
                column=key,
            )
        found.setdefault(spelled.get(key.casefold(), key), []).append(key)
    return found


def _matching(files: pa.Table, context: ReadContext) -> pa.Table:
    """Return the files that may have a row for which the predicate is true, decided from constants of the files."""
    constants = {plan.field.name: plan for plan in context.columns if isinstance(plan, PartitionConstant)}
    decidable = all_of(
        *(
            part
            for part in (() if context.residual is None else conjuncts(context.residual))
            if not is_opaque(part) and all(column.path[0] in constants for column in columns_of(part))
        )
    )
    if decidable is None:
        return files
    maps = files["partition_values"].combine_chunks()
    typed = [
        parse_partition_column(
            map_value(maps, plan.physical_name),
            plan.field.type,
            context.time_zone,
            column=name,
            table=context.table_location,
        )
        for name, plan in constants.items()
    ]
    values = pa.RecordBatch.from_arrays(typed, names=list(constants))
    return files.filter(pc.fill_null(evaluate(decidable, values), False))


# ------------------------------------------------------------------------------------------------------ columns
def _layouts(ranges: Sequence[ConfigurationRange]) -> list[tuple[TableConfiguration, list[int]]]:
    """Return each partitioning of the table and the numbers of its ranges; all have the last columns."""
    last = ranges[-1].configuration
    mode = mapping_mode(last)
    logical = {physical_field(f, mode).name.casefold(): f.name for f in last.schema}
    found: dict[tuple[str, ...], list[int]] = {}
    for number, current in enumerate(ranges):
        names = tuple(logical[n.casefold()] for n in current.partition_names if n.casefold() in logical)
        found.setdefault(names, []).append(number)
    return [(_partitioned_by(last, names), numbers) for names, numbers in found.items()]


def _partitioned_by(configuration: TableConfiguration, names: tuple[str, ...]) -> TableConfiguration:
    if names == configuration.partition_columns:
        return configuration
    metadata: Metadata = replace(configuration.metadata, partition_columns=names)
    return TableConfiguration(configuration.protocol, metadata, configuration.location)


def _context(
    latest: Snapshot,
    configuration: TableConfiguration,
    schema: StructType,
    predicate: Expression | None,
    time_zone: str,
) -> ReadContext:
    needed = dict.fromkeys(schema.names)
    if predicate is not None:
        needed |= dict.fromkeys(column.path[0] for column in columns_of(predicate))
    stored = [f for f in configuration.schema if f.name in needed]
    context = read_context(
        latest.location, configuration, stored, storage_options=latest.storage_options, time_zone=time_zone
    )
    constants: list[ColumnPlan] = [
        ChangeType(CHANGE_TYPE),
        *(PartitionConstant(field, field.name) for field in (COMMIT_VERSION, COMMIT_TIMESTAMP)),
    ]
    return replace(
        context,
        columns=(*context.columns, *(plan for plan in constants if plan.field.name in needed)),
        output=schema.names,
        residual=predicate,
    )
