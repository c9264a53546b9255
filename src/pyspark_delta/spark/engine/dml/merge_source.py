"""The source of a MERGE and its keys. The source is evaluated once, or materialized if it is read before the job."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark.sql.functions as sf
from pyspark.sql import Observation
from pyspark.storagelevel import StorageLevel

from pyspark_delta.engines.cost import CostModel
from pyspark_delta.errors import DataFileError
from pyspark_delta.expressions.coercion import compare
from pyspark_delta.expressions.literals import NotExactError, zone_of
from pyspark_delta.expressions.tree import And, Expression, In, Literal, Or, all_of
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.schema.types import BYTE, INTEGER, SHORT, ArrayType, DataType, MapType, StructType
from pyspark_delta.spark.conf.worker_python import prepare_workers
from pyspark_delta.spark.engine.dml.source_files import source_files
from pyspark_delta.spark.engine.write.alignment import spark_type
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of
from pyspark_delta.spark.frames.quoting import quoted
from pyspark_delta.statements.merge.condition import Key
from pyspark_delta.statements.merge.keys import MOST_RANGES, REPORT, KeyRanges, KeyReport, report_keys
from pyspark_delta.transaction.new_table import nullable_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Nodes of a plan that are as cheap to evaluate again as reading, and give the same rows.
_CHEAP = {"Project", "Filter", "SubqueryAlias", "View", "LocalRelation", "OneRowRelation", "Range", "LogicalRelation"}
_BITS: dict[DataType, int] = {BYTE: 8, SHORT: 16, INTEGER: 32}


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """The number of rows of a source, and the predicate that matching rows of the table meet."""

    rows: int
    predicate: Expression | None


@contextmanager
def materialized(source: DataFrame) -> Iterator[tuple[DataFrame, int]]:
    """Yield a source that may be evaluated several times with the same rows, and the milliseconds this took."""
    start = time.monotonic()
    if _is_repeatable(source):
        yield source, 0
    elif hasattr(source, "_jdf"):
        kept = source.localCheckpoint()
        yield kept, int((time.monotonic() - start) * 1000)
    else:
        # To the server a checkpoint is another frame, to which columns of the source do not belong.
        was_kept = source.storageLevel != StorageLevel.NONE
        source.persist()
        try:
            yield source, 0
        finally:
            if not was_kept:
                source.unpersist()


def find_keys(source: DataFrame, keys: Sequence[Key], time_zone: str) -> SourceKeys:
    """Run a job that collects the keys of a source: all values if there are few, else ranges."""
    prepare_workers(source.sparkSession)
    selected = source.select(
        *(sf.col(".".join(map(quoted, key.source))).alias(f"k{number}") for number, key in enumerate(keys))
    )
    reports = [
        pickle.loads(report) for report in selected.mapInArrow(report_keys, REPORT).toArrow()["report"].to_pylist()
    ]
    if not reports:
        return SourceKeys(0, NEVER)
    return _source_keys(KeyReport.joined(reports), keys, time_zone)


def keys_among(rows: pa.Table, keys: Sequence[Key], names: Sequence[str], time_zone: str) -> SourceKeys:
    """Return the keys of collected rows of a source; `names` are the columns of the keys."""
    if not rows.num_rows:
        return SourceKeys(0, NEVER)
    ranges = tuple(KeyRanges.of(rows[name].combine_chunks()) for name in names)
    return _source_keys(KeyReport(rows.num_rows, ranges), keys, time_zone)


def collected(source: DataFrame, columns: StructType, cost: CostModel) -> pa.Table | None:
    """Collect these columns of the source.

    Return None if Spark's size estimate exceeds the limit or proves too low.
    """
    frame: Any = source
    if not hasattr(frame, "_jdf"):
        return None
    plan = frame._jdf.queryExecution().optimizedPlan()
    if int(str(plan.stats().sizeInBytes())) > cost.source_bytes:
        return None
    most_rows = cost.collected_rows(len(columns))
    files = source_files(source.sparkSession, plan, columns, cost.source_files)
    if files is not None:
        if files.rows > most_rows:
            return None
        with suppress(DataFileError):  # Spark reports what is wrong with a file
            return files.read()
    rows = collect(source.limit(most_rows + 1), columns)
    return rows if rows.num_rows <= most_rows else None


def collect(source: DataFrame, columns: StructType) -> pa.Table:
    """Return these columns of a source under their names."""
    # PySpark fails on non-nullable members of null structs.
    values = [
        sf.col(quoted(field.name)).cast(spark_type(nullable_type(field.type)))
        if isinstance(field.type, StructType | ArrayType | MapType)
        else sf.col(quoted(field.name))
        for field in columns
    ]
    rows = source.select(*(value.alias(f"c{number}") for number, value in enumerate(values))).toArrow()
    return rows.rename_columns(list(columns.names))


def _source_keys(found: KeyReport, keys: Sequence[Key], time_zone: str) -> SourceKeys:
    zone = zone_of(time_zone)
    parts = [_predicate(key, ranges, zone) for key, ranges in zip(keys, found.ranges, strict=True)]
    return SourceKeys(found.rows, all_of(*(part for part in parts if part is not None)))


def _predicate(key: Key, found: KeyRanges, zone: tzinfo) -> Expression | None:
    """Return what a key of the table meets if it equals a key of the source; None if this cannot be expressed."""
    if not len(found.least):
        return NEVER  # all keys are null, which equals nothing
    try:
        if found.are_values:
            values = found.least.to_pylist()
            return all_of(_range(key, values[0], values[-1], zone), _one_of(key, values))
        found = found.at_most(MOST_RANGES)
        ends = zip(found.least.to_pylist(), found.greatest.to_pylist(), strict=True)
        ranges = [_range(key, least, greatest, zone) for least, greatest in ends]
    except (NotExactError, OverflowError, ValueError):  # dates that Python does not have, texts that are not UTF-8
        return None
    return Or(tuple(ranges)) if len(ranges) > 1 else ranges[0]


def _range(key: Key, least: Any, greatest: Any, zone: tzinfo) -> Expression:
    return And(
        (
            compare(">=", key.column, Literal(least, key.source_type), zone),
            compare("<=", key.column, Literal(greatest, key.source_type), zone),
        )
    )


def _one_of(key: Key, values: Sequence[Any]) -> Expression | None:
    bits = _BITS.get(key.column.type)
    if bits is not None:
        values = [value for value in values if -(1 << bits - 1) <= value < 1 << bits - 1]
    return In(key.column, tuple(Literal(value, key.column.type) for value in values)) if values else None


def _is_repeatable(source: DataFrame) -> bool:
    """Return True if evaluating the source again is cheap and certain to give the same rows."""
    frame: Any = source
    if not hasattr(frame, "_jdf"):
        return False
    open_plans = [frame._jdf.queryExecution().analyzed()]
    while open_plans:
        plan = open_plans.pop()
        kind = kind_of(plan)
        if kind not in _CHEAP or not plan.deterministic():
            return False
        if kind == "LogicalRelation" and kind_of(plan.relation()) != "HadoopFsRelation":
            return False
        open_plans += elements(plan.children())
    return True


_ROWS = "rows"
# Spark reports the count a moment after the job, and never if it left the source out.
_PATIENCE_MS = 2_000


class SourceCount:
    """A number of rows, given or observed. It stays unknown if Spark leaves the source out of the job."""

    def __init__(self, rows: int | None = None) -> None:
        self._rows = rows
        self._observation: Observation | None = None
        self._source: DataFrame | None = None

    @property
    def is_known(self) -> bool:
        """True if the number is known."""
        return self._rows is not None

    def observe(self, source: DataFrame) -> DataFrame:
        """Return the source; it is counted when it is evaluated."""
        self._observation, self._source = Observation(), source
        return source.observe(self._observation, sf.count(sf.lit(1)).alias(_ROWS))

    def get(self) -> int | None:
        """Return the number after the job; None if it stays unknown."""
        if self._observation is None:
            return self._rows
        if hasattr(self._observation, "_jo") and not self._has_come():
            return None
        found = self._observation.get.get(_ROWS)
        return None if found is None else int(found)

    def _has_come(self) -> bool:
        """Return True if a classic session has the number. Asking before that would block forever.

        If Spark finds before the job that the source is empty, the observation is a row without the number.
        """
        observation: Any = self._observation
        session: Any = self._source.sparkSession if self._source is not None else None
        jvm, future = session._jvm, observation._jo.future()
        try:
            jvm.scala.concurrent.Await.ready(future, jvm.scala.concurrent.duration.Duration.create(_PATIENCE_MS, "ms"))
        except Exception:  # the JVM's TimeoutException
            return False
        return bool(observation._jo.getRow().size())
