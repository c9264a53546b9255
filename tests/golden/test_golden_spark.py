"""The golden tables through Spark: Catalyst scan, public scan and Python Data Source give equal rows.

Each table is read by the first two. The Python Data Source reads as `Table.scan`, and Spark Connect as the public scan,
which read them all: at the usual length they read those that have something new.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.golden.catalogue import (
    REFUSED,
    GoldenTable,
    assert_content,
    golden_tables,
    parametrize,
    that_add_something,
    unreadable,
)
from tests.lengths import FULL

from pyspark_delta.errors import DeltaError
from pyspark_delta.scan.file_source import file_source
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.public_scan import data_frame, frame_can_read
from pyspark_delta.spark.frames.relation_columns import FIELD_ID_SETTINGS

# At the full length, one earlier version of each table is travelled to on Spark; Table.scan reads them all.
TRAVELLED = [
    table
    for table in golden_tables()
    if table.kind == "table"
    and table.id not in REFUSED
    and any(not unreadable(version) for version in table.expected.get("versions", {}).values())
]
travelled = pytest.mark.parametrize("table", TRAVELLED, ids=lambda t: t.id)
# All ways share the planner and the log reader with Table.scan: a sample shows that they ask for the version.
sampled = pytest.mark.parametrize("table", TRAVELLED[::5], ids=lambda t: t.id)


def earlier(table: GoldenTable) -> tuple[int, dict[str, Any]]:
    """The newest readable version before the latest one, and what it holds."""
    found = {int(n): version for n, version in table.expected["versions"].items() if not unreadable(version)}
    version = max((n for n in found if n < table.expected["latest_version"]), default=max(found))
    return version, found[version]


@pytest.fixture(scope="module")
def spark_by_ids(spark: SparkSession) -> SparkSession:
    """A session that looks for columns by field id, without which the public scan leaves such tables alone."""
    session = spark.newSession()
    for name in FIELD_ID_SETTINGS:
        session.conf.set(name, "true")
    return session


def rows_of(frame: DataFrame, folder: Path) -> pa.Table:
    """The rows of a frame; by way of a file where PySpark cannot convert null variants to Arrow."""
    if "variant" not in frame.schema.simpleString():
        return frame.toArrow()
    frame.sparkSession.conf.set("spark.sql.variant.writeShredding.enabled", "false")
    frame.coalesce(1).write.parquet(str(folder / "rows"))
    (part,) = (folder / "rows").glob("part-*")
    return pq.read_table(part)


def plan_of(frame: DataFrame) -> str:
    """The physical plan without the numbers of its expressions."""
    return re.sub(r"#\d+L?", "", frame._jdf.queryExecution().executedPlan().toString())


@parametrize("table")
def test_catalyst_scan(compiled_spark: SparkSession, table: GoldenTable, tmp_path: Path) -> None:
    """In SQL, which plans the same scan as the reader."""
    frame = compiled_spark.sql(f"SELECT * FROM delta.`{table.path}`")
    read = compiled_spark.read.format("delta").load(str(table.path))
    assert plan_of(frame) == plan_of(read)
    assert_content(rows_of(frame, tmp_path), table.expected)


@parametrize("table")
def test_data_frame_scan(spark_by_ids: SparkSession, table: GoldenTable, tmp_path: Path) -> None:
    snapshot = Snapshot.load(str(table.path))
    assert frame_can_read(spark_by_ids, file_source(snapshot), snapshot.files(columns=("path",)))
    assert_content(rows_of(data_frame(spark_by_ids, snapshot), tmp_path), table.expected)


@parametrize("table", only=that_add_something())
def test_python_data_source(plain_spark: SparkSession, table: GoldenTable, tmp_path: Path) -> None:
    frame = plain_spark.read.format("delta").load(str(table.path))
    assert_content(rows_of(frame, tmp_path), table.expected)


@parametrize("table", only=that_add_something())
def test_connect_scan(delta_connect: SparkSession, table: GoldenTable, tmp_path: Path) -> None:
    frame = delta_connect.read.format("delta").load(str(table.path))
    assert_content(rows_of(frame, tmp_path), table.expected)


@travelled if FULL else sampled
def test_catalyst_scan_travels(delta_spark: SparkSession, table: GoldenTable, tmp_path: Path) -> None:
    version, expected = next((v, e) for v, e in table.expected["versions"].items() if not unreadable(e))
    frame = delta_spark.sql(f"SELECT * FROM delta.`{table.path}` VERSION AS OF {version}")
    assert_content(rows_of(frame, tmp_path), expected)


@sampled
def test_data_frame_scan_travels(spark_by_ids: SparkSession, table: GoldenTable, tmp_path: Path) -> None:
    version, expected = earlier(table)
    frame = data_frame(spark_by_ids, Snapshot.load(str(table.path), version=version))
    assert_content(rows_of(frame, tmp_path), expected)


@sampled
def test_python_data_source_travels(plain_spark: SparkSession, table: GoldenTable, tmp_path: Path) -> None:
    version, expected = earlier(table)
    frame = plain_spark.read.format("delta").option("versionAsOf", version).load(str(table.path))
    assert_content(rows_of(frame, tmp_path), expected)


@sampled
def test_connect_scan_travels(delta_connect: SparkSession, table: GoldenTable, tmp_path: Path) -> None:
    version, expected = earlier(table)
    frame = delta_connect.read.format("delta").option("versionAsOf", version).load(str(table.path))
    assert_content(rows_of(frame, tmp_path), expected)


@pytest.mark.filterwarnings("ignore::pyspark_delta.errors.DeltaWarning")  # an older checkpoint is tried first
@parametrize("error")
def test_catalyst_scan_refuses_what_must_fail(delta_spark: SparkSession, table: GoldenTable) -> None:
    with pytest.raises(DeltaError):
        delta_spark.read.format("delta").load(str(table.path)).toArrow()
