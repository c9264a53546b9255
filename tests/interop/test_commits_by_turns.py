"""Row ids, commit times and conflicts where delta-spark and this package commit to one table by turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.interop.conftest import DeltaSparkServer

from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import ConcurrentAppendError, ConcurrentDeleteReadError
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.transaction import Transaction


def batch(*ids: int) -> list[pa.RecordBatch]:
    columns = {"id": pa.array(ids, pa.int64()), "v": pa.array(["ours"] * len(ids))}
    return [pa.RecordBatch.from_pydict(columns)]


def first_line(path: Path, version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "_delta_log" / f"{version:020d}.json").read_text().splitlines()[0])
    return found


def test_c330_c334_c335_c357_c363_row_ids_and_times_go_on_by_turns(
    delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    path, ids = tmp_path / "table", tmp_path / "ids"
    properties = "'delta.enableRowTracking' = 'true', 'delta.enableInCommitTimestamps' = 'true'"
    create = f"create table delta.`{path}` (id bigint, v string) using delta tblproperties ({properties})"
    delta_spark_server.ask("sql", statements=[create])
    for turn in range(0, 60, 20):
        before = Snapshot.load(str(path))
        rows = f"select id, 'theirs' as v from range({turn}, {turn + 5})"
        delta_spark_server.ask("append", path=str(path), select=rows)
        with Transaction.on(before) as transaction:  # which has lost the race to delta-spark
            transaction.write(batch(turn + 10, turn + 11, turn + 12))
        assert transaction.version == before.version + 2
    select = "select id, _metadata.row_id as row_id, _metadata.row_commit_version as version"
    statement = f"create table delta.`{ids}` using delta as {select} from delta.`{path}`"
    delta_spark_server.ask("sql", statements=[f"delete from delta.`{path}` where id in (1, 11)", statement])

    theirs = {row["id"]: (row["row_id"], row["version"]) for row in delta_spark_server.read(ids).to_pylist()}
    latest = Snapshot.load(str(path))
    ours = {
        row["id"]: (row["_row_id"], row["_row_commit_version"])
        for row in read_plan(plan_scan(latest, ["id"], row_ids=True)).read_all().to_pylist()
    }
    assert ours == theirs
    assert len(ours) == 22
    assert len({row_id for row_id, _ in ours.values()}) == 22
    times = [first_line(path, version)["commitInfo"]["inCommitTimestamp"] for version in range(latest.version + 1)]
    assert times == sorted(set(times))


def test_conflicts_with_commits_of_delta_spark_name_it(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> None:
    path = tmp_path / "table"
    create = f"create table delta.`{path}` using delta as select id, 'theirs' as v from range(0, 10, 1, 1)"
    delta_spark_server.ask("sql", statements=[create])
    before = Snapshot.load(str(path))

    def replace(where: str) -> Transaction:
        transaction = Transaction.on(before)
        transaction.remove(transaction.read(where=where).files)
        return transaction

    fitting, clashing, late = replace("id < 10"), replace("id < 50"), replace("id < 10")
    append = "select id, 'theirs' as v from range(20, 30, 1, 1)"
    delta_spark_server.ask("append", path=str(path), select=append)
    with pytest.raises(ConcurrentAppendError, match=r"[Vv]ersion 1 \(WRITE by Apache-Spark/.*Delta-Lake/.*id < 50"):
        clashing.commit()
    assert fitting.commit().version == 2
    delta_spark_server.ask("sql", statements=[f"update delta.`{path}` set v = 'new' where id = 25"])
    with pytest.raises(ConcurrentDeleteReadError, match=r"[Vv]ersion 2 \(Manual Update by pyspark-delta"):
        late.commit()
    assert delta_spark_server.read(path).num_rows == 10
