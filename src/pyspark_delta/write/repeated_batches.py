"""Micro-batches that a table holds already: repeated ones are skipped, others with their number must not be.

Spark numbers the batches of a query by its checkpoint. With a checkpoint that was restored from a backup, it uses
numbers again, for other rows than those that the table has.
"""

from __future__ import annotations

import warnings
from typing import Any

from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.errors import DeltaWarning, StreamDataLossError
from pyspark_delta.log.history import infos_newest_first
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.write.engine import StreamBatch
from pyspark_delta.write.provenance import BATCH_PLAN


def check_repeated(snapshot: Snapshot, batch: StreamBatch) -> None:
    """Check that a batch, whose transaction the table holds, is the one that was committed.

    Raises StreamDataLossError if the batch has other rows. Warns if that is unknown and the table has later batches:
    Spark repeats only the last one.
    """
    plan = None if batch.plan is None else _committed_plan(snapshot, batch)
    latest = snapshot.transactions()[batch.query_id].version
    if plan is not None:
        if plan != batch.plan:
            raise StreamDataLossError(
                f"The query {batch.query_id} has planned batch {batch.number} with other rows than those that "
                f"'{snapshot.location}' has from its batch {batch.number}; the latest batch in the table is {latest}. "
                "The checkpoint was probably restored from a backup. Nothing was written. Restore the checkpoint as it "
                f"was after batch {latest}. Or use a new checkpoint, and let the source begin after the rows that the "
                "table has.",
                error_class="DELTA_STREAMING_BATCH_DIFFERS",
                sqlstate="55000",
                location=snapshot.location,
                query=batch.query_id,
                batch=batch.number,
                latest=latest,
            )
    elif latest > batch.number:
        warnings.warn(
            f"Batch {batch.number} of the query {batch.query_id} is skipped, because '{snapshot.location}' has its "
            f"batches up to {latest}. If its checkpoint was restored from a backup, rows that the source has got since "
            "may be missing in the table.",
            DeltaWarning,
            stacklevel=2,
        )


def _committed_plan(snapshot: Snapshot, batch: StreamBatch) -> str | None:
    """Return `StreamBatch.plan` of the committed batch; None if its commit does not tell it, or is gone."""
    committed = next((info for info in infos_newest_first(snapshot) if _is_of(info, batch)), None)
    return None if committed is None else _member(committed, "tags").get(BATCH_PLAN)


def _is_of(info: CommitInfo, batch: StreamBatch) -> bool:
    """Return True for the commit that has written a batch."""
    parameters = _member(info, "operationParameters")
    return (parameters.get("queryId"), str(parameters.get("epochId"))) == (batch.query_id, str(batch.number))


def _member(info: CommitInfo, name: str) -> dict[str, Any]:
    found = info.values.get(name)
    return found if isinstance(found, dict) else {}
