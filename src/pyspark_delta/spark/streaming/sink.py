"""The sink of a streaming query: each micro-batch is one commit of the package's write pipeline.

The commit records the id of the query and the number of the batch as an application transaction. A batch that the table
holds is not computed again, so a query that is stopped or killed anywhere writes each batch once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pyspark.sql import DataFrame, SparkSession

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol.draft import IsolationLevel, ReadSet
from pyspark_delta.schema.merge import merge_schemas
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.classes import java_name
from pyspark_delta.spark.engine.dml.stored_values import naming_values, stored
from pyspark_delta.spark.engine.write.alignment import frame_schema
from pyspark_delta.spark.engine.write.save import FrameRows, check_write, write_frame_rows
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy
from pyspark_delta.spark.frames.read_marks import reads_in
from pyspark_delta.spark.streaming.batch import query_id
from pyspark_delta.spark.streaming.errors import stream_callback
from pyspark_delta.spark.streaming.execution import planned_batch
from pyspark_delta.write.engine import StreamBatch, WriteRequest
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.pipeline import open_table
from pyspark_delta.write.repeated_batches import check_repeated
from pyspark_delta.write.stream_options import check_no_void

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOGICAL_RDD = "org.apache.spark.sql.execution.LogicalRDD"


class BatchWriter(Protocol):
    """Writes the batches of a query to the table at a location."""

    @property
    def location(self) -> str:
        """The location of the table."""
        ...

    def checked(self, frame: DataFrame) -> BatchWriter:
        """Return the writer of a query's batches. Raises what the first batch would raise, before the query starts."""
        ...

    def write(self, frame: DataFrame, number: int) -> None:
        """Write a batch in the thread of its query, unless the table holds it."""
        ...


@dataclass(frozen=True)
class StreamWrite:
    """What a query writes: the table at a location, and Spark's name of the output mode, Append or Complete.

    With `casts`, some values are cast to the types of the table before the write.
    """

    location: str
    output_mode: str
    options: WriteOptions
    must_exist: bool = False
    casts: bool = False

    def checked(self, frame: DataFrame) -> StreamWrite:
        """Return the writer of a query's batches.

        Raises what the first batch would raise for the options and columns of a query, before it starts.
        """
        check_no_void(frame_schema(frame))
        request = self._request(self.options)
        snapshot = open_table(request)
        found = self._stored(frame, snapshot)
        check_write(found, request, snapshot)
        return replace(self, casts=found is not frame)

    def write(self, frame: DataFrame, number: int) -> None:
        """Write a batch in the thread of its query, unless the table holds it.

        Raises as `write_table`, and StreamDataLossError if the table holds another batch of that number.
        """
        query = query_id(frame.sparkSession)
        assert query is not None
        options = replace(self.options, transaction=SetTransaction(app_id=query, version=number))
        batch = StreamBatch(query, number, self.output_mode, planned_batch(frame.sparkSession, number))
        request = self._request(options, batch)
        snapshot = open_table(request)
        if snapshot is not None and snapshot.holds_transaction(options.transaction):
            check_repeated(snapshot, batch)
            return
        if not self.casts:
            write_frame_rows(BatchRows(frame), request, snapshot)
            return
        with naming_values():
            write_frame_rows(BatchRows(frame, lambda rows: self._stored(rows, snapshot)), request, snapshot)

    def _stored(self, frame: DataFrame, snapshot: Snapshot | None) -> DataFrame:
        """Return the rows with the casts of an INSERT, as delta-spark does in streams."""
        if snapshot is None or self.options.overwrite_schema:
            return frame
        types = snapshot.schema
        if self.options.merge_schema:
            widen = is_active(snapshot.configuration, Feature.TYPE_WIDENING)
            types = merge_schemas(types, frame_schema(frame), widen=widen)
        return stored(frame, types, evolves=True)

    def _request(self, options: WriteOptions, batch: StreamBatch | None = None) -> WriteRequest:
        mode = "append" if self.output_mode == "Append" else "overwrite"
        return WriteRequest(self.location, mode, options, self.must_exist, batch=batch)


class DeltaSink(JavaProxy):
    """Spark's trait `Sink` for a Delta table."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = ("org.apache.spark.sql.execution.streaming.Sink",)

    def __init__(self, spark: SparkSession, write: BatchWriter) -> None:
        super().__init__(jvm_of(spark))
        self._context: SparkContext = spark.sparkContext
        self._write = write

    @stream_callback
    def addBatch(self, batchId: int, data: Any) -> None:
        """Write a batch. To return means that the batch is in the table."""
        self._write.write(DataFrame(data, SparkSession(self._context, data.sparkSession())), int(batchId))

    def name(self) -> str:
        """Return the sink's name in plans."""
        return self.toString()

    def toString(self) -> str:
        """Return the sink's description in the progress of the query."""
        return f"DeltaSink[{self._write.location}]"


class BatchRows(FrameRows):
    """The rows of a micro-batch, which Spark has planned already, with the state and the watermark of the query.

    `change` changes their columns.
    """

    def __init__(self, batch: DataFrame, change: Callable[[DataFrame], DataFrame] = lambda rows: rows) -> None:
        super().__init__(change(batch))
        self._batch, self._change = batch, change

    def rows(self) -> DataFrame:
        """Return a frame over the rows of the plan. Raises as planning does."""
        return self._change(self._planned())

    def _planned(self) -> DataFrame:
        frame = self._batch
        if not frame.isStreaming:  # foreachBatch has done the same
            return frame
        jvm, java = jvm_of(frame.sparkSession), frame._jdf
        logical = jvm.module(_LOGICAL_RDD)
        rest = (False,) * (from_dataset_arity(jvm) - 2)
        node = logical.fromDataset(java.queryExecution().toRdd(), java, *rest)
        rows = jvm.static(java_name("Dataset"), "ofRows")(java.sparkSession(), node)
        return DataFrame(rows, frame.sparkSession)

    def source_reads(self, snapshot: Snapshot, isolation: IsolationLevel | None) -> ReadSet:
        """Return a read of the whole table if the query reads the table that it writes to.

        The query reads the version at which its DataFrame was made, which earlier batches have changed since.
        """
        return ReadSet(whole_table=True) if reads_in(self.frame, snapshot) else ReadSet()


def from_dataset_arity(jvm: Jvm) -> int:
    """Return how many arguments `LogicalRDD.fromDataset` takes: a flag more with each version of Spark, so far."""

    def count() -> int:
        methods = jvm.load_class(f"{_LOGICAL_RDD}$").getMethods()
        return next(int(method.getParameterCount()) for method in methods if method.getName() == "fromDataset")

    found: int = jvm.once("parameters of fromDataset", count)
    return found
