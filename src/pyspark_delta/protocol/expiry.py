"""Expiry of application transactions (`delta.setTransactionRetentionDuration`)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.protocol.properties import SET_TRANSACTION_RETENTION


def unexpired(
    transactions: Mapping[str, SetTransaction], properties: Mapping[str, str], now: int
) -> dict[str, SetTransaction]:
    """Return the transactions that are valid at `now`, in ms since the epoch: all if the property is not set.

    A transaction without a time never expires, as in delta-spark.
    """
    retention = SET_TRANSACTION_RETENTION.of(properties)
    if retention is None:
        return dict(transactions)
    oldest = now - retention // timedelta(milliseconds=1)
    return {
        app_id: transaction
        for app_id, transaction in transactions.items()
        if transaction.last_updated is None or transaction.last_updated > oldest
    }
