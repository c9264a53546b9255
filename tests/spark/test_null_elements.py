"""Arrays of Parquet files whose elements are all null, in columns of other types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyspark_delta import Table


@pytest.mark.parametrize(
    ("stored", "column"),
    [
        (pa.list_(pa.int32()), "array<bigint>"),
        (pa.list_(pa.int64()), "array<int>"),
        (pa.list_(pa.list_(pa.int32())), "array<array<decimal(12, 2)>>"),
    ],
)
def test_elements_that_are_all_null_are_appended(
    compiled_spark: SparkSession, tmp_path: Path, stored: pa.ListType, column: str
) -> None:
    value = [[None, None]] if isinstance(stored.value_type, pa.ListType) else [None, None]
    rows = pa.table({"v": pa.array([value, None, value], stored)})
    pq.write_table(rows, tmp_path / "rows.parquet")
    compiled_spark.sql(f"create table delta.`{tmp_path / 't'}` (v {column}) using delta")
    frame = compiled_spark.read.parquet(str(tmp_path / "rows.parquet"))
    frame.write.format("delta").mode("append").save(str(tmp_path / "t"))
    assert Table.open(str(tmp_path / "t")).scan().to_arrow()["v"].to_pylist() == rows["v"].to_pylist()
