"""SQL and delta-spark: a metastore that both use one after the other, and a session with its JAR on the class path."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.interop.conftest import ROOT, DeltaSpark

_SETTINGS = """
import json, sys
from pyspark.sql import SparkSession
from tests.interop.delta_spark_session import FAST, session

folder, statements, jars = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
metastore = {
    "spark.sql.warehouse.dir": f"{folder}/warehouse",
    "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
    "spark.sql.catalogImplementation": "hive",
    "spark.log.level": "OFF",
}
"""
_THEIRS = f"{_SETTINGS}\nspark = session(jars, metastore)"
_OURS = f"""{_SETTINGS}
from pyspark_delta import enable

builder = SparkSession.builder.master("local[1]")
for name, value in {{**FAST, **metastore}}.items():
    builder = builder.config(name, value)
spark = enable(builder.getOrCreate())
"""
_RUN = """
found = [[list(row) for row in spark.sql(statement).collect()] for statement in statements]
print("ANSWER", json.dumps(found, default=str))
spark.stop()
"""
_JAR = """
import json, sys, warnings
from pyspark.sql import SparkSession
from pyspark_delta import DeltaTable, enable

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = builder.config("spark.jars", ",".join(sys.argv[2:])).getOrCreate()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    enable(spark)
path = sys.argv[1] + "/t"
spark.range(3).write.format("delta").save(path)
DeltaTable.forPath(spark, path).delete("id = 0")
engine = DeltaTable.forPath(spark, path).history(1).collect()[0].engineInfo
rows = [sorted(row.id for row in frame.collect()) for frame in (
    DeltaTable.forPath(spark, path).toDF(), spark.read.format("delta").load(path)
)]
parser = spark._jsparkSession.sessionState().sqlParser().getClass().getName()
print("ANSWER", json.dumps([[str(one.message) for one in caught], rows, engine, parser]))
spark.stop()
"""


_SHOWN = ("DESCRIBE EXTENDED", "SHOW TBLPROPERTIES")
DESCRIBED = tuple(f"{words} {name}" for name in ("theirs", "outside", "ours", "checked") for words in _SHOWN)


def answer(peer: DeltaSpark, python: Path | str, script: str, *arguments: str) -> Any:
    """What a script prints that runs in a process of its own."""
    environment = {**peer.environment, "PYSPARK_PYTHON": str(python), "PYTHONPATH": f"{ROOT}/src:{ROOT}"}
    command = [str(python), "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=arguments[0], env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("ANSWER"))[7:])


def test_a_metastore_is_shared(delta_spark_peer: DeltaSpark, tmp_path: Path) -> None:
    def theirs(*statements: str) -> Any:
        jars = map(str, delta_spark_peer.jars)
        return answer(
            delta_spark_peer, delta_spark_peer.python, _THEIRS + _RUN, str(tmp_path), json.dumps(statements), *jars
        )

    theirs(
        "CREATE TABLE theirs (id BIGINT NOT NULL, p STRING COMMENT 'part') USING delta PARTITIONED BY (p)",
        "INSERT INTO theirs VALUES (1, 'a'), (2, 'b')",
        f"CREATE TABLE outside (id BIGINT) USING delta LOCATION '{tmp_path}/outside'",
    )
    ours = answer(
        delta_spark_peer,
        sys.executable,
        _OURS + _RUN,
        str(tmp_path),
        json.dumps(
            [
                "UPDATE theirs SET id = id + 10 WHERE p = 'a'",
                "ALTER TABLE theirs ADD COLUMN more INT",
                "INSERT INTO outside SELECT id FROM theirs",
                "CREATE TABLE ours USING delta CLUSTER BY (id) AS SELECT id, p FROM theirs",
                "CREATE TABLE checked (id BIGINT, CONSTRAINT few CHECK (id < 20)) USING delta",
                *DESCRIBED,
                "SELECT * FROM theirs ORDER BY id",
            ]
        ),
    )
    assert ours[-1] == [[2, "b", None], [11, "a", None]]
    assert theirs(*DESCRIBED) == ours[-1 - len(DESCRIBED) : -1]
    found = theirs(
        "SELECT * FROM theirs ORDER BY id",
        "SELECT id FROM outside ORDER BY id",
        "MERGE INTO ours USING theirs ON ours.id = theirs.id WHEN MATCHED THEN UPDATE SET p = 'm'",
        "SELECT * FROM ours ORDER BY id",
        "INSERT INTO checked VALUES (19)",
        "SHOW TBLPROPERTIES checked ('delta.constraints.few')",
        "DROP TABLE theirs",
        "SHOW TABLES",
    )
    assert found[:2] == [[[2, "b", None], [11, "a", None]], [[2], [11]]]
    assert found[3] == [[2, "m"], [11, "m"]]
    assert found[5] == [["delta.constraints.few", "id < 20"]]
    assert sorted(row[1] for row in found[-1]) == ["checked", "ours", "outside"]


def test_the_jar_of_delta_spark_leaves_methods(delta_spark_peer: DeltaSpark, tmp_path: Path) -> None:
    """With the JAR on its class path, a session gets a warning, no SQL, and the methods of this package."""
    jars = map(str, delta_spark_peer.jars)
    warned, rows, engine, parser = answer(delta_spark_peer, delta_spark_peer.python, _JAR, str(tmp_path), *jars)
    assert any("the JAR of delta-spark is on its class path" in text for text in warned)
    assert rows == [[1, 2], [1, 2]]
    assert "PySpark" in engine
    assert parser == "org.apache.spark.sql.execution.SparkSqlParser"
