"""How many messages statements send to the JVM: few, and few for each column. A thousand take a tenth of a second."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_delta import DeltaTable
from pyspark_delta.spark.engine.write.save import save

pytestmark = pytest.mark.spark
_NARROW, _WIDE = 5, 45


class Messages:
    """Counts the messages of one session."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self._client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
        self._monkeypatch = monkeypatch

    def of(self, run: Callable[[], object]) -> int:
        """Return how many messages a call sends when it runs for the second time."""
        sent, send = 0, self._client.send_command

        def counted(command: str, *args: Any, **more: Any) -> Any:
            nonlocal sent
            sent += not command.startswith("m\nd")  # which tells the JVM that an object of Python is gone
            return send(command, *args, **more)

        run()
        with self._monkeypatch.context() as patch:
            patch.setattr(self._client, "send_command", counted)
            run()
        return sent


@pytest.fixture
def messages(delta_spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Messages:
    return Messages(delta_spark, monkeypatch)


def rows(spark: SparkSession, columns: int, count: int = 10, offset: int = 0) -> DataFrame:
    return spark.range(offset, offset + count).selectExpr("id", *(f"id + {i} AS c{i}" for i in range(columns)))


def test_an_append_sends_few_messages(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)  # so that a write must find out which Python workers run
    messages, narrow, wide = Messages(spark, monkeypatch), rows(spark, _NARROW), rows(spark, _WIDE)
    few = messages.of(lambda: save(narrow, str(tmp_path / "narrow"), "append"))
    many = messages.of(lambda: save(wide, str(tmp_path / "wide"), "append"))
    assert few <= 110
    assert (many - few) / (_WIDE - _NARROW) <= 4


def insert_of_one_column(spark: SparkSession, location: str, columns: int) -> None:
    spark.sql(f"INSERT INTO delta.`{location}` (id, c1) VALUES (1, 2)")


def update_by_spark(spark: SparkSession, location: str, columns: int) -> None:
    spark.sql(f"UPDATE delta.`{location}` SET c1 = cast(c2 * sin(id) AS BIGINT) WHERE id > 3")


def overwrite_by_condition(spark: SparkSession, location: str, columns: int) -> None:
    rows(spark, columns).write.format("delta").mode("overwrite").option("replaceWhere", "id < 10").save(location)


def merge_of_a_small_source(spark: SparkSession, location: str, columns: int) -> None:
    merge = DeltaTable.forPath(spark, location).alias("t").merge(rows(spark, columns, 5, 8).alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def merge_by_a_join(spark: SparkSession, location: str, columns: int) -> None:
    large = rows(spark, columns, 3_000_000).where("id % 600000 = 7").alias("s")
    merge = DeltaTable.forPath(spark, location).alias("t").merge(large, "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"c1": "s.c1 + t.c2"}).whenNotMatchedInsertAll()
    merge.whenNotMatchedBySourceDelete("t.id < 0").execute()


@pytest.mark.parametrize(
    ("statement", "most"),
    [
        (insert_of_one_column, 6),
        (update_by_spark, 12),
        (overwrite_by_condition, 12),
        (merge_of_a_small_source, 6),
        (merge_by_a_join, 35),
    ],
)
def test_a_statement_sends_few_messages_for_each_column(
    delta_spark: SparkSession,
    messages: Messages,
    tmp_path: Path,
    statement: Callable[[SparkSession, str, int], None],
    most: float,
) -> None:
    sent = []
    for columns in (_NARROW, _WIDE):
        location = str(tmp_path / str(columns))
        rows(delta_spark, columns).write.format("delta").save(location)
        sent.append(messages.of(partial(statement, delta_spark, location, columns)))
    assert (sent[1] - sent[0]) / (_WIDE - _NARROW) <= most


@pytest.mark.since("4.0")  # 3.5 builds Columns with more messages
def test_a_merge_by_text_sends_few_more_messages_than_by_methods(
    delta_spark: SparkSession, messages: Messages, tmp_path: Path
) -> None:
    location = str(tmp_path / "t")
    rows(delta_spark, 2).write.format("delta").save(location)
    source = rows(delta_spark, 2, 5, 8)
    source.createOrReplaceTempView("merge_source")
    target = DeltaTable.forPath(delta_spark, location)
    by_methods = messages.of(
        lambda: (
            target.alias("t")
            .merge(source.alias("s"), "t.id = s.id")
            .whenMatchedUpdate(set={"c1": "s.c1"})
            .whenNotMatchedInsertAll()
            .execute()
        )
    )
    by_text = messages.of(
        lambda: delta_spark.sql(
            f"MERGE INTO delta.`{location}` t USING merge_source s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET c1 = s.c1 WHEN NOT MATCHED THEN INSERT *"
        )
    )
    assert by_methods <= 200
    assert by_text - by_methods <= 75
