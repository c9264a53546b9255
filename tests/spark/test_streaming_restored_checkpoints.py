"""Checkpoints that are older than the table that their query writes: Spark uses numbers of batches again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.spark.streams import Source, ids, run, transactions, writer

from pyspark_delta import DeltaWarning, StreamDataLossError, Table
from pyspark_delta.streaming.checkpoint import planned_batch

pytestmark = pytest.mark.spark


class Query:
    """A query that copies rows, and the backup of its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, limit: int | None) -> None:
        """With a limit of files for each batch, the source is a table; without, it is a folder of Parquet files."""
        self.spark, self.limit, self.source = spark, limit, Source(spark, folder, files=1)
        self.path, self.checkpoint, self.backup = folder / "t", folder / "c", folder / "backup"
        self.table = str(folder / "table")
        self._copy()

    def add(self) -> None:
        """Add ten rows to the source."""
        self.source.add()
        self._copy()

    def _copy(self) -> None:
        end = self.source.files * 10
        self.spark.range(end - 10, end, 1, 1).write.format("delta").mode("append").save(self.table)

    def run(self) -> None:
        """Copy everything that is available."""
        if self.limit is None:
            stream = self.source.stream()
        else:
            stream = self.spark.readStream.format("delta").option("maxFilesPerTrigger", self.limit).load(self.table)
        run(writer(stream, self.checkpoint).start(str(self.path)))

    def restore(self) -> None:
        """Use the checkpoint of the backup again."""
        shutil.rmtree(self.checkpoint)
        shutil.copytree(self.backup, self.checkpoint)


@pytest.mark.parametrize(("limit", "behind"), [(None, 1), (1000, 2)], ids=["files", "table"])
def test_c180_a_batch_is_not_skipped_for_one_with_other_rows(
    delta_spark: SparkSession, tmp_path: Path, limit: int | None, behind: int
) -> None:
    query = Query(delta_spark, tmp_path, limit)
    query.run()
    shutil.copytree(query.checkpoint, query.backup)
    for _ in range(behind):
        query.add()
        query.run()
    query.restore()
    query.add()
    copied = ids(query.path)
    with pytest.raises(StreamingQueryException, match="DELTA_STREAMING_BATCH_DIFFERS") as caught:
        query.run()
    error = caught.value.__cause__
    assert isinstance(error, StreamDataLossError)
    assert (error.facts["batch"], error.facts["latest"]) == (1, behind)
    assert ids(query.path) == copied


def test_c180_batches_with_the_same_rows_are_skipped(delta_spark: SparkSession, tmp_path: Path) -> None:
    query = Query(delta_spark, tmp_path, limit=1)
    query.run()
    shutil.copytree(query.checkpoint, query.backup)
    for _ in range(2):
        query.add()
        query.run()
    query.restore()
    query.add()
    query.run()
    assert ids(query.path) == query.source.ids
    assert list(transactions(query.path).values()) == [3]
    assert Table.open(str(query.path)).version == 3


def test_skipped_upserts_are_named(delta_spark: SparkSession, tmp_path: Path) -> None:
    query = Query(delta_spark, tmp_path, limit=None)

    def upsert() -> None:
        upserts = writer(query.source.stream(), query.checkpoint, keys="id").outputMode("update")
        run(upserts.start(str(query.path)))

    upsert()
    shutil.copytree(query.checkpoint, query.backup)
    for _ in range(2):
        query.source.add()
        upsert()
    query.restore()
    with pytest.warns(DeltaWarning, match="Batch 1 .* is skipped, because .* up to 2"):
        upsert()


@pytest.mark.parametrize("limit", [None, 1], ids=["files", "table"])
def test_the_data_source_without_enable_identifies_batches_alike(
    delta_spark: SparkSession, tmp_path: Path, limit: int | None
) -> None:
    query = Query(delta_spark, tmp_path, limit)
    query.run()
    commit = (query.path / "_delta_log" / f"{0:020}.json").read_text().splitlines()[0]
    assert json.loads(commit)["commitInfo"]["tags"]["batchPlan"] == planned_batch(str(query.checkpoint), 0)
