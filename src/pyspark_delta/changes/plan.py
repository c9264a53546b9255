"""The plan of a change feed: for a range of versions, the files that hold the changed rows and how to read them.

Planning reads the commits of the range and the configuration before them, nothing else of the log. All files with the
same partitioning form one scan, across versions: the facts of a commit that its rows need are constant in each file,
and are passed as partition values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.changes.commits import parse_files, read_range
from pyspark_delta.changes.configuration_ranges import (
    check_columns,
    check_enabled,
    configuration_ranges,
    partition_names,
)
from pyspark_delta.changes.feed_columns import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    with_change_columns,
)
from pyspark_delta.changes.files import RANGE, changed_files, layouts, with_constants
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.expressions.evaluate import evaluate
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import columns_of, conjuncts, is_opaque
from pyspark_delta.expressions.tree import Expression, all_of
from pyspark_delta.log.arrays import map_value
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.plan import ChangeType, ColumnPlan, PartitionConstant, ReadContext, ScanPlan
from pyspark_delta.scan.planner import read_context, select_columns
from pyspark_delta.schema.partition_values import parse_partition_column
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot


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
    files = changed_files(parse_files(commits, partition_names(ranges), latest.store), ranges, latest)
    check_columns(files[RANGE].unique().to_pylist(), ranges, versions)
    files = with_constants(files.sort_by("version"), ranges, commits.times(ranges))

    everything = with_change_columns(ranges[-1].configuration.schema)
    schema = StructType(select_columns(columns, everything))
    predicate = parse_predicate(where, everything, time_zone=time_zone) if isinstance(where, str) else where
    scans = []
    for configuration, numbers in layouts(ranges):
        own = files.filter(pc.is_in(files[RANGE], value_set=pa.array(numbers, pa.int64())))
        if own.num_rows:
            context = _context(latest, configuration, schema, predicate, time_zone)
            own = _matching(own.drop_columns([RANGE]), context)
            scans.append(ChangeScan(configuration, ScanPlan(versions.last, schema, context, own)))
    return FeedPlan(versions, schema, tuple(scans))


def change_schema(latest: Snapshot, versions: VersionRange) -> StructType:
    """Return the columns of the changes of a range: the table's at its end, and those of the feed."""
    if not versions or versions.last == latest.version:
        return with_change_columns(latest.schema)
    end = latest.at_version(versions.last)
    return with_change_columns(end.schema)


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
