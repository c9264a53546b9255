"""Tables whose columns are mapped, or of types that need a feature: delta-spark reads and writes ours, we write its."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.interop.conftest import DeltaSparkServer
from tests.interop.content import content

from pyspark_delta.table import Table

ROWS = """select id, concat('v', id) as `a text`, named_struct('x y', id, 'deep', array(named_struct('z', id))) as s,
    map(concat('k', id), array(id, null)) as m, id % 2 as p from range({0}, {1})"""
PLAIN = """select id, concat('v', id) as name, named_struct('x', cast(id as decimal(9,2)), 'y', id) as s, id % 2 as p
    from range({0}, {1})"""
TIMES = """select id, timestamp_ntz'2024-01-31 12:34:56.123456' as t, array(timestamp_ntz'1969-12-31 23:59:59') as l,
    case when id % 2 = 0 then timestamp_ntz'2020-02-29 00:00:00' end as p from range({0}, {1})"""

# Rows, and the properties of the table.
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "mapped by name": (ROWS, {"delta.columnMapping.mode": "name"}),
    "mapped by id": (ROWS, {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"}),
    "iceberg 1": (PLAIN, {"delta.enableIcebergCompatV1": "true"}),
    "iceberg 2": (ROWS, {"delta.enableIcebergCompatV2": "true"}),
    "iceberg 3": (ROWS, {"delta.enableIcebergCompatV3": "true"}),
    "materialized": (
        ROWS,
        {"delta.columnMapping.mode": "name", "delta.feature.materializePartitionColumns": "supported"},
    ),
    "times": (TIMES, {}),
}


def write(spark: SparkSession, select: str, path: Path, mode: str, **options: str) -> None:
    """Write the rows of a query, partitioned by its last column."""
    spark.sql(select).write.format("delta").mode(mode).options(**options).partitionBy("p").save(str(path))


def read_here(path: Path) -> pa.Table:
    """The rows as this package reads them without Spark."""
    return Table.open(path).scan().to_arrow()


def same_rows(path: Path, server: DeltaSparkServer) -> None:
    """Both read the same."""
    assert content(server.read(path)) == content(read_here(path))


@pytest.mark.parametrize("name", TABLES)
def test_delta_spark_reads_and_writes_ours(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path, name: str
) -> None:
    select, properties = TABLES[name]
    path = tmp_path / "ours"
    write(our_spark, select.format(0, 10), path, "error", **properties)
    same_rows(path, delta_spark_server)
    delta_spark_server.ask("append", path=str(path), select=select.format(10, 15))
    write(our_spark, select.format(20, 23), path, "append")
    delta_spark_server.sql(f"delete from delta.`{path}` where id = 3")
    assert sorted(read_here(path)["id"].to_pylist()) == [0, 1, 2, *range(4, 15), 20, 21, 22]
    same_rows(path, delta_spark_server)


@pytest.mark.parametrize("name", ["mapped by name", "iceberg 2"])
def test_we_write_to_those_of_delta_spark(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path, name: str
) -> None:
    select, properties = TABLES[name]
    path = tmp_path / "theirs"
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    delta_spark_server.sql(
        f"create table delta.`{path}` using delta partitioned by (p) "
        f"{f'tblproperties ({listed})' if listed else ''} as {select.format(0, 10)}"
    )
    write(our_spark, select.format(10, 20), path, "append")
    assert sorted(read_here(path)["id"].to_pylist()) == list(range(20))
    same_rows(path, delta_spark_server)
    if name.startswith("mapped"):
        delta_spark_server.sql(f"alter table delta.`{path}` rename column `a text` to renamed")
        write(our_spark, select.format(20, 21).replace("`a text`", "renamed"), path, "append")
        same_rows(path, delta_spark_server)
