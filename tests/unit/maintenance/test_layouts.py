"""OPTIMIZE of clustered tables, Z-order and sorted rows: the same rows in other files, whatever others do meanwhile."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable

from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import DeltaError, InvalidOptionError
from pyspark_delta.maintenance.auto_compaction import AutoCompaction, plan_auto_compaction
from pyspark_delta.maintenance.layout.cubes import CubeSizes
from pyspark_delta.maintenance.layout.layouts import Cluster, Sort
from pyspark_delta.maintenance.layout.plan import LayoutRequest, plan_layout
from pyspark_delta.maintenance.rewriting.rewrite import Rewriting
from pyspark_delta.maintenance.rewriting.run import RunOptions
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.table import Table

VECTORS = {"delta.enableDeletionVectors": "true"}
SMALL = {"target_size": 20_000}
FILES, ROWS = 8, 12_000


def make(
    path: Path, *, cluster_by: tuple[str, ...] = (), partition_by: tuple[str, ...] = (), **properties: str
) -> Table:
    columns = "id BIGINT, at TIMESTAMP, s STRING, p INT"
    table = Table.create(path, columns, cluster_by=cluster_by, partition_by=partition_by, properties=properties)
    for number in range(FILES):
        append(table, number)
    return table


def append(table: Table, number: int) -> None:
    chance, count = np.random.default_rng(number), ROWS // FILES
    ids = chance.integers(0, 1_000_000, count)
    times = pa.array((np.arange(count) + number * count) * 1_000_000, pa.timestamp("us", "UTC"))
    table.append({"id": ids, "at": times, "s": [f"s{n % 97}" for n in ids.tolist()], "p": ids % 2})


def content(table: Table) -> pa.Table:
    return Table.open(table.location).scan(columns=["at", "id", "s", "p"]).to_arrow().sort_by("at")


def providers(table: Table) -> list[str | None]:
    found: list[str | None] = table.snapshot.files(("clustering_provider",))["clustering_provider"].to_pylist()
    return found


def cubes(table: Table) -> set[str]:
    return {dict(tags or ()).get("ZCUBE_ID", "") for tags in table.snapshot.files(("tags",))["tags"].to_pylist()}


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        ({"zorder_by": ["id", "at"]}, {"zOrderBy": '["id","at"]'}),
        ({"layout": Cluster("id", "at", curve="hilbert")}, {"zOrderBy": '["id","at"]'}),
        ({"layout": Cluster("at", "s", weights=[1, 2])}, {"zOrderBy": '["at","s"]'}),
        ({"layout": Sort("s", "id")}, {"sortBy": '["s","id"]'}),
    ],
)
@pytest.mark.parametrize("memory", ["512MB", "1MB"])
def test_rows_stay_and_queries_read_fewer_files(tmp_path: Path, given: Any, parameters: Any, memory: str) -> None:
    table = make(tmp_path)
    before = content(table)
    plan = table.optimize(plan=True, **given, **SMALL)
    result = table.optimize(memory=memory, **given, **SMALL)
    assert content(table).equals(before)
    assert PeerTable(str(tmp_path)).to_pyarrow_table().num_rows == ROWS
    assert result.version == FILES + 1
    assert result.added.count == plan.files_added > 4
    assert result.removed.count == FILES
    commit = table.history(1)[0]
    assert commit["operation"] == "OPTIMIZE"
    assert (
        commit["operationParameters"]
        == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False} | parameters
    )
    assert set(providers(table)) == {None}
    first = next(iter(json.loads(next(iter(parameters.values())))))
    assert table.clustering_quality([first]).average_depth[first] < 0.7 * result.added.count
    assert all(not change for change in data_changes(table))


def data_changes(table: Table) -> list[bool]:
    lines = (Path(table.location) / "_delta_log" / f"{table.version:020}.json").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    return [one["dataChange"] for action in actions for kind, one in action.items() if kind in ("add", "remove")]


def test_sorted_files_are_ranges_and_sorted_inside(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.optimize(layout=Sort("s", "id"), **SMALL)
    found = []
    for path in table.files()["path"].to_pylist():
        rows = pq.read_table(tmp_path / path, columns=["s", "id"])
        keys = list(zip(rows["s"].to_pylist(), rows["id"].to_pylist(), strict=True))
        assert keys == sorted(keys)
        found.append((keys[0], keys[-1]))
    found.sort()
    assert all(a[1] <= b[0] for a, b in pairwise(found))


def test_each_partition_is_laid_out_by_itself(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=("p",))
    before = content(table)
    result = table.optimize("p = 1", zorder_by=["id"], **SMALL)
    assert result.removed.count == FILES
    assert result.partitions == 1
    assert content(table).equals(before)
    assert table.history(1)[0]["operationParameters"]["predicate"] == '["p = 1"]'


def test_c354_a_clustered_table_is_clustered_piece_by_piece(tmp_path: Path) -> None:
    table = make(tmp_path, cluster_by=("id", "at"))
    before = content(table)
    result = table.optimize(**SMALL)
    assert content(table).equals(before)
    assert set(providers(table)) == {"liquid"}
    assert len(cubes(table)) == 1
    stats = result.layout.clustering_stats()
    assert stats["inputOtherFiles"]["numFiles"] == stats["mergedFiles"]["numFiles"] == FILES
    assert (stats["inputNumZCubes"], stats["numOutputZCubes"]) == (0, 1)
    parameters = table.history(1)[0]["operationParameters"]
    assert (parameters["clusterBy"], parameters["zOrderBy"], parameters["isFull"]) == ('["id","at"]', "[]", False)
    depth = table.clustering_quality().average_depth
    assert max(depth.values()) <= 1.8 * result.added.count**0.5
    assert table.optimize(**SMALL).version is None  # one whole cube
    old = set(table.files()["path"].to_pylist())
    append(table, FILES)
    assert table.optimize(**SMALL).removed.count == 1  # the old cube is much larger
    assert old < set(table.files()["path"].to_pylist())
    assert len(cubes(table)) == 2
    assert table.optimize(full=True, **SMALL).layout.cubes == 2
    assert len(cubes(table)) == 1


def test_auto_compaction_clusters_once_there_are_many_new_files(tmp_path: Path) -> None:
    table = make(tmp_path, cluster_by=("id",), **{"delta.autoOptimize.autoCompact": "true"})
    assert set(providers(table)) == {None}
    settings = AutoCompaction(min_files=FILES)
    assert plan_auto_compaction(table.snapshot, table.version, AutoCompaction(min_files=FILES + 1)) is None
    plan = plan_auto_compaction(table.snapshot, table.version, settings)
    assert plan is not None
    plan.execute()
    assert set(providers(table.refresh())) == {"liquid"}
    assert table.history(1)[0]["operationParameters"]["auto"] is True


def test_only_a_full_run_clusters_what_was_clustered_by_other_columns(tmp_path: Path) -> None:
    table = make(tmp_path, cluster_by=("id",))
    table.optimize(**SMALL)
    before = content(table)
    table.alter().cluster_by("at", "s")
    assert table.optimize(**SMALL).version is None
    result = table.optimize(full=True, **SMALL)
    assert result.layout.cubes == 1
    assert table.history(1)[0]["operationParameters"]["isFull"] is True
    assert content(table).equals(before)
    tags = [dict(tags)["ZCUBE_ZORDER_BY"] for tags in table.snapshot.files(("tags",))["tags"].to_pylist()]
    assert set(tags) == {'["at","s"]'}
    table.alter().cluster_by()
    assert table.optimize(**SMALL).layout is None  # a compaction


def test_a_large_run_makes_several_cubes_that_are_boxes(tmp_path: Path) -> None:
    table = make(tmp_path, cluster_by=("id", "at"))
    sizes = CubeSizes(target=30_000, stable=20_000)
    request = LayoutRequest(layout=None, target_size=10_000, cubes=sizes)
    plan = plan_layout(table.snapshot, request, Rewriting(table.snapshot), RunOptions())
    result = plan.execute()
    assert result.layout.new_cubes == len(cubes(table.refresh())) > 1
    again = plan_layout(table.snapshot, request, Rewriting(table.snapshot), RunOptions())
    assert again.is_nothing  # all cubes are stable


@pytest.mark.parametrize("given", [{"zorder_by": ["id"]}, {"layout": Sort("id")}, {}])
def test_rows_that_others_delete_meanwhile_are_deleted_in_the_new_files(tmp_path: Path, given: Any) -> None:
    table = make(tmp_path, cluster_by=() if given else ("id", "at"), **VECTORS)
    table.delete("id % 10 = 3")
    plan = Table.open(tmp_path).optimize(plan=True, **given, **SMALL)
    table.delete("id % 10 = 7")
    table.update({"s": "'changed'"}, "id % 10 = 5")
    append(table, FILES)
    expected = content(table)
    result = plan.execute()
    assert result.bins == 1
    assert result.bins_given_up == 0
    table.refresh()
    assert content(table).equals(expected)
    vectors = table.snapshot.files(("deletion_vector",))["deletion_vector"]
    assert vectors.null_count < len(vectors)


def test_a_bin_whose_files_are_gone_is_given_up_and_leaves_no_files(tmp_path: Path) -> None:
    table = make(tmp_path, cluster_by=("id",))
    plan = table.optimize(plan=True, **SMALL)
    table.delete("id % 2 = 0")  # rewrites all files
    expected = content(table)
    result = plan.execute()
    assert (result.version, result.bins_given_up) == (None, 1)
    assert content(table).equals(expected)
    live = set(table.refresh().files()["path"].to_pylist())
    removed = set(table.snapshot.tombstones(("path",))["path"].to_pylist())
    assert {path.name for path in tmp_path.glob("*.parquet")} <= live | removed


def test_new_clustering_columns_meanwhile_take_the_tags_away(tmp_path: Path) -> None:
    table = make(tmp_path, cluster_by=("id",))
    plan = table.optimize(plan=True, **SMALL)
    expected = content(table)
    table.alter().cluster_by("at")
    assert plan.execute().version == table.version + 1
    assert content(table).equals(expected)
    assert set(providers(table.refresh())) == {None}


def test_row_ids_stay(tmp_path: Path) -> None:
    table = make(tmp_path, cluster_by=("id",), **{"delta.enableRowTracking": "true", **VECTORS})
    table.delete("id % 10 = 3")

    def tracked() -> pa.Table:
        plan = plan_scan(Table.open(tmp_path).snapshot, ["at", "id"], row_ids=True)
        return read_plan(plan).read_all().sort_by("at")

    before = tracked()
    table.optimize(**SMALL)
    after = tracked()
    assert after.equals(before)
    assert table.snapshot.commit_info().values["tags"] == {"delta.rowTracking.preserved": "true"}


@pytest.mark.parametrize(
    ("clustered", "given", "error_class"),
    [
        (False, {"zorder_by": ["nothing"]}, "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        (False, {"zorder_by": ["p"]}, "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        (False, {"zorder_by": ["s"]}, "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"),
        (False, {"zorder_by": ["id", "ID"]}, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (False, {"full": True}, "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"),
        (True, {"zorder_by": ["id"]}, "DELTA_CLUSTERING_WITH_ZORDER_BY"),
        (True, {"layout": Sort("id")}, "DELTA_CLUSTERING_WITH_ZORDER_BY"),
        (True, {"where": "id = 1"}, "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    tmp_path: Path, clustered: bool, given: Any, error_class: str
) -> None:
    table = Table.create(
        tmp_path,
        "id BIGINT, s STRING, p INT",
        cluster_by=["id"] if clustered else [],
        partition_by=[] if clustered else ["p"],
        properties={"delta.dataSkippingStatsColumns": "id"},
    )
    with pytest.raises(DeltaError) as caught:
        table.optimize(**given)
    assert caught.value.error_class == error_class
    assert Table.open(tmp_path).version == 0


@pytest.mark.parametrize(
    "make_layout",
    [
        lambda: Sort(),
        lambda: Cluster(),
        lambda: Cluster("a", "b", weights=[1]),
        lambda: Cluster("a", weights=[0]),
        lambda: Cluster("a", curve="peano"),  # type: ignore[arg-type]
    ],
)
def test_layouts_check_their_arguments(make_layout: Any) -> None:
    with pytest.raises(InvalidOptionError):
        make_layout()


def test_a_plan_says_what_it_would_do(tmp_path: Path) -> None:
    plan = make(tmp_path, cluster_by=("id", "at")).optimize(plan=True, **SMALL)
    assert str(plan).endswith("rows are clustered by id, at")
    assert plan.facts()["layout"] == "clustered by id, at"
    assert plan.files_removed == FILES
