"""What a source finds out about the query that calls it: its numbers among the sources, and the checkpoint.

Spark does not tell a source either of them. They are members of the query's execution, which is found by its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark import SparkContext

from pyspark_delta.errors import StreamError, StreamSchemaError
from pyspark_delta.spark.conf.batches import QUERY_ID
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.nodes import elements
from pyspark_delta.storage import normalize_location
from pyspark_delta.streaming.planner import StreamPlanner


def execution_of(jvm: Jvm, session: Any) -> Any:
    """Return the execution of the query whose thread this is; `session` is a session in the JVM."""
    context: Any = SparkContext._active_spark_context
    query = jvm.root.java.util.UUID.fromString(context.getLocalProperty(QUERY_ID))
    return session.sharedState().activeStreamingQueries().get(query)


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
    root = normalize_location(str(execution.resolvedCheckpointRoot()))
    if not f"{schema_location}/".startswith(f"{root}/"):
        raise StreamSchemaError(
            f"The option schemaTrackingLocation is '{schema_location}', which is not below the checkpoint '{root}' of "
            "the query. Choose a directory in the checkpoint, so that both are deleted together.",
            error_class="DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT",
            sqlstate="42K04",
            location=schema_location,
            checkpoint=root,
        )
    planner.track_source(f"{root}/sources/{numbers[0] if numbers else 0}")
