"""The files that a condition on rows may match: fully matched files and partially matched ones."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.expressions.normal import negation_normal
from pyspark_delta.expressions.text import columns_of, is_opaque, parts_of
from pyspark_delta.expressions.tree import (
    And,
    Call,
    Cast,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    all_of,
)
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.skipping import keep_listed
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.scan.planner import file_request
from pyspark_delta.scan.skipping import Split, plan_skipping
from pyspark_delta.snapshot import Snapshot

_MANY_TEXTS = 50_000  # parsing more takes longer than reading the statistics of a large log as columns


@dataclass(frozen=True, slots=True)
class MatchedFiles:
    """Files with columns of `actions.columns`. No row of any other file of the snapshot meets the condition."""

    fully_matched: pa.Table  # every row meets it, by partition values and statistics
    partially_matched: pa.Table  # rows have to be checked


def match_files(
    snapshot: Snapshot, predicate: Expression, columns: tuple[str, ...], *, time_zone: str = "UTC"
) -> MatchedFiles:
    """Return the files of a snapshot that a condition, bound to its schema, may match; `columns` includes "path"."""
    first = plan_skipping(predicate, snapshot.configuration).split
    if first.residual is None:
        candidates = _files(snapshot, first, columns, time_zone)
        return MatchedFiles(candidates, candidates.slice(0, 0))
    # Partition values have decided all but the residual; statistics may show that no row fails it.
    second = plan_skipping(is_not_true(first.residual), snapshot.configuration).split
    request = _request(snapshot, second, columns, time_zone)
    candidates = _files(snapshot, first, (*columns, *_decided_by(request)), time_zone)
    if NEVER in (second.partition, second.stats):
        unsure = candidates.slice(0, 0)
    elif _is_better_typed(candidates, request) and snapshot.has_typed_statistics:
        unsure = _files(snapshot, _both(first, second), ("path",), time_zone)
    else:
        unsure = keep_listed(candidates, request)
    candidates = candidates.select([f.name for f in FILE_FIELDS if f.name in columns])
    is_partial = pc.is_in(candidates["path"], value_set=unsure["path"])
    return MatchedFiles(candidates.filter(pc.invert(is_partial)), candidates.filter(is_partial))


def possible_files(
    snapshot: Snapshot, predicate: Expression, columns: tuple[str, ...], *, time_zone: str = "UTC"
) -> pa.Table:
    """Return fully and partially matched files of `match_files` together."""
    return _files(snapshot, plan_skipping(predicate, snapshot.configuration).split, columns, time_zone)


def keep_possible(
    files: pa.Table, configuration: TableConfiguration, predicate: Expression, *, time_zone: str = "UTC"
) -> pa.Table:
    """Return those of some files of a table that a condition, bound to its schema, may match.

    `files` has the columns `partition_values` and `stats`; null for a file without statistics.
    """
    split = plan_skipping(predicate, configuration).split
    if NEVER in (split.partition, split.stats):
        return files.slice(0, 0)
    names = tuple(files.column_names)
    return keep_listed(files, file_request(configuration, names, split.partition, split.stats, time_zone))


def _decided_by(request: FileRequest) -> tuple[str, ...]:
    """Return the columns of files that the predicates of a request need."""
    by_partition = request.partition_predicate is not None or bool(request.mixed_columns())
    by_stats = request.stats_predicate is not None
    return (*(("partition_values",) if by_partition else ()), *(("stats",) if by_stats else ()))


def _is_better_typed(files: pa.Table, request: FileRequest) -> bool:
    """True if a request needs statistics that not all files have as text, or that are too many to parse."""
    if request.stats_predicate is None:
        return False
    return bool(files.num_rows > _MANY_TEXTS or files["stats"].null_count > 0)


def _both(first: Split, second: Split) -> Split:
    """Return the combined decision of two predicates on a file, by partition values and statistics."""
    partition = all_of(first.partition, second.partition)
    return Split(partition, all_of(first.stats, second.stats), second.residual)


def is_not_true(condition: Expression) -> Expression:
    """Return a condition that is TRUE at least for all rows for which `condition` is FALSE or unknown.

    It may be true for more rows, if a part could be unknown for a reason other than a null column.
    """
    match negation_normal(condition):
        case And(operands):
            return Or(tuple(is_not_true(o) for o in operands))
        case Or(operands):
            return all_of(*(is_not_true(o) for o in operands)) or NEVER
        case IsNull() | Not(IsNull()) | Comparison("<=>", _, _) as part:
            return negation_normal(Not(part))
        case Literal(value, _) as part:
            return NEVER if value is True else Not(NEVER)
        case part if _may_be_unknown(part):
            return Opaque("a condition that may be unknown")
        case part:
            return Or((negation_normal(Not(part)), *(IsNull(column) for column in columns_of(part))))


def _may_be_unknown(part: Expression) -> bool:
    """True if a condition may be unknown although no column in it is null, as with casts if ANSI mode is off."""
    return is_opaque(part) or any(
        isinstance(inner, Cast | Call)
        or (isinstance(inner, Literal) and inner.value is None)
        or (isinstance(inner, In) and any(value.value is None for value in inner.values))
        for inner in parts_of(part)
    )


def _files(snapshot: Snapshot, split: Split, columns: tuple[str, ...], time_zone: str) -> pa.Table:
    request = _request(snapshot, split, columns, time_zone)
    schema = pa.schema([f for f in FILE_FIELDS if f.name in request.columns])
    if NEVER in (split.partition, split.stats):
        return schema.empty_table()
    return pa.Table.from_batches([b.select(schema.names) for b in snapshot.read_files(request)], schema)


def _request(snapshot: Snapshot, split: Split, columns: tuple[str, ...], time_zone: str) -> FileRequest:
    names = tuple(f.name for f in FILE_FIELDS if f.name in columns)
    return file_request(snapshot.configuration, names, split.partition, split.stats, time_zone)
