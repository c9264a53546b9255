"""`streaming_batch`: a function of `foreachBatch` changes Delta tables once, though Spark may repeat the batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.spark.conf.batches import QUERY_ID, BatchTransactions, naming
from pyspark_delta.write.options import transaction_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def streaming_batch(
    batch: DataFrame, batch_id: int, *, checkpoint: str | None = None
) -> Iterator[Mapping[str, object]]:
    """Let every write and statement in the block happen once for a micro-batch, even if Spark repeats the batch.

    Use it in a function for `foreachBatch`. Each write, MERGE, UPDATE, DELETE and INSERT in the block records the query
    and the batch in the table that it changes, as an application transaction. If the table holds the transaction, the
    statement does nothing. A block may change several tables, and one table several times; a repeated batch must run
    the same statements on a table in the same order. A statement that is tried again after an error counts once.

    `batch` and `batch_id` are the arguments of the function. `checkpoint` is the checkpoint location of the query. It
    is needed on Spark Connect, where the function does not learn the id of its query otherwise. The block gets the
    options `txnAppId` and `txnVersion`, for writers that do not know of the block.

    Raises InvalidOperationError if the id of the query is not known, and InvalidOptionError for another batch number.

    >>> def upsert(batch, batch_id):                                            # doctest: +SKIP
    ...     with streaming_batch(batch, batch_id):
    ...         table = DeltaTable.forPath(batch.sparkSession, path)
    ...         table.alias("t").merge(batch.alias("b"), "t.id = b.id").whenMatchedUpdateAll().execute()
    """
    spark = batch.sparkSession
    query = _query_id(spark, checkpoint)
    transaction = transaction_of(query, str(batch_id))
    assert transaction is not None
    with naming(spark, BatchTransactions(query, transaction.version)):
        yield {"txnAppId": query, "txnVersion": transaction.version}


def query_id(spark: SparkSession) -> str | None:
    """Return the id of the streaming query that runs in this thread of a classic session; None if there is none."""
    if not hasattr(spark, "_jsparkSession"):
        return None
    return spark.sparkContext.getLocalProperty(QUERY_ID)


def _query_id(spark: SparkSession, checkpoint: str | None) -> str:
    found = query_id(spark)
    if found is not None:
        return found
    if checkpoint is None:
        raise InvalidOperationError(
            "streaming_batch does not know the id of the query: it is called outside of foreachBatch, or on Spark "
            "Connect. In foreachBatch on Spark Connect, give it the location of the checkpoint, as in "
            'streaming_batch(batch, batch_id, checkpoint="/path/to/checkpoint").',
            error_class="DELTA_STREAMING_QUERY_UNKNOWN",
            sqlstate="55000",
        )
    path = f"{checkpoint.rstrip('/')}/metadata"
    text = "".join(row[0] for row in spark.read.text(path).collect())
    try:
        return str(json.loads(text)["id"])
    except (ValueError, KeyError, TypeError):
        raise InvalidOptionError(
            f"'{path}' is not the metadata of a streaming query. Give the location that the query has as its option "
            "checkpointLocation.",
            error_class="DELTA_STREAMING_QUERY_UNKNOWN",
            checkpoint=checkpoint,
        ) from None
