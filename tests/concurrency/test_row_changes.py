"""Writers with Spark and without that change rows at the same time: what is left is what some serial order leaves.

Every commit carries what it was asked to do. Replayed one after another by version in plain Python, the statements must
give the content of the table.
"""

from __future__ import annotations

import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.table_writers import Place, replay, write

from pyspark_delta import DeltaTable, Table
from pyspark_delta.spark.conf.limits import REEXECUTIONS
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.spark.session.enable import enable

STATEMENTS = int(os.environ.get("PYSPARK_DELTA_TEST_STATEMENTS", "4"))  # of each writer
WRITERS, ROWS = 3, 60
ASKED = "spark.databricks.delta.commitInfo.userMetadata"


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_row_changes_leave_what_a_serial_order_leaves(delta_spark: SparkSession, tmp_path: Path, vectors: str) -> None:
    path = str(tmp_path)
    options = {"delta.enableDeletionVectors": vectors, "delta.enableRowTracking": "true"}
    save(delta_spark.sql(f"select id, 0L n from range(0, {ROWS}, 1, 3)"), path, options=options)
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        beside = pool.submit(write, Place(path), WRITERS)  # without Spark
        told = [*pool.map(lambda number: _write(delta_spark, path, number), range(WRITERS)), beside.result()]
        done = [made for one in told for made in one]

    commits = [
        json.loads(entry["userMetadata"]) for entry in reversed(Table.open(path).history()) if entry["userMetadata"]
    ]
    assert sorted(map(repr, commits)) == sorted(map(repr, done))
    model = dict.fromkeys(range(ROWS), 0)
    for statement in commits:
        replay(model, statement)
    found = {row["id"]: row["n"] for row in Table.open(path).scan().to_arrow().to_pylist()}
    assert found == model
    assert len(commits) > WRITERS


def _write(spark: SparkSession, path: str, number: int) -> list[dict[str, Any]]:
    """Run statements; those that made a commit."""
    session = enable(spark.newSession())
    session.conf.set(REEXECUTIONS, "100")
    chosen, table, made = random.Random(number), DeltaTable.forPath(session, path), []
    for step in range(STATEMENTS):
        start = chosen.randrange(0, ROWS, 5)
        statement = {
            "kind": chosen.choice(["delete", "update", "update", "merge", "append"]),
            "from": start,
            "to": start + chosen.choice([2, 10]),
            "new": 1000 * (number + 1) + 10 * step,
        }
        session.conf.set(ASKED, json.dumps(statement))
        if _run(session, table, path, statement):
            made.append(statement)
    return made


def _run(session: SparkSession, table: DeltaTable, path: str, asked: dict[str, Any]) -> bool:
    condition = f"id >= {asked['from']} and id < {asked['to']}"
    match asked["kind"]:
        case "append":
            return save(session.sql(f"select {asked['new']}L id, 0L n"), path, "append") is not None
        case "delete":
            return bool(table.delete(condition).collect()[0][0])
        case "update":
            return bool(table.update(condition, {"n": "n + 1"}).collect()[0][0])
    source = session.sql(f"select id, 7L n from range({asked['from']}, {asked['to']})")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"n": "t.n * 2 + s.n"}).whenNotMatchedInsertAll()
    return bool(merge.execute().collect()[0][0])
