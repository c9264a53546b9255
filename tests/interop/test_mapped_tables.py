"""A table whose columns are mapped, and change their names, written by delta-spark and by Spark here in turns.

Which features peers read, and that rows can be appended to what delta-spark made, is in `test_feature_matrix.py`.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.interop.conftest import DeltaSparkServer
from tests.interop.content import content

from pyspark_delta.table import Table

ROWS = """select id, concat('v', id) as `a text`, named_struct('x y', id, 'deep', array(named_struct('z', id))) as s,
    map(concat('k', id), array(id, null)) as m, id % 2 as p from range({0}, {1}, 1, 1)"""


def test_delta_spark_and_this_package_write_a_mapped_table_by_turns(
    our_spark: SparkSession, delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    path = tmp_path / "ours"

    def append(select: str, **options: str) -> None:
        our_spark.sql(select).write.format("delta").mode("append").options(**options).partitionBy("p").save(str(path))

    append(ROWS.format(0, 10), **{"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"})
    delta_spark_server.ask("append", path=str(path), select=ROWS.format(10, 15))
    append(ROWS.format(20, 23))
    delta_spark_server.sql(
        f"delete from delta.`{path}` where id = 3", f"alter table delta.`{path}` rename column `a text` to renamed"
    )
    append(ROWS.format(30, 31).replace("`a text`", "renamed"))
    found = Table.open(path).scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == [0, 1, 2, *range(4, 15), 20, 21, 22, 30]
    assert content(delta_spark_server.read(path)) == content(found)
