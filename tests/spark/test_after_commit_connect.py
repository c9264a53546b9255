"""The server of Spark Connect is gone when a change is committed: the change is done, and the caller learns that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors.exceptions.connect import SparkConnectException
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta import DeltaTable, Table, enable
from pyspark_delta.errors import DeltaWarning

pytestmark = pytest.mark.connect


class _Closing(logging.Handler):
    """Closes the connection of a session when a commit is logged."""

    def __init__(self, session: Any) -> None:
        super().__init__(logging.INFO)
        self._session = session

    def emit(self, record: logging.LogRecord) -> None:
        if " as version 1 of " in record.getMessage():
            self._session.client.close()


@pytest.fixture
def lost(plain_connect: Any) -> Iterator[SparkSession]:
    """An enabled session of its own, whose connection ends with its first commit."""
    session = enable(type(plain_connect)(f"sc://{plain_connect.client._builder.endpoint}"))
    log, handler = logging.getLogger("pyspark_delta"), _Closing(session)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield session
    log.setLevel(level)
    log.removeHandler(handler)


def _append(spark: SparkSession, path: str) -> None:
    spark.range(1).write.format("delta").mode("append").save(path)


def _insert(spark: SparkSession, path: str) -> None:
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (7)")


def _transaction(spark: SparkSession, path: str) -> None:
    with DeltaTable.forPath(spark, path).transaction() as changes:
        changes.append(spark.range(1))


@pytest.mark.parametrize("change", [_append, _insert, _transaction])
def test_a_committed_write_is_no_error(
    lost: SparkSession, tmp_path: Path, change: Callable[[SparkSession, str], None]
) -> None:
    path = str(tmp_path / "t")
    Table.write(path, [{"id": 1}])
    change(lost, path)
    assert Table.open(path).version == 1
    with pytest.raises(SparkConnectException, match="NO_ACTIVE_SESSION"):
        lost.range(1).collect()


def _update(spark: SparkSession, path: str) -> DataFrame:
    return DeltaTable.forPath(spark, path).update(set={"id": "id + 1"})


def _delete(spark: SparkSession, path: str) -> DataFrame:
    """The subquery is a temporary view while the statement runs."""
    return spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (SELECT id FROM delta.`{path}`)")


def _commit(spark: SparkSession, path: str) -> DataFrame:
    for statement in ("BEGIN TRANSACTION", f"INSERT INTO delta.`{path}` VALUES (7)"):
        spark.sql(statement)
    return spark.sql("COMMIT")


@pytest.mark.parametrize("change", [_update, _delete, _commit])
def test_a_committed_statement_is_no_error(
    lost: SparkSession, tmp_path: Path, change: Callable[[SparkSession, str], DataFrame]
) -> None:
    path = str(tmp_path / "t")
    Table.write(path, [{"id": 1}])
    with pytest.warns(DeltaWarning, match="The table is changed, but Spark cannot return its counts: .* Do not repeat"):
        counts = change(lost, path)
    assert Table.open(path).version == 1
    with pytest.raises(SparkConnectException, match="NO_ACTIVE_SESSION"):
        counts.collect()


def test_a_transaction_version_that_stays_set_is_named(lost: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.write(path, [{"id": 1}])
    settings = {"txnAppId": "a", "txnVersion": "1", "txnVersion.autoReset.enabled": "true"}
    for name, value in settings.items():
        lost.conf.set(f"spark.databricks.delta.write.{name}", value)
    with pytest.warns(DeltaWarning, match=r"write.txnVersion could not be unset: .* Unset spark.*txnVersion: writes"):
        _append(lost, path)
    assert Table.open(path).version == 1
