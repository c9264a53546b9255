"""The source of a MERGE. Spark evaluates the frame once; it is materialized if its keys are read before the job.

A small source is collected. If it consists of a few local Parquet files, such as those of a table, this process reads
them without a Spark job. It does so only if Spark would certainly read the same rows: the optimized plan reads the
files and nothing else, each file has every column with exactly its name and type, and no setting changes how values are
read.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as sf
from pyspark.sql import Observation
from pyspark.storagelevel import StorageLevel

from pyspark_delta.data.opened import opened_file
from pyspark_delta.data.reader import output_schema, read_tasks
from pyspark_delta.engines.cost import CostModel
from pyspark_delta.errors import DataFileError, DeltaError, SchemaMismatchError
from pyspark_delta.protocol.draft import IsolationLevel, ReadSet
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.scan.plan import FromFile, ReadContext, ScanTask
from pyspark_delta.schema.arrow import from_arrow
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.types import TIMESTAMP, ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.arrow import collect_arrow
from pyspark_delta.spark.conf.worker_python import prepare_workers
from pyspark_delta.spark.engine.dml.target import SparkTarget
from pyspark_delta.spark.engine.frame_reads import frame_reads
from pyspark_delta.spark.engine.write.alignment import frame_schema, spark_type
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of
from pyspark_delta.spark.frames.plain_columns import aliased, column_at, named_columns
from pyspark_delta.spark.frames.relation_columns import PLAIN_LOCAL_FILES, RELATION_OPTIONS
from pyspark_delta.statements.merge.condition import Key
from pyspark_delta.statements.merge.keys import REPORT, KeyReport, SourceKeys, report_keys, source_keys
from pyspark_delta.storage.paths import resolve_file, to_uri
from pyspark_delta.transaction.new_table import nullable_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Nodes of a plan that cost little more than reading, and return the same rows each time.
_CHEAP = {"Project", "Filter", "SubqueryAlias", "View", "LocalRelation", "OneRowRelation", "Range", "LogicalRelation"}
_SPARK = "org.apache.spark.sql.execution.datasources"
_OPTIONS = {"path", "paths", *PLAIN_LOCAL_FILES}  # options that do not change what is read from a file
_SETTINGS = {  # settings that change how values are read, with their defaults
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
}


class SparkSource:
    """A frame as the source of a merge (`statements.merge.merge.MergeSource`).

    `given` is the frame of the caller. `frame` is the frame to join: the same, or after `find_keys` a materialized one.
    """

    def __init__(self, spark: SparkSession, given: DataFrame, target: SparkTarget, stack: ExitStack) -> None:
        self.given = self.frame = given
        self.schema = frame_schema(given)
        self.materialize_ms = 0
        self._spark, self._target, self._stack = spark, target, stack
        self._count = SourceCount()

    @property
    def rows(self) -> int | None:
        """The number of rows; None if it is not known yet."""
        return self._count.get()

    @property
    def is_small(self) -> bool:
        """True if the source is known to be small enough to broadcast."""
        return self._count.is_known and (self._count.get() or 0) <= self._target.cost.broadcast_rows

    def reads(self, snapshot: Snapshot) -> ReadSet:
        """Return what the frame reads from the table itself. Raises as `frame_reads`."""
        return frame_reads(self._spark, self.given, snapshot, "MERGE", IsolationLevel.SERIALIZABLE)

    def find_keys(self, keys: Sequence[Key]) -> SourceKeys:
        """Materialize the source, and run the job that reads its keys. Then the number of rows is known."""
        self.frame, self.materialize_ms = self._stack.enter_context(materialized(self.given))
        found = find_keys(self.frame, keys, self._target.time_zone)
        self._count = SourceCount(found.rows)
        return found

    def collect_if_small(self, columns: StructType) -> pa.Table | None:
        """Return these columns of the source; None if it is not known to be small (`collected`)."""
        return collected(self.given, columns, self._target.cost)

    def collect(self, columns: StructType) -> pa.Table | None:
        """Return these columns of the source; None if it has too many rows, or its size is not known."""
        rows = self.rows
        if rows is None or rows > self._target.cost.collected_rows(len(columns)):
            return None
        return collect(self.frame, columns)

    def observed(self) -> DataFrame:
        """Return the frame to join. If its number of rows is not known, Spark counts them when it evaluates it."""
        return self.frame if self._count.is_known else self._count.observe(self.frame)


@contextmanager
def materialized(source: DataFrame) -> Iterator[tuple[DataFrame, int]]:
    """Yield the source as a frame that returns the same rows each time, and how many milliseconds this took."""
    start = time.monotonic()
    if _is_repeatable(source):
        yield source, 0
    elif hasattr(source, "_jdf"):
        kept = source.localCheckpoint()
        yield kept, int((time.monotonic() - start) * 1000)
    else:
        # On Spark Connect, a checkpoint is another frame, on which columns of the source cannot be resolved.
        was_kept = source.storageLevel != StorageLevel.NONE
        source.persist()
        try:
            yield source, 0
        finally:
            if not was_kept:
                source.unpersist()


def find_keys(source: DataFrame, keys: Sequence[Key], time_zone: str) -> SourceKeys:
    """Run a job that collects the keys of a source: all values if there are few, else ranges."""
    spark = source.sparkSession
    prepare_workers(spark)
    selected = source.select(
        *(column_at(spark, ".".join(map(quoted, key.source)), f"k{number}") for number, key in enumerate(keys))
    )
    reports = [
        pickle.loads(report) for report in collect_arrow(selected.mapInArrow(report_keys, REPORT))["report"].to_pylist()
    ]
    if not reports:
        return SourceKeys(0, NEVER)
    return source_keys(KeyReport.joined(reports), keys, time_zone)


def collected(source: DataFrame, columns: StructType, cost: CostModel) -> pa.Table | None:
    """Collect these columns of the source.

    Return None on Spark Connect, if Spark's size estimate exceeds the limit, or if there are too many rows.
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
    # PySpark fails on non-nullable members of null structs, so all nested fields are made nullable.
    values = [
        column.cast(spark_type(nullable_type(field.type)))
        if isinstance(field.type, StructType | ArrayType | MapType)
        else column
        for field, column in zip(columns, named_columns(source.sparkSession, columns.names), strict=True)
    ]
    rows = collect_arrow(source.select(*(aliased(value, f"c{number}") for number, value in enumerate(values))))
    return rows.rename_columns(list(columns.names))


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
# Spark reports the count shortly after the job, and never if its plan leaves the source out.
_PATIENCE_MS = 2_000


class SourceCount:
    """The number of rows of a source, given or counted by Spark. It stays unknown if the job leaves the source out."""

    def __init__(self, rows: int | None = None) -> None:
        self._rows = rows
        self._observation: Observation | None = None
        self._source: DataFrame | None = None

    @property
    def is_known(self) -> bool:
        """True if the number was given, so that Spark need not count the rows."""
        return self._rows is not None

    def observe(self, source: DataFrame) -> DataFrame:
        """Return the source as a frame whose rows Spark counts when it evaluates it."""
        self._observation, self._source = Observation(), source
        return source.observe(self._observation, sf.count(sf.lit(1)).alias(_ROWS))

    def get(self) -> int | None:
        """Return the number; None if it is unknown. An observed number is known after the job."""
        if self._observation is None:
            return self._rows
        if hasattr(self._observation, "_jo") and not self._has_come():
            return None
        found = self._observation.get.get(_ROWS)
        return None if found is None else int(found)

    def _has_come(self) -> bool:
        """Return True if a classic session has reported the number. Reading it before would block forever.

        Waits at most `_PATIENCE_MS`. If Spark finds before the job that the source is empty, it reports a row without
        the number.
        """
        observation: Any = self._observation
        session: Any = self._source.sparkSession if self._source is not None else None
        jvm, future = session._jvm, observation._jo.future()
        try:
            jvm.scala.concurrent.Await.ready(future, jvm.scala.concurrent.duration.Duration.create(_PATIENCE_MS, "ms"))
        except Exception:  # the JVM's TimeoutException
            return False
        return bool(future.value().get().get().size())  # of a row; on Spark 4.0, of a map


# ------------------------------------------------------------------------------------------- files of a source
@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Parquet files, the columns to read from them, and their number of rows."""

    paths: tuple[str, ...]
    columns: StructType
    rows: int

    def read(self) -> pa.Table:
        """Return the rows. Raises as `read_tasks`."""
        context = ReadContext("/", tuple(FromFile(field, field) for field in self.columns), self.columns.names)
        tasks = [ScanTask(path, 0, {}) for path in self.paths]
        return pa.Table.from_batches(read_tasks(context, tasks), output_schema(context))


def source_files(spark: SparkSession, plan: Any, columns: StructType, most: int) -> SourceFiles | None:
    """Return the Parquet files of an optimized plan of a classic session, if the plan only reads these columns.

    Return None for any other plan, for more than `most` files, for a setting that differs from `_SETTINGS`, and if a
    file cannot be read or lacks a column of exactly that type.
    """
    relation = _relation(plan)
    if relation is None or any(spark.conf.get(name, value) != value for name, value in _SETTINGS.items()):
        return None
    paths = _paths(relation.location(), most)
    if not paths:
        return None
    try:
        rows = [_rows_of(path, columns) for path in paths]
    except (DeltaError, OSError):
        return None  # Spark reports what is wrong with a file
    counts = [count for count in rows if count is not None]
    return SourceFiles(paths, columns, sum(counts)) if len(counts) == len(paths) else None


def _relation(plan: Any) -> Any:
    """Return the relation that a plan reads; None if it is not a relation of Parquet files without partitions."""
    while kind_of(plan) == "Project" and plan.outputSet().subsetOf(plan.inputSet()):  # it computes nothing
        plan = plan.child()
    if kind_of(plan) != "LogicalRelation" or kind_of(plan.relation()) != "HadoopFsRelation":
        return None
    relation = plan.relation()
    index = relation.location()
    is_plain = (
        relation.fileFormat().getClass().getName() == f"{_SPARK}.parquet.ParquetFileFormat"
        and (_is_of_table(index) or index.getClass().getName() == f"{_SPARK}.InMemoryFileIndex")
        and not relation.partitionSchema().length()
        and all(_is_harmless(option._1(), option._2()) for option in elements(relation.options().toSeq()))
    )
    return relation if is_plain else None


def _is_harmless(option: str, value: str) -> bool:
    return option in _OPTIONS or RELATION_OPTIONS.get(option) == value


def _paths(index: Any, most: int) -> tuple[str, ...]:
    """Return the files of an index, as paths in a log; none for more than `most` files, or if one is not local."""
    found = index.inputFiles()
    if len(found) > most:
        return ()
    paths = tuple(str(path) for path in found)
    if not all(path.startswith("file:/") for path in paths):
        return ()
    # The index of a table has paths in Hadoop's form, without escapes.
    return tuple(to_uri(path.removeprefix("file:")) for path in paths) if _is_of_table(index) else paths


def _is_of_table(index: Any) -> bool:
    """Return True if an index is the proxy of a `DeltaFileIndex`."""
    return "$Proxy" in kind_of(index) and str(index.toString()).startswith("Delta[")


def _rows_of(path: str, columns: StructType) -> int | None:
    """Return the number of rows of a file; None if Spark may read a column differently. Raises DeltaError, OSError."""
    with opened_file(resolve_file("/", path), None) as file:
        types = _types(file)
        is_same = all(types.get(field.name) == field.type for field in columns) and not _is_of_spark_2(file)
        rows: int = file.metadata.num_rows
        return rows if is_same else None


def _is_of_spark_2(file: pq.ParquetFile) -> bool:
    """Return True if Spark 2 wrote a file.

    Its timestamps before 1900 depend on the time zone of the writer, which Spark 2 does not record.
    """
    return bool((file.schema_arrow.metadata or {}).get(b"org.apache.spark.version", b"3") < b"3")


def _types(file: pq.ParquetFile) -> dict[str, DataType]:
    """Return the types that Spark infers for the columns of primitive types, by name."""
    physical = {column.path: column.physical_type for column in map(file.schema.column, range(len(file.schema.names)))}
    found: dict[str, DataType] = {}
    for field in file.schema_arrow:
        try:
            data_type = TIMESTAMP if physical.get(field.name) == "INT96" else from_arrow(field.type)
        except SchemaMismatchError:
            continue
        if isinstance(data_type, PrimitiveType | DecimalType):
            found[field.name] = data_type
    return found
