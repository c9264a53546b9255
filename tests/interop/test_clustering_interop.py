"""A clustered table that delta-spark and this package optimize by turns: rows, row ids, cubes, and history."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.interop.conftest import DeltaSparkServer
from tests.lengths import FULL, length
from tests.pickled_tasks import PickledTasks

from pyspark_delta.data.reader import read_plan
from pyspark_delta.maintenance.layout.cubes import CubeSizes
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.rewriting.plan import in_tasks
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.table import Table
from pyspark_delta.transaction.write_plan import FileOptions

pytestmark = pytest.mark.spark

SAME = ("operation", "operationParameters", "isolationLevel", "isBlindAppend")
ROUNDS = length(2, 4)  # by us, by delta-spark, by us in full and in tasks, by delta-spark again
WAYS = {"in this process": None, "in tasks": PickledTasks()}


def opened(path: Path) -> Table:
    clear_cache(str(path))
    return Table.open(path)


def tracked(path: Path) -> dict[int, tuple[Any, ...]]:
    rows = read_plan(plan_scan(opened(path).snapshot, None, row_ids=True)).read_all().to_pylist()
    return {row["id"]: (row["_row_id"], row["_row_commit_version"], row["a.b"], row["s"]["x"]) for row in rows}


def theirs(peer: DeltaSparkServer, path: Path) -> dict[int, tuple[Any, ...]]:
    ids = "_metadata.row_id r, _metadata.row_commit_version v"
    rows = peer.query(f"select id, `a.b`, s.x x, {ids} from delta.`{path}`").to_pylist()
    return {row["id"]: (row["r"], row["v"], row["a.b"], row["x"]) for row in rows}


def cubes(path: Path) -> dict[str, list[tuple[str, str | None]]]:
    """The files of each cube: its columns, and the provider."""
    found: dict[str, list[tuple[str, str | None]]] = {}
    for file in opened(path).snapshot.files(("tags", "clustering_provider")).to_pylist():
        tags = dict(file["tags"] or ())
        found.setdefault(tags.get("ZCUBE_ID", ""), []).append(
            (tags.get("ZCUBE_ZORDER_BY", ""), file["clustering_provider"])
        )
    return found


def insert(path: Path, turn: int) -> str:
    """200 rows in two files."""
    rows = f"id, id * 7 % 1000 as b, named_struct('x', id) as s from range({turn * 200}, {turn * 200 + 200})"
    return f"insert into delta.`{path}` select /*+ repartition(2) */ {rows}"


def test_c352_c353_each_clusters_after_the_other(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> None:
    peer, path = delta_spark_server, tmp_path / "t"
    names = ("enableRowTracking' = 'true", "enableDeletionVectors' = 'true", "columnMapping.mode' = 'name")
    properties = ", ".join(f"'delta.{name}'" for name in names)
    columns = "(id bigint, `a.b` bigint, s struct<x: bigint>)"
    peer.sql(f"create table delta.`{path}` {columns} using delta cluster by (`a.b`, s.x) tblproperties ({properties})")
    commits: list[dict[str, Any]] = []
    by = '["`a.b`","s.x"]'
    for turn in range(ROUNDS):
        peer.sql(insert(path, turn), f"delete from delta.`{path}` where id % 100 = {turn}")
        before = tracked(path)
        assert before == theirs(peer, path)
        if turn % 2:
            peer.sql(f"optimize delta.`{path}`")
        else:
            plan = opened(path).optimize(full=turn == 2, plan=True)
            result = (in_tasks(plan, PickledTasks()) if turn else plan).execute()
            assert result.layout is not None
            assert result.layout.other_files >= 2
        assert tracked(path) == before == theirs(peer, path)
        commits.append(opened(path).history(1)[0])
        found = cubes(path)
        assert "" not in found  # every file is in a cube
        assert {file for files in found.values() for file in files} == {(by, "liquid")}
        if turn % 2:
            assert len(found) == 1  # delta-spark took our cubes for its own, and merged them
    ours, their = commits[0], commits[1]
    assert {name: ours[name] for name in SAME} == {name: their[name] for name in SAME}
    assert ours["operationMetrics"].keys() == their["operationMetrics"].keys()
    domain = opened(path).snapshot.domains()["delta.clustering"]
    assert len(json.loads(domain.configuration)["clusteringColumns"]) == 2


def stable_files(path: Path, size: int) -> dict[str, str]:
    """The cube of each file in a cube of so many bytes."""
    files = opened(path).snapshot.files(("path", "size", "tags")).to_pylist()
    cube_of = {file["path"]: dict(file["tags"] or ()).get("ZCUBE_ID", "") for file in files}
    sizes = Counter[str]()
    for file in files:
        sizes[cube_of[file["path"]]] += file["size"]
    return {path: cube for path, cube in cube_of.items() if cube and sizes[cube] >= size}


def test_c353_stable_cubes_stay_in_ten_rounds(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> None:
    """By turns; a cube is stable from three rounds of rows on, so both make some, and meet those of the other."""
    peer, path = delta_spark_server, tmp_path / "t"
    threshold = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"
    peer.sql(f"create table delta.`{path}` (id bigint, b bigint, c string) using delta cluster by (b, c)")
    columns = "id, id * 2654435761 % 1000000007 b, substr(sha2(cast(id as string), 256), 1, 12) c"
    stable, seen, makers = 1 << 40, dict[str, str](), Counter[str]()
    try:
        for turn in range(length(6, 10)):
            rows_of_turn = f"{columns} from range({turn * 2000}, {turn * 2000 + 2000})"
            peer.sql(f"insert into delta.`{path}` select /*+ repartition(2) */ {rows_of_turn}")
            before, expected = stable_files(path, stable), (turn + 1) * 2000
            assert before == seen
            if turn % 2:
                peer.sql(f"optimize delta.`{path}`")
            else:
                request = OptimizeRequest(cubes=CubeSizes.of_stable(stable), files=FileOptions(compression="snappy"))
                plan_optimize(opened(path).snapshot, request).execute()
            if not turn:
                stable = int(2.5 * opened(path).snapshot.size_in_bytes())
                peer.sql(f"set {threshold} = {stable}")
            seen = stable_files(path, stable)
            assert before.items() <= seen.items()  # no file of a stable cube was rewritten
            makers["delta-spark" if turn % 2 else "ours"] += len(set(seen.values()) - set(before.values()))
            found = cubes(path)
            assert {file for files in found.values() for file in files} == {('["b","c"]', "liquid")}
            assert "" not in found
            rows = opened(path).scan().to_arrow().sort_by("id")
            assert rows["id"].to_pylist() == list(range(expected))
            assert rows.equals(peer.query(f"select * from delta.`{path}` order by id").cast(rows.schema))
    finally:
        peer.sql(f"reset {threshold}")
    assert set(makers) == {"delta-spark", "ours"}
    assert min(makers.values()) >= 1


@pytest.mark.parametrize("tasks", WAYS.values() if FULL else [PickledTasks()], ids=WAYS if FULL else ["in tasks"])
def test_a_whole_cube_of_ours_is_left_alone_by_delta_spark(
    delta_spark_server: DeltaSparkServer, tmp_path: Path, tasks: PickledTasks | None
) -> None:
    peer, path = delta_spark_server, tmp_path / "t"
    peer.sql(f"create table delta.`{path}` (id bigint, b bigint) using delta cluster by (id)")
    for number in range(2):
        peer.sql(f"insert into delta.`{path}` select id, id from range({number}, 100, 2)")
    plan = opened(path).optimize(plan=True)
    assert (plan if tasks is None else in_tasks(plan, tasks)).execute().layout.new_cubes == 1
    version = opened(path).version
    peer.sql(f"optimize delta.`{path}`")
    assert opened(path).version == version
    peer.sql(f"alter table delta.`{path}` cluster by (b)", f"optimize delta.`{path}`")
    assert opened(path).version == version + 1  # cubes of other columns stay
    assert opened(path).optimize().version is None
    assert opened(path).optimize(full=True).version == version + 2
    assert next(iter(cubes(path).values()))[0] == ('["b"]', "liquid")


def test_zorder_is_told_as_by_delta_spark(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> None:
    peer = delta_spark_server
    told = []
    for name in ("ours", "theirs"):
        path = tmp_path / name
        peer.sql(
            f"create table delta.`{path}` (id bigint, `a.b` bigint, p int) using delta partitioned by (p) "
            "tblproperties ('delta.columnMapping.mode' = 'name')"
        )
        for start in range(2):
            peer.sql(f"insert into delta.`{path}` select id, id * 7 % 100, id % 2 from range({start}, 100, 2)")
        if name == "ours":
            opened(path).optimize(zorder_by=["id", "`a.b`"])
        else:
            peer.sql(f"optimize delta.`{path}` zorder by (id, `a.b`)")
        told.append(opened(path).history(1)[0])
    assert {name: told[0][name] for name in SAME} == {name: told[1][name] for name in SAME}
