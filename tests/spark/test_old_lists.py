"""Lists in lists as old writers store them, without a level for elements: Spark reads them, and Arrow does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType
from tests.hand_made import PLAIN, HandMade, add, field, metadata

from pyspark_delta.errors import DataFileError
from pyspark_delta.table import Table

LISTS = ArrayType(ArrayType(IntegerType()), containsNull=False)


def test_lists_in_lists_of_old_writers_are_read_by_spark_and_told_of_without_it(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = HandMade(tmp_path / "table")
    writer = delta_spark.newSession()
    writer.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    rows = writer.createDataFrame([([[1, None], []],)], StructType([StructField("x", LISTS)])).coalesce(1)
    rows.write.parquet(str(table.path / "data"))
    (file,) = (table.path / "data").glob("*.parquet")
    table.commit(0, PLAIN, metadata(field("x", LISTS.jsonValue())), add(f"data/{file.name}", file.stat().st_size))
    with pytest.raises(DataFileError, match=r"form of Parquet that Arrow does not read.*Spark does"):
        Table.open(table.path).scan().to_arrow()
    assert delta_spark.read.format("delta").load(str(table.path)).collect() == [([[1, None], []],)]
