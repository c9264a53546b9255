"""What a source or sink finds out about the query that calls it: numbers of the source, checkpoint, planned offsets.

Spark does not tell any of them. They are members of the query's execution, which is found by its id.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext

from pyspark_delta.errors import StreamError
from pyspark_delta.spark.conf.batches import QUERY_ID
from pyspark_delta.spark.frames.catalyst.jvm import Jvm, jvm_of
from pyspark_delta.spark.frames.catalyst.nodes import elements
from pyspark_delta.storage import normalize_location
from pyspark_delta.streaming.checkpoint import batch_plan
from pyspark_delta.streaming.planner import StreamPlanner
from pyspark_delta.streaming.schema_log import outside_checkpoint, source_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def execution_of(jvm: Jvm, session: Any) -> Any:
    """Return the execution of the query whose thread this is; `session` is a session in the JVM."""
    context: Any = SparkContext._active_spark_context
    query = jvm.root.java.util.UUID.fromString(context.getLocalProperty(QUERY_ID))
    return session.sharedState().activeStreamingQueries().get(query)


def planned_batch(spark: SparkSession, number: int) -> str | None:
    """Return the `batch_plan` of a batch of the query whose thread this is; None if Spark does not tell."""
    try:
        execution = execution_of(jvm_of(spark), spark._jsparkSession)
        planned = None if execution is None else execution.offsetLog().get(number)
        if planned is None or planned.isEmpty():
            return None
        sequence = planned.get()
        return batch_plan(str(sequence.toString()), lambda: _planned_at(sequence))
    except Py4JJavaError:  # also of an interruption
        raise
    except Py4JError:  # a Spark without these members
        return None


def _planned_at(planned: Any) -> int:
    return int(json.loads(planned.productElement(1).get().json())["batchTimestampMs"])


def check_numbers(execution: Any, numbers: Sequence[int], location: str) -> None:
    """Check that a source which a query has several times is at one position. Raises StreamError.

    Another engine makes a source for each place in the query, and their positions differ while a batch is planned.
    """
    if len(numbers) < 2:
        return
    latest = execution.offsetLog().getLatest()
    if latest.isEmpty():
        return
    last = int(latest.get()._1())
    for batch in range(max(0, last - 1), last + 1):
        planned = execution.offsetLog().get(batch)
        offsets = elements(planned.get().offsets()) if planned.isDefined() else []
        texts = {str(offsets[n].get().json()) for n in numbers if n < len(offsets) and offsets[n].isDefined()}
        if len(texts) > 1:
            raise StreamError(
                f"The query reads '{location}' in several places from one DataFrame, but its checkpoint has different "
                f"positions for them at batch {batch}: {', '.join(sorted(texts))}. Load the table with "
                "spark.readStream once for each place, and start the query with these DataFrames.",
                location=location,
                batch=batch,
            )


def place_schema_log(execution: Any, numbers: Sequence[int], planner: StreamPlanner, schema_location: str) -> None:
    """Name the source for its schema log, which must lie below the checkpoint. Raises StreamSchemaError."""
    root = str(execution.resolvedCheckpointRoot())
    checkpoint = normalize_location(root)
    if not f"{schema_location}/".startswith(f"{checkpoint}/"):
        raise outside_checkpoint(schema_location, checkpoint)
    planner.track_source(source_path(root, numbers[0] if numbers else 0))
