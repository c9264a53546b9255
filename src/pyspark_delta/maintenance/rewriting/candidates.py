"""Which files of a table are rewritten, chosen by columns of the log, without an object for each file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.data.reader import partition_text
from pyspark_delta.data.row_group_rules import LargeRowGroups
from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import columns_of, is_opaque
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.skipping import keep_files
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.scan.planner import file_request
from pyspark_delta.scan.skipping import plan_skipping
from pyspark_delta.schema.partition_values import parse_partition_column
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.record_count import NUM_RECORDS

READ_COLUMNS = (
    "path",
    "partition_values",
    "size",
    "modification_time",
    "deletion_vector",
    "base_row_id",
    "default_row_commit_version",
)
"""The columns of files, by `actions.columns`, that candidates always have."""

RECORDS, LIVE, ALONE, GROUP = "num_records", "live_size", "alone", "group"
"""More columns of candidates: the number of stored rows (null if unknown), the bytes of the rows that are not deleted,
if the file is worth rewriting by itself, and the number of its group: rows of two groups never share a file."""

STATS = "source_stats"
"""One more column, if it was asked for: the statistics of files whose row groups may be copied, null for others."""

_CUBE = "ZCUBE_ID"  # the tag of files that were clustered together


class FileMasks(NamedTuple):
    """For some files, which are chosen, and which of these are worth rewriting even if they are alone."""

    chosen: pa.BooleanArray
    alone: pa.BooleanArray


FileRule: TypeAlias = Callable[[pa.RecordBatch], FileMasks]
"""Chooses among files, in a batch with `READ_COLUMNS` and `RECORDS`, and the tags if they were asked for."""


@dataclass(frozen=True)
class Candidates:
    """Files that a rule chose among the `considered` ones, which have `considered_size` bytes.

    `files` have READ_COLUMNS and RECORDS, LIVE, ALONE and GROUP; those of a group are adjacent, in the order of their
    modification times. All rows of the files in `empty` are deleted.
    """

    files: pa.Table = field(repr=False)
    empty: pa.Table = field(repr=False)
    considered: int
    considered_size: int

    @property
    def groups(self) -> int:
        """The number of partitions with candidates."""
        return int(pc.count_distinct(self.files[GROUP]).as_py())


def compaction_rule(min_size: int, max_deleted_share: float) -> FileRule:
    """Return the rule of a compaction: files below `min_size` bytes, and those with a larger share of deleted rows.

    A file with a deletion vector and an unknown number of rows is chosen too.
    """

    def choose(files: pa.RecordBatch) -> FileMasks:
        deleted = deleted_rows(files)
        most = pc.multiply(pc.cast(files[RECORDS], pa.float64()), max_deleted_share)
        is_worn = pc.fill_null(pc.greater(pc.cast(deleted, pa.float64()), most), True)
        alone = pc.and_(is_worn, pc.is_valid(files["deletion_vector"]))
        return FileMasks(pc.or_(pc.less(files["size"], min_size), alone), alone)

    return choose


def choose_files(
    snapshot: Snapshot,
    rule: FileRule,
    where: str | None = None,
    *,
    time_zone: str = "UTC",
    tags: bool = False,
    large: LargeRowGroups | None = None,
) -> Candidates:
    """Return the files that a rule chooses in the partitions that `where` selects, and the files without rows.

    With `tags`, the files have the column `tags`, and those of different clusterings do not share a group. With
    `large`, files with such row groups have their statistics. Raises as `partition_request`, and CorruptLogError.
    """
    request = partition_request(where, snapshot.configuration, time_zone)
    names = (*READ_COLUMNS, *(("tags", "clustering_provider") if tags else ()), *(("stats",) if large else ()))
    kept = [f for f in FILE_FIELDS if f.name in names and f.name != "stats"]
    schema = pa.schema([*kept, pa.field(RECORDS, pa.int64())])
    extra = [pa.field(STATS, pa.string())] if large is not None else []
    marked = pa.schema([*schema, *extra, pa.field(ALONE, pa.bool_())])
    chosen, empty, count, size = [], [], 0, 0
    for batch in _listed(snapshot, names, request):
        count += batch.num_rows
        size += pc.sum(batch["size"]).as_py() or 0
        is_empty = pc.fill_null(pc.greater_equal(deleted_rows(batch), batch[RECORDS]), False)
        empty.append(batch.filter(is_empty).select(schema.names))
        batch = batch.filter(pc.invert(is_empty))
        masks = rule(batch)
        if large is not None:
            batch = batch.append_column(STATS, _of_large(batch, large))
        chosen.append(batch.append_column(ALONE, masks.alone).filter(masks.chosen).select(marked.names))
    files = pa.Table.from_batches([batch.cast(marked) for batch in chosen], marked).combine_chunks()
    files = files.append_column(LIVE, live_sizes(files)).append_column(GROUP, _groups(files, snapshot, time_zone, tags))
    order = pc.sort_indices(files, [(name, "ascending") for name in (GROUP, "modification_time", "path")])
    nothing_left = pa.Table.from_batches([batch.cast(schema) for batch in empty], schema)
    return Candidates(files.take(order), nothing_left, count, size)


def partition_request(where: str | None, configuration: TableConfiguration, time_zone: str = "UTC") -> FileRequest:
    """Return the request for the files of the partitions that a condition selects; all files without one.

    Raises InvalidPredicateError for a condition that is no SQL, or that names other columns than those of the
    partitioning.
    """
    if where is None:
        return FileRequest(READ_COLUMNS)
    predicate = parse_predicate(where, configuration.schema, on_opaque="keep", time_zone=time_zone)
    _check_partition_columns(predicate, where, configuration)
    split = plan_skipping(predicate, configuration).split
    if split.residual is not None and split.partition is not NEVER:
        raise InvalidPredicateError(
            f"The condition '{where}' cannot be evaluated on partition values alone. Compare partition columns with "
            "constants.",
        )
    return file_request(configuration, READ_COLUMNS, split.partition, None, time_zone)


def deleted_rows(files: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return the number of deleted rows of each file."""
    return pc.fill_null(pc.struct_field(files["deletion_vector"], "cardinality"), 0)


def live_sizes(files: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return the bytes of the rows of each file that are not deleted, if rows have equal sizes."""
    share = pc.divide(pc.cast(deleted_rows(files), pa.float64()), pc.cast(files[RECORDS], pa.float64()))
    lost = pc.multiply(pc.fill_null(pc.min_element_wise(share, 1.0), 0.0), pc.cast(files["size"], pa.float64()))
    return pc.subtract(files["size"], pc.cast(pc.floor(lost), pa.int64()))


def _of_large(files: pa.RecordBatch, large: LargeRowGroups) -> pa.Array:
    """Return the statistics of the files that may have a large row group, null for the others."""
    may_be = pc.or_(pc.greater_equal(files["size"], large.size), pc.greater_equal(files[RECORDS], large.rows))
    return pc.if_else(pc.and_(pc.fill_null(may_be, False), pc.is_valid(files[RECORDS])), files["stats"], None)


def _check_partition_columns(predicate: Expression, where: str, configuration: TableConfiguration) -> None:
    partitioning = {name.casefold() for name in configuration.partition_columns}
    other = next((c.path for c in columns_of(predicate) if c.path[0].casefold() not in partitioning), None)
    if other is not None or is_opaque(predicate):
        names = ", ".join(configuration.partition_columns)
        found = f"names '{'.'.join(other)}'" if other is not None else "has a part that is not supported here"
        advice = f"Use only the partition columns {names}" if names else "The table is not partitioned; omit it"
        raise InvalidPredicateError(
            f"The condition '{where}' {found}, but it must select whole partitions. {advice}.",
            error_class="DELTA_NON_PARTITION_COLUMN_REFERENCE",
            sqlstate="42P10",
            column=None if other is None else ".".join(other),
        )


def _listed(snapshot: Snapshot, names: tuple[str, ...], request: FileRequest) -> Iterator[pa.RecordBatch]:
    """Yield the live files of a request, with the number of rows that each stores."""
    if NEVER is request.partition_predicate:
        return
    for batch in snapshot.statistics((NUM_RECORDS,), names):
        batch = batch.rename_columns([*names, RECORDS])
        if request.partition_predicate is not None:
            batch = keep_files(batch, request)
        yield batch


def _groups(files: pa.Table, snapshot: Snapshot, time_zone: str, tags: bool) -> pa.Array:
    """Return the number of the group of each file: equal for equal partition values, whatever their texts."""
    configuration = snapshot.configuration
    codes = np.zeros(files.num_rows, np.int64)
    keys = []
    for name, physical in zip(configuration.partition_columns, snapshot.partition_names, strict=True):
        column = configuration.schema.find(name)
        if column is not None:
            text = partition_text(files, physical)
            keys.append(parse_partition_column(text, column.type, time_zone, column=name, table=snapshot.location))
    if tags:
        keys.append(pc.map_lookup(files["tags"].combine_chunks(), pa.scalar(_CUBE), "last").cast(pa.string()))
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        codes = codes * max(1, len(encoded.dictionary)) + encoded.indices.to_numpy()
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)  # without gaps, so that no product overflows
    return pa.array(codes)
