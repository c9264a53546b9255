"""The `commitInfo` of a write, with delta-spark's names: operation, parameters, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.model import Metadata
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.schema.json import dump_json
from pyspark_delta.write.engine import StreamBatch
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.written import Written

BATCH_PLAN = "batchPlan"
"""The tag with `StreamBatch.plan`."""

_MODES = {"append": "Append", "overwrite": "Overwrite", "error": "ErrorIfExists", "ignore": "Ignore"}


def write_operation(mode: str, options: WriteOptions, metrics: Mapping[str, int]) -> Operation:
    """Return the operation of a write of the save mode."""
    parameters: dict[str, str | bool | None] = {
        "mode": _MODES[mode],
        "partitionBy": json_list(options.partition_by or ()),
        "predicate": options.replace_where,
        "isDynamicPartitionOverwrite": True if options.dynamic_partitions and mode == "overwrite" else None,
        "canOverwriteSchema": options.overwrite_schema or None,
        "canMergeSchema": options.merge_schema or None,
        "clusterBy": json_list(options.cluster_by) if options.cluster_by else None,
        "replaceOnCond": options.replace_on,
        "replaceUsingCols": f"({', '.join(options.replace_using)})" if options.replace_using else None,
    }
    return Operation("WRITE", {name: value for name, value in parameters.items() if value is not None}, metrics)


def table_operation(
    name: str, options: WriteOptions, metadata: Metadata, metrics: Mapping[str, int], *, is_managed: bool = False
) -> Operation:
    """Return the operation of a table made from a query: `name` is such as CREATE TABLE AS SELECT."""
    parameters: dict[str, str | None] = {
        "partitionBy": json_list(options.partition_by or ()),
        "clusterBy": json_list(options.cluster_by),
        "isManaged": str(is_managed).lower(),
        "properties": dump_json(dict(metadata.configuration)).decode(),
        "description": metadata.description,
    }
    return Operation(name, parameters, metrics)


def batch_operation(batch: StreamBatch, metrics: Mapping[str, int]) -> Operation:
    """Return the operation of a micro-batch; `metrics` are those of a write."""
    parameters = {"outputMode": batch.output_mode, "queryId": batch.query_id, "epochId": str(batch.number)}
    counts = {
        "numAddedFiles": metrics["numFiles"],
        "numRemovedFiles": metrics.get("numRemovedFiles", 0),
        "numOutputRows": metrics["numOutputRows"],
        "numOutputBytes": metrics["numOutputBytes"],
    }
    return Operation("STREAMING UPDATE", parameters, counts)


def batch_tags(batch: StreamBatch | None) -> dict[str, str]:
    """Return the tags of the commit of a micro-batch, with which a repeated batch is compared."""
    return {} if batch is None or batch.plan is None else {BATCH_PLAN: batch.plan}


def write_metrics(
    new: Written,
    kept: Written,
    *,
    removed: pa.Table | None = None,
    changes: pa.Table | None = None,
    deleted_rows: int | None = None,
) -> dict[str, int]:
    """Return the metrics of a write. `removed` and `changes` are absent if the write cannot have them."""
    metrics = {
        "numFiles": new.files.num_rows + kept.files.num_rows,
        "numOutputRows": new.rows + kept.rows,
        "numOutputBytes": new.size + kept.size,
    }
    if removed is not None:
        metrics["numRemovedFiles"] = removed.num_rows
        metrics["numRemovedBytes"] = pc.sum(removed["size"]).as_py() or 0
    if changes is not None:
        metrics["numCopiedRows"] = kept.rows
        metrics["numAddedChangeFiles"] = changes.num_rows
        if deleted_rows is not None:
            metrics["numDeletedRows"] = deleted_rows
    return metrics


def json_list(names: Sequence[str]) -> str:
    """Return names as JSON."""
    return dump_json(list(names)).decode()
