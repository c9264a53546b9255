"""Streams that the Python Data Source writes, without `enable`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.streams import LIMIT, Source, ids, numbers, run, transactions

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError, translate
from pyspark_delta.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.since("4.1")]  # 4.0 gives a writer rows alone, and is refused


def writer(frame: DataFrame, checkpoint: Path, **options: object) -> Any:
    made = frame.writeStream.format("delta").trigger(availableNow=True)
    return made.options(checkpointLocation=str(checkpoint), **options)  # type: ignore[arg-type]


def test_c180_each_batch_is_written_once(plain_spark: SparkSession, tmp_path: Path) -> None:
    source, path, checkpoint = Source(plain_spark, tmp_path), str(tmp_path / "table"), tmp_path / "checkpoint"
    query = run(writer(source.stream(), checkpoint, userMetadata="u").start(path))
    assert ids(path) == source.ids
    assert transactions(path) == {query.id: 1}
    newest = Table.open(path).history()[0]
    assert (newest["operation"], newest["userMetadata"]) == ("STREAMING UPDATE", "u")
    assert newest["operationParameters"]["epochId"] == "1"

    (checkpoint / "commits" / "1").unlink()  # as if the driver had stopped before Spark's commit
    (checkpoint / "commits" / ".1.crc").unlink()
    source.add()
    run(writer(source.stream(), checkpoint).start(path))
    assert numbers(checkpoint / "commits") == [0, 1, 2]
    assert ids(path) == source.ids
    assert Table.open(path).version == 3


def test_a_batch_is_not_skipped_for_one_with_other_rows(plain_spark: SparkSession, tmp_path: Path) -> None:
    source, path, checkpoint = Source(plain_spark, tmp_path, files=1), str(tmp_path / "table"), tmp_path / "checkpoint"
    run(writer(source.stream(), checkpoint).start(path))
    shutil.copytree(checkpoint, tmp_path / "backup")
    source.add()
    run(writer(source.stream(), checkpoint).start(path))
    shutil.rmtree(checkpoint)
    shutil.copytree(tmp_path / "backup", checkpoint)
    source.add()
    with pytest.raises(StreamingQueryException, match="DELTA_STREAMING_BATCH_DIFFERS"):
        run(writer(source.stream(), checkpoint).start(path))
    assert ids(path) == source.ids[:20]


def test_complete_mode_replaces_all_rows(plain_spark: SparkSession, tmp_path: Path) -> None:
    source, path = Source(plain_spark, tmp_path), str(tmp_path / "table")
    counts = source.stream("id % 3 AS id").groupBy("id").count()
    run(writer(counts, tmp_path / "checkpoint").outputMode("complete").start(path))
    found = Table.open(path).scan().to_arrow().to_pylist()
    assert {row["id"]: row["count"] for row in found} == {0: 7, 1: 7, 2: 6}


def test_a_query_goes_on_when_its_table_changes(plain_spark: SparkSession, tmp_path: Path) -> None:
    source, path = Source(plain_spark, tmp_path), str(tmp_path / "table")
    query = source.stream().writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c")).start(path)
    try:
        query.processAllAvailable()
        Table.open(path).alter().add_column("n", "INT")
        source.add()
        query.processAllAvailable()
        assert ids(path) == source.ids
        Table.open(path).alter().add_constraint("small", f"id < {source.files * 10}")
        source.add()
        with pytest.raises(StreamingQueryException, match="small"):
            query.processAllAvailable()
    finally:
        query.stop()


def test_tasks_apply_the_rules_of_a_table(plain_spark: SparkSession, tmp_path: Path) -> None:
    source, path = Source(plain_spark, tmp_path), str(tmp_path / "table")
    table = Table.create(path, "id BIGINT, half BIGINT GENERATED ALWAYS AS (id + 1), kind STRING DEFAULT 'new'")
    table.alter().add_constraint("small", "id < 25")
    run(writer(source.stream(), tmp_path / "c").start(path))
    found = Table.open(path).scan().to_arrow().to_pylist()
    expected = [{"id": n, "half": n + 1, "kind": "new"} for n in range(20)]
    assert sorted(found, key=lambda row: row["id"]) == expected
    rows = plain_spark.range(20, 25).write.format("delta").mode("append")
    rows.save(path)
    source.add()
    with pytest.raises(StreamingQueryException, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        run(writer(source.stream(), tmp_path / "c").start(path))
    assert Table.open(path).scan().to_arrow().num_rows == 25

    numbered = str(tmp_path / "numbered")
    Table.create(numbered, "id BIGINT, n BIGINT GENERATED ALWAYS AS IDENTITY")
    local = str(tmp_path / "local")
    Table.create(local, "id BIGINT, t TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(t AS DATE))")
    for target, columns, why in ((numbered, ["id"], "identity column 'n'"), (local, ["id", "t"], "time zone")):
        frame = source.stream(*(["id"] if columns == ["id"] else ["id", "timestamp_seconds(id) AS t"]))
        with pytest.raises(InvalidOperationError, match=why), translate():
            writer(frame, tmp_path / why).start(target).awaitTermination(LIMIT)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"replaceWhere": "id = 1"}, "(?i)replaceWhere"), ({"mergeShema": "true"}, "Did you mean 'mergeSchema'")],
)
def test_options_are_checked(plain_spark: SparkSession, tmp_path: Path, options: dict[str, str], message: str) -> None:
    source = Source(plain_spark, tmp_path)
    with pytest.raises(InvalidOptionError, match=message), translate():
        writer(source.stream(), tmp_path / "c", **options).start(str(tmp_path / "table")).awaitTermination(LIMIT)
    assert not (tmp_path / "table").exists()
