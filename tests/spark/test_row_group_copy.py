"""Copied row groups as Spark reads them: by its vectorized reader, by rows, and with filters that skip row groups."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.rows_of_all_types import COLUMNS, make, rows

from pyspark_delta.data.row_group_rules import LargeRowGroups
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize

VECTORIZED = "spark.sql.parquet.enableVectorizedReader"
FILTERS = ("id >= 0", "id between 5100 and 5200", "s = 'name 3'", "day < date'1961-01-01'", "d > 1e6", "y = -0.007")


def test_both_readers_read_copied_row_groups(delta_spark: SparkSession, tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
    table = make(tmp_path / "t", rows(0, 900), rows(2000, 3), rows(5000, 700), columns=COLUMNS, **properties)
    table.delete("id in (7, 5150)")

    def found() -> dict[tuple[str, str], list[str]]:
        answers = {}
        for reader in ("true", "false"):
            delta_spark.conf.set(VECTORIZED, reader)
            frame = delta_spark.read.format("delta").load(table.location)
            for condition in FILTERS:
                answers[reader, condition] = sorted(map(str, frame.where(condition).collect()))
        return answers

    try:
        before = found()
        large = LargeRowGroups(1 << 60, 100)
        plan_optimize(table.refresh().snapshot, OptimizeRequest(copying=large)).execute()
        (path,) = table.refresh().snapshot.files(("path",))["path"].to_pylist()
        assert pq.read_metadata(Path(table.location, path)).num_row_groups == 3
        assert found() == before
    finally:
        delta_spark.conf.unset(VECTORIZED)
    names = pq.read_schema(Path(table.location, path)).names
    assert [name[:7] for name in names[-2:]] == ["_row-id", "_row-co"]  # columns of Arrow in copied row groups
    assert len(before["true", FILTERS[0]]) == 1601
    assert len(before["true", FILTERS[1]]) == 100
