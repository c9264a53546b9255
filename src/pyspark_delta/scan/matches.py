"""The files that a condition on rows concerns: those of which every row meets it, and those of which some rows may."""

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
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.scan.planner import file_request
from pyspark_delta.scan.skipping import Split, plan_skipping
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class MatchedFiles:
    """Files with columns of `actions.columns`. No row of any other file of the snapshot meets the condition."""

    inside: pa.Table  # every row meets it, by partition values and statistics
    partly: pa.Table  # rows have to be looked at


def match_files(
    snapshot: Snapshot, predicate: Expression, columns: tuple[str, ...], *, time_zone: str = "UTC"
) -> MatchedFiles:
    """The files of a snapshot that a condition, bound to its schema, concerns; `columns` has "path" among them."""
    skipping = plan_skipping(predicate, snapshot.configuration)
    candidates = _files(snapshot, skipping.split, columns, time_zone)
    residual = skipping.split.residual
    if residual is None or not candidates.num_rows:
        return MatchedFiles(candidates, candidates.slice(0, 0))
    # Partition values have decided all but the residual, of which statistics may show that no row fails it.
    others = plan_skipping(is_not_true(residual), snapshot.configuration)
    unsure = _files(snapshot, others.split, ("path",), time_zone)
    is_partly = pc.is_in(candidates["path"], value_set=unsure["path"])
    return MatchedFiles(candidates.filter(pc.invert(is_partly)), candidates.filter(is_partly))


def is_not_true(condition: Expression) -> Expression:
    """TRUE for at least the rows for which `condition` is FALSE or unknown; in a form that statistics can use.

    May be true of more rows, where a part could be unknown for a reason other than a null column.
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
    """Whether a condition may be unknown although no column in it is null, as casts are where ANSI mode is off."""
    return is_opaque(part) or any(
        isinstance(inner, Cast | Call)
        or (isinstance(inner, Literal) and inner.value is None)
        or (isinstance(inner, In) and any(value.value is None for value in inner.values))
        for inner in parts_of(part)
    )


def _files(snapshot: Snapshot, split: Split, columns: tuple[str, ...], time_zone: str) -> pa.Table:
    schema = pa.schema([f for f in FILE_FIELDS if f.name in columns])
    if NEVER in (split.partition, split.stats):
        return schema.empty_table()
    request = file_request(snapshot.configuration, tuple(schema.names), split.partition, split.stats, time_zone)
    return pa.Table.from_batches([b.select(schema.names) for b in snapshot.read_files(request)], schema)
