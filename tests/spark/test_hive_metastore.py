"""Tables of a session whose catalog is Hive's metastore, with Derby: what one process makes, the next one reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.table import Table

_SESSION = """
import json, sys
from pyspark.sql import SparkSession
from pyspark_delta import enable

folder = sys.argv[1]
settings = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.warehouse.dir": f"{folder}/warehouse",
    "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
}
builder = SparkSession.builder.master("local[1]").enableHiveSupport()
for name, value in settings.items():
    builder = builder.config(name, value)
spark = enable(builder.getOrCreate())
found = [[list(row) for row in spark.sql(statement).collect()] for statement in json.loads(sys.argv[2])]
print(json.dumps(found))
spark.stop()
"""


@pytest.mark.spark
def test_tables_and_views_are_there_in_the_next_process(tmp_path: Path) -> None:
    made = run(
        tmp_path,
        "CREATE TABLE t (id BIGINT NOT NULL, p STRING) USING delta PARTITIONED BY (p)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE u USING delta AS SELECT id + 10 AS id FROM t",
        "CREATE VIEW v AS SELECT t.id, u.id AS more FROM t JOIN u ON u.id = t.id + 10 WHERE p = 'b'",
        "UPDATE t SET id = 3 WHERE id = 1",
        "SELECT * FROM t ORDER BY id",
    )
    assert made[-1] == [[2, "b"], [3, "a"]]
    location = str(tmp_path / "warehouse" / "t")
    assert Table.open(location).version == 2
    found = run(
        tmp_path, "INSERT INTO t VALUES (2, 'b')", "SELECT * FROM v", "DROP VIEW v", "DROP TABLE t", "SHOW TABLES"
    )
    assert found[1] == [[2, 12], [2, 12]]
    assert [row[1] for row in found[-1]] == ["u"]
    assert not Path(location).exists()


def run(folder: Path, *statements: str) -> Any:
    """Run statements in a process of their own, and return the rows of each."""
    done = subprocess.run(
        [sys.executable, "-c", _SESSION, str(folder), json.dumps(statements)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
