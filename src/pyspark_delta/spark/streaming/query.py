"""Starts the query of a stream that is written to a Delta table.

Spark has no public way to start a query with a sink that is an object. `unavailable` first tries whether the internals
are as expected. If they are not, `foreachBatch` writes the batches, with the same commits; then the progress of the
query names that sink.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery

from pyspark_delta.errors import DeltaWarning, InvalidOperationError
from pyspark_delta.spark.frames.catalyst.error_relay import pass_expected
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.streaming.internals import MANAGER, WRITER, has_sink_names, start_query_arguments
from pyspark_delta.spark.streaming.sink import BatchWriter, DeltaSink, from_dataset_arity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIELDS = ("outputMode", "trigger")  # of Spark's DataStreamWriter
_SINK_NAME = "sinkName"
_UPDATE = (
    "Write the table in foreachBatch, with a MERGE that updates the rows by their keys: see streaming_batch of "
    "pyspark_delta. Or use outputMode('append'), or outputMode('complete') to replace all rows with each batch."
)


@dataclass(frozen=True)
class QueryChoices:
    """What the user chose for a query: output mode (Append, Complete or Update) and trigger, as objects of the JVM.

    `sink_name` is an option of Spark; None if this Spark has none.
    """

    output_mode: Any
    trigger: Any
    sink_name: Any = None

    @classmethod
    def of(cls, spark: SparkSession, writer: Any) -> QueryChoices:
        """Return the choices in a DataStreamWriter of the JVM."""
        jvm = jvm_of(spark)
        names = (*_FIELDS, *((_SINK_NAME,) if has_sink_names(jvm) else ()))
        return cls(*(jvm.field(writer, name).get(writer) for name in names))

    def check(self) -> None:
        """Raise InvalidOperationError for a trigger that Delta tables do not support."""
        kind = str(self.trigger.getClass().getSimpleName())
        if kind.startswith(("Continuous", "RealTime")):
            raise InvalidOperationError(
                f"Delta tables are written in micro-batches, not with {kind}. Nothing was started. Use "
                "trigger(processingTime='10 seconds') or trigger(availableNow=True).",
                error_class="DELTA_STREAMING_TRIGGER_UNSUPPORTED",
                sqlstate="0A000",
            )


def check_output_mode(mode: str) -> None:
    """Raise InvalidOperationError for an output mode that Delta tables do not support."""
    if mode.lower() not in ("append", "complete"):
        raise InvalidOperationError(
            f"Data source delta does not support {mode.capitalize()} output mode. Nothing was started. {_UPDATE}",
            error_class="DELTA_UNSUPPORTED_OUTPUT_MODE",
            sqlstate="0AKDC",
        )


def unavailable(spark: SparkSession) -> str | None:
    """Return why this Spark cannot use a sink in Python; None if it can. It is tried once for each JVM."""
    return _try_internals(spark.sparkContext._gateway)


@lru_cache(maxsize=2)
def _try_internals(gateway: Any) -> str | None:
    try:
        jvm = Jvm(gateway)
        jvm.load_class(*DeltaSink.Java.implements)
        manager = jvm.load_class(MANAGER)
        counts = {method.getParameterCount() for method in manager.getMethods() if method.getName() == "startQuery"}
        if counts != {start_query_arguments(jvm)}:
            return f"startQuery takes {sorted(counts)} arguments"
        fields = {str(field.getName()) for field in jvm.load_class(WRITER).getDeclaredFields()}
        missing = set(_FIELDS) - fields
        if missing:
            return f"its DataStreamWriter has no field {', '.join(sorted(missing))}"
        if from_dataset_arity(jvm) not in (3, 4):
            return f"fromDataset takes {from_dataset_arity(jvm)} arguments"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return None


def start_query(frame: DataFrame, write: BatchWriter, choices: QueryChoices, options: Mapping[str, str]) -> Any:
    """Start a query that writes to a Delta table, and return PySpark's StreamingQuery.

    `options` are those of Spark: `checkpointLocation` and `queryName`. Raises AnalysisException if Spark knows no
    location for the checkpoint, and for a query that it cannot run in the output mode.
    """
    spark = frame.sparkSession
    jvm = jvm_of(spark)
    pass_expected(jvm.gateway)
    given = {name.lower(): value for name, value in options.items()}
    manager = spark._jsparkSession.streams()
    query = manager.startQuery(
        _option(jvm, given.get("queryname")),
        *(() if choices.sink_name is None else (choices.sink_name,)),
        _option(jvm, given.get("checkpointlocation")),
        frame._jdf,
        jvm.map({}),
        DeltaSink(spark, write),
        choices.output_mode,
        False,  # useTempCheckpointLocation
        True,  # recoverFromCheckpointLocation
        choices.trigger,
        getattr(manager, f"startQuery$default${start_query_arguments(jvm) - 2}")(),  # the clock
        jvm.none,
        jvm.none,
    )
    return StreamingQuery(query)


def warn_of_fallback(reason: str) -> None:
    """Warn that batches are written through foreachBatch. Python shows the warning once for each place."""
    warnings.warn(
        "The stream is written to its Delta table through foreachBatch, because this Spark cannot use a sink in "
        f"Python ({reason}). The commits are the same.",
        DeltaWarning,
        stacklevel=4,
    )


def _option(jvm: Jvm, value: str | None) -> Any:
    return jvm.root.scala.Option.apply(value)
