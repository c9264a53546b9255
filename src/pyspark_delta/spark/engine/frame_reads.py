"""Finds what a DataFrame reads from the table that it is written to. The commit depends on these reads.

Frames of the latest version of a table are marked (`read_marks`). In a classic session, the plan also has the
conditions by which files are skipped. Frames of a version that the user chose (time travel) are not marked, because
their rows never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark_delta.errors import DeltaError, InvalidPredicateError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.text import columns_of
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.protocol.draft import IsolationLevel, ReadSet
from pyspark_delta.scan.matches import possible_files
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.sessions import session_time_zone
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of
from pyspark_delta.spark.frames.catalyst.predicates import Translator
from pyspark_delta.spark.frames.read_marks import reads_in
from pyspark_delta.spark.frames.relation_columns import table_columns
from pyspark_delta.transaction.stale_reads import check_unchanged, log_is_gone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_reads(
    spark: SparkSession, frame: DataFrame, snapshot: Snapshot, operation: str, isolation: IsolationLevel | None = None
) -> ReadSet:
    """Return what a frame reads from the table of a snapshot, to which its rows are committed.

    `operation` and `isolation` are those of the commit. Raises ConcurrentAppendError and ConcurrentDeleteReadError if
    the frame shows an older version of the table, and a later commit changed what it reads.
    """
    marks = reads_in(frame, snapshot)
    if not marks:
        return ReadSet()
    version = min(mark.version for mark in marks)
    committed = snapshot.as_committed
    read = committed if version >= committed.version else _older(committed, version, operation)
    zone = session_time_zone(spark)
    conditions = [_parsed(mark.where, read, zone) for mark in marks]
    if hasattr(frame, "_jdf") and None in conditions:
        conditions = list(_conditions(frame, read, len(marks)))
    reads = _read_set(read, conditions, zone)
    if read is snapshot:
        return reads
    if read is not committed:
        check_unchanged(reads, read.configuration, version, committed, operation, isolation)
    is_same = read.schema == snapshot.schema
    return reads if is_same else ReadSet(whole_table=True)


def _older(snapshot: Snapshot, version: int, operation: str) -> Snapshot:
    try:
        return snapshot.at_version(version)
    except DeltaError:
        raise log_is_gone(version, snapshot, operation) from None


def _read_set(read: Snapshot, conditions: Sequence[Expression | None], zone: str) -> ReadSet:
    known = list(dict.fromkeys(one for one in conditions if one is not None))
    if not known or len(known) < len(set(conditions)):
        return ReadSet(whole_table=True)
    paths: set[str] = set()
    for condition in known:
        paths.update(possible_files(read, condition, ("path",), time_zone=zone)["path"].to_pylist())
    return ReadSet(predicates=tuple(known), paths=frozenset(paths), time_zone=zone)


def _parsed(where: str | None, read: Snapshot, zone: str) -> Expression | None:
    if where is None:
        return None
    try:
        found = parse_predicate(where, read.schema, on_opaque="keep", time_zone=zone)
    except InvalidPredicateError:
        return None
    return found if any(True for _ in columns_of(found)) else None


# ------------------------------------------------------------------------------------------------- classic sessions
def _conditions(frame: DataFrame, read: Snapshot, marked: int) -> Iterator[Expression | None]:
    """Yield the condition by which each scan of the table skips files; None if it reads all files.

    Spark pushes conditions down to the scans when it optimizes a plan. Scans that are not in the optimized plan, such
    as those of cached frames, count as reading all files.
    """
    java: Any = frame._jdf
    plan = java.queryExecution().optimizedPlan()
    translator = Translator(table_columns(read.configuration).relation_columns)
    found = 0
    for part in (plan, *elements(plan.subqueriesAll())):
        for condition in _scans(part, None, read.location):
            found += 1
            yield None if condition is None else translator.translate(list(_conjuncts(condition)))
    if found < marked:
        yield None


def _scans(node: Any, condition: Any, location: str) -> Iterator[Any]:
    """Yield the condition of the filter directly above each scan of the table; None without a filter."""
    kind = kind_of(node)
    if kind == "LogicalRelation" and _is_of_table(node.relation(), location):
        yield condition
    elif kind == "InMemoryRelation":
        yield None
    else:
        below = node.condition() if kind == "Filter" else None
        for child in elements(node.children()):
            yield from _scans(child, below, location)


def _is_of_table(relation: Any, location: str) -> bool:
    """Return True if a relation reads files of the table through a `DeltaFileIndex`."""
    if kind_of(relation) != "HadoopFsRelation":
        return False
    index = relation.location()
    if "Proxy" not in kind_of(index):
        return False
    text = str(index.toString())
    return text.startswith("Delta[") and f", {location}, " in text


def _conjuncts(condition: Any) -> Iterator[Any]:
    if kind_of(condition) == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition
