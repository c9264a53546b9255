"""The source of a stream for Spark: its trait `Source`, implemented in Python.

The source is part of the plan of a DataFrame, and serves every query over it. So its state belongs to the runs of
queries: the planner, the bound of `Trigger.AvailableNow`, and the session of the query. A run has a state from the
first call that needs it until `stop`. Spark calls a source in the thread of the query, whose local properties name the
run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NoReturn

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.errors import (
    DataFileError,
    DeletionVectorError,
    DeltaError,
    StreamDataLossError,
    StreamError,
    StreamSchemaError,
)
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.nodes import elements
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy
from pyspark_delta.spark.frames.schemas import differences, to_spark
from pyspark_delta.spark.streaming.errors import stream_callback
from pyspark_delta.spark.streaming.execution import check_numbers, execution_of, place_schema_log
from pyspark_delta.spark.streaming.internals import limit_of_bytes, runtime
from pyspark_delta.spark.streaming.relation import BatchFrames, can_have_metadata
from pyspark_delta.storage.paths import to_hadoop
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.contents import BatchFiles
from pyspark_delta.streaming.offset import Offset
from pyspark_delta.streaming.options import StreamOptions
from pyspark_delta.streaming.planner import StreamPlanner

_STREAMS = "org.apache.spark.sql.connector.read.streaming"
_RUN_ID = "spark.jobGroup.id"


@dataclass(frozen=True)
class TableStream:
    """What a DataFrame streams: the rows of a table. `open` returns its newest snapshot, at the start of each run.

    `schema` is that of the DataFrame; `metadata` says if it has the hidden column `_metadata`.
    """

    location: str
    options: StreamOptions
    open: Callable[[], Snapshot] = field(repr=False)
    schema: SparkStruct
    metadata: bool

    @classmethod
    def of(
        cls, planner: StreamPlanner, location: str, options: StreamOptions, reopen: Callable[[], Snapshot]
    ) -> TableStream:
        """Return the stream of a planner, with its schema."""
        has_metadata = options.is_read_in_one_way and can_have_metadata(planner.source)
        return cls(location, options, reopen, to_spark(planner.schema), has_metadata)

    def planner(self, snapshot: Snapshot) -> StreamPlanner:
        """Return the planner of a run that begins with a snapshot.

        Raises StreamSchemaError if the table has another schema than the DataFrame.
        """
        planner = StreamPlanner(snapshot, self.options)
        found = differences(expected=to_spark(planner.schema), given=self.schema)
        if found:
            raise StreamSchemaError(
                f"The schema of '{self.location}' at version {snapshot.version} is not that of the DataFrame, which "
                f"was loaded before: {'; '.join(found)}. Load the table again with spark.readStream, and start the "
                "query with the new DataFrame and the same checkpoint.",
                error_class="DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART",
                version=snapshot.version,
                location=self.location,
            )
        return planner


@dataclass
class _Run:
    """The state of one run of a query.

    `has_planned` is True after its first call of `latestOffset`, `is_placed` after the place in the query was checked.
    """

    planner: StreamPlanner
    frames: BatchFrames
    bound: Offset | None = None
    has_planned: bool = False
    is_placed: bool = False


class DeltaSource(JavaProxy):
    """The rows of a table as a source of micro-batches."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = (
            "org.apache.spark.sql.execution.streaming.Source",
            f"{_STREAMS}.SupportsTriggerAvailableNow",
            f"{_STREAMS}.ReportsSourceMetrics",
        )

    def __init__(self, jvm: Jvm, stream: TableStream) -> None:
        super().__init__(jvm)
        self._stream = stream
        self._runs: dict[str, _Run] = {}
        self._limit, self._limit_text = self._default_limit()

    # ------------------------------------------------------------------------------------------- called by the JVM
    @stream_callback
    def schema(self) -> Any:
        return self._jvm.data_type(self._stream.schema.json())

    @stream_callback
    def getDefaultReadLimit(self) -> Any:
        return self._limit

    @stream_callback
    def prepareForTriggerAvailableNow(self) -> None:
        run = self._run()
        run.bound = run.planner.end_of_table()

    @stream_callback
    def latestOffset(self, start: Any, limit: Any) -> Any:
        """Return the end of the next batch; `start`, the same object, if there is nothing new."""
        run = self._placed_run()
        position = None if start is None else run.planner.parse(str(start.json()))
        end = run.planner.latest(position, self._limits(limit), run.bound)
        run.has_planned = True
        # Spark compares offsets by their text, and another writer may have written it in another way.
        return start if end == position else self._offset(end)

    @stream_callback
    def reportLatestOffset(self) -> Any:
        return self._offset(self._run().planner.known_end)

    @stream_callback
    def getBatch(self, start: Any, end: Any) -> Any:
        run, text = self._placed_run(), str(end.json())
        parse = run.planner.parse
        first, last = None if start.isEmpty() else parse(str(start.get().json())), parse(text)
        identity = f"{'' if first is None else first.to_json()} {text}"
        if run.has_planned:
            return run.frames.of_files(run.planner.batch(first, last), identity)._jdf
        return self._first_batch(run, partial(run.planner.batch, first, last), identity)._jdf

    @stream_callback
    def commit(self, end: Any) -> None:
        run = self._run()
        run.planner.release(run.planner.parse(str(end.json())))

    @stream_callback
    def metrics(self, consumed: Any) -> Any:
        map_of, run = self._jvm.static("java.util.Map", "of"), self._runs.get(self._run_id())
        if run is None or not consumed.isPresent():
            return map_of()
        planner = run.planner
        backlog = planner.backlog(planner.parse(str(consumed.get().json()))).metrics()
        return map_of(*(text for item in backlog.items() for text in item))

    @stream_callback
    def stop(self) -> None:
        self._runs.pop(self._run_id(), None)

    @stream_callback
    def deserializeOffset(self, json: str) -> Any:
        return self._jvm.type(runtime(self._jvm, "SerializedOffset"))(json)

    @stream_callback
    def initialOffset(self) -> NoReturn:
        raise StreamError("The source has no initial offset: Spark asks for the latest one after none.")

    @stream_callback
    def getOffset(self) -> NoReturn:
        raise StreamError("The source has limits: Spark asks for the latest offset after another one.")

    def equals(self, other: Any) -> bool:
        # Two sources of one table have the same text.
        return other is self or (
            other is not None and other.hashCode() == self._number and str(other.toString()) == self.toString()
        )

    def toString(self) -> str:
        return f"DeltaSource[{to_hadoop(self._stream.location)}]"

    # ------------------------------------------------------------------------------------------------------- runs
    def _run(self) -> _Run:
        """Return the state of the run whose thread this is."""
        run_id = self._run_id()
        run = self._runs.get(run_id)
        if run is None:
            stream = self._stream
            planner = stream.planner(stream.open())
            run = _Run(planner, BatchFrames(_active_session(self._jvm), planner.source, stream.metadata))
            self._runs[run_id] = run
        return run

    def _placed_run(self) -> _Run:
        """Return the state of the run, after a check of the source's place in the query, which Spark knows by now."""
        run = self._run()
        if not run.is_placed:
            execution = execution_of(self._jvm, run.frames.spark._jsparkSession)
            numbers = [number for number, one in enumerate(elements(execution.sources())) if self.equals(one)]
            check_numbers(execution, numbers, self._stream.location)
            if self._stream.options.schema_location is not None:
                place_schema_log(execution, numbers, run.planner, self._stream.options.schema_location)
            run.is_placed = True
        return run

    def _first_batch(self, run: _Run, find: Callable[[], list[BatchFiles]], identity: str) -> DataFrame:
        """Return the batch with which a run begins. What it lacks is an error only when Spark plans the batch.

        After a restart, Spark asks for the batch that is complete, and throws it away. Its commits may have been
        cleaned up by now, and its files vacuumed.
        """
        if self._stream.options.is_read_in_one_way:
            return run.frames.later(find, identity)
        try:
            return run.frames.of_files(find(), identity)
        except (StreamDataLossError, DataFileError, DeletionVectorError) as error:
            return run.frames.later(partial(_raise, error), identity)

    def _run_id(self) -> str:
        context = SparkContext._active_spark_context
        return str(None if context is None else context.getLocalProperty(_RUN_ID))

    def _offset(self, offset: Offset | None) -> Any:
        return None if offset is None else self._jvm.type(runtime(self._jvm, "SerializedOffset"))(offset.to_json())

    # ------------------------------------------------------------------------------------------------------ limits
    def _default_limit(self) -> tuple[Any, str]:
        made, limits = self._jvm.type(f"{_STREAMS}.ReadLimit"), self._stream.options.limits
        of_each = []
        if limits.files is not None:
            of_each.append(made.maxFiles(min(limits.files, 2**31 - 1)))
        if limits.bytes is not None:
            of_each.append(limit_of_bytes(self._jvm, min(limits.bytes, 2**63 - 1)))
        if len(of_each) > 1:
            limit = made.compositeLimit(self._jvm.array(of_each, f"{_STREAMS}.ReadLimit"))
        else:
            limit = of_each[0] if of_each else made.allAvailable()
        return limit, str(limit.toString())

    def _limits(self, limit: Any) -> Limits:
        """Return the limits that Spark gives, which are the default ones or those of its trigger."""
        if str(limit.toString()) == self._limit_text:
            return self._stream.options.limits
        kind = str(limit.getClass().getSimpleName())
        if kind == "CompositeReadLimit":
            members = [self._limits(one) for one in list(limit.getReadLimits())]
            files = [one.files for one in members if one.files is not None]
            sizes = [one.bytes for one in members if one.bytes is not None]
            return Limits(min(files, default=None), min(sizes, default=None))
        if kind == "ReadMaxFiles":
            return Limits(files=int(limit.maxFiles()))
        if kind == "ReadMaxBytes":
            return Limits(bytes=int(limit.maxBytes()))
        return Limits()


def _raise(error: DeltaError) -> NoReturn:
    raise error


def _active_session(jvm: Jvm) -> SparkSession:
    """Return the session of the query whose thread this is: a clone of the DataFrame's, with the same settings."""
    java = jvm.classic("SparkSession").active()
    return SparkSession(SparkContext._active_spark_context, java)  # type: ignore[arg-type]
