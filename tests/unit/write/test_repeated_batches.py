"""Batches of streaming queries that a table holds already: which are the same, and which only have the same number."""

from __future__ import annotations

import warnings

import pytest
from tests.unit.streaming.tables import Log

from pyspark_delta import DeltaWarning, StreamDataLossError
from pyspark_delta.write.engine import StreamBatch
from pyspark_delta.write.repeated_batches import check_repeated


def batch(number: int, plan: str | None) -> StreamBatch:
    """A batch of the query `q`."""
    return StreamBatch("q", number, "Append", plan)


@pytest.fixture
def log() -> Log:
    """A table with the batches 0 to 2 of a query, and one of another query; batch 2 does not tell its rows."""
    log = Log()
    log.create()
    for query, number, tags in (
        ("q", 0, {"batchPlan": "a"}),
        ("q", 1, {"batchPlan": "b"}),
        ("r", 1, {"batchPlan": "x"}),
        ("q", 2, {}),
    ):
        parameters = {"outputMode": "Append", "queryId": query, "epochId": str(number)}
        log.commit({"txn": {"appId": query, "version": number}}, operationParameters=parameters, tags=tags)
    return log


@pytest.mark.parametrize(("number", "plan"), [(0, "a"), (1, "b"), (2, "c"), (2, None)])
def test_c180_repeated_batches_are_accepted(log: Log, number: int, plan: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_repeated(log.snapshot(), batch(number, plan))


def test_c180_a_batch_with_other_rows_is_refused(log: Log) -> None:
    with pytest.raises(StreamDataLossError, match=r"batch 1 with other rows.*latest batch in the table is 2") as caught:
        check_repeated(log.snapshot(), batch(1, "x"))
    assert caught.value.error_class == "DELTA_STREAMING_BATCH_DIFFERS"


def test_an_earlier_batch_whose_rows_are_unknown_is_skipped_with_a_warning(log: Log) -> None:
    log.commit({"txn": {"appId": "q", "version": 3}})
    for found in (batch(2, "c"), batch(1, None)):
        with pytest.warns(DeltaWarning, match="its batches up to 3"):
            check_repeated(log.snapshot(), found)
