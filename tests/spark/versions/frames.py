"""What the tests of versions ask of frames and tables."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from pyspark_delta.snapshot import Snapshot


def load(spark: SparkSession, path: str, **options: object) -> DataFrame:
    return spark.read.format("delta").options(**options).load(path)  # type: ignore[arg-type]


def deletion_vectors(path: str) -> int:
    vectors = Snapshot.load(path).files(("deletion_vector",))["deletion_vector"]
    return len(vectors) - vectors.null_count


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]
