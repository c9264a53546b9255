"""Row ids that we give to the files of a table of delta-spark's, as delta-spark reads and keeps them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.interop.conftest import DeltaSparkServer

from pyspark_delta import DeltaTable, Table

ROW_IDS = {"row_id": "_metadata.row_id", "version": "_metadata.row_commit_version"}


def test_c323_c325_c336_delta_spark_reads_and_keeps_the_ids_we_gave(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    delta_spark_server.sql(
        f"create table delta.`{path}` (id long, p string) using delta partitioned by (p) "
        "tblproperties ('delta.enableDeletionVectors' = 'true')",
        f"insert into delta.`{path}` select /*+ coalesce(1) */ id, 'a' from range(10)",
        f"insert into delta.`{path}` select /*+ coalesce(1) */ id + 10, 'b' from range(10)",
        f"delete from delta.`{path}` where id = 3",
    )
    DeltaTable.forPath(our_spark, str(path)).alter().setProperties({"delta.enableRowTracking": True})
    operations = [commit["operation"] for commit in Table.open(path).history(3)]
    assert operations == ["SET TBLPROPERTIES", "ROW TRACKING BACKFILL", "UPGRADE PROTOCOL"]
    theirs = delta_spark_server.read(path, texts=ROW_IDS)
    rows = our_spark.read.format("delta").option("includeRowTracking", True).load(str(path)).collect()
    ours = {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in rows}
    assert _numbers(theirs) == ours
    assert len({row_id for row_id, _ in ours.values()}) == len(ours) == 19
    assert {version for _, version in ours.values()} == {5}
    delta_spark_server.sql(
        f"update delta.`{path}` set id = id + 100 where id = 12",
        f"insert into delta.`{path}` select /*+ coalesce(1) */ 20, 'a'",
    )
    later = _numbers(delta_spark_server.read(path, texts=ROW_IDS))
    assert later[112] == (ours[12][0], 7)
    assert later[20] == (21, 8)  # the row that was updated is in a new file, which took an id that it does not use
    assert all(later[i] == ours[i] for i in ours if i != 12)


def _numbers(rows: object) -> dict[int, tuple[int, int]]:
    return {row["id"]: (row["row_id"], row["version"]) for row in rows.to_pylist()}  # type: ignore[attr-defined]
