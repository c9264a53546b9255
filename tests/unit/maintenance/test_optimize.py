"""OPTIMIZE and PURGE without Spark: which files are rewritten, and that rows, ids and the feed stay as they are."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from tests.inline_vectors import vector
from tests.managed import Warehouse
from tests.pickled_tasks import PickledTasks
from tests.table_kinds import KINDS, changed

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import (
    DataFileError,
    InvalidOptionError,
    InvalidPredicateError,
    MaintenanceNotAllowedError,
    UnsupportedFeatureError,
)
from pyspark_delta.maintenance.budget import Budget
from pyspark_delta.maintenance.optimize import OptimizeRequest, plan_optimize
from pyspark_delta.maintenance.rewriting.bins import worthwhile
from pyspark_delta.maintenance.rewriting.plan import RewritePlan, in_tasks
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.table import Table
from pyspark_delta.transaction.transaction import Transaction
from pyspark_delta.write.written import has_row_ids

VECTORS = {"delta.enableDeletionVectors": "true"}


def make(path: Path, *, files: int = 4, rows: int = 3, partition_by: tuple[str, ...] = (), **properties: str) -> Table:
    table = Table.create(path, "id BIGINT, p STRING", partition_by=partition_by, properties=properties)
    for number in range(files):
        ids = range(number * rows, (number + 1) * rows)
        table.append({"id": list(ids), "p": ["a" if i % 2 else "b" for i in ids]})
    return table


def ids(table: Table) -> list[int]:
    found: list[int] = Table.open(table.location).scan(columns=["id"]).to_arrow()["id"].to_pylist()
    return found


def content(table: Table) -> list[dict[str, Any]]:
    """The rows, with their ids if they have some, in an order."""
    snapshot = Table.open(table.location).snapshot
    found = read_plan(plan_scan(snapshot, row_ids=has_row_ids(snapshot.configuration))).read_all()
    return sorted(found.to_pylist(), key=repr)


def number_of_files(table: Table) -> int:
    return Table.open(table.location).snapshot.files(("path",)).num_rows


# --------------------------------------------------------------------------------------------- all kinds of tables
@pytest.mark.parametrize("name", KINDS)
def test_rows_ids_and_the_feed_stay_in_every_kind_of_table(name: str, tmp_path: Path) -> None:
    """After the changes of each kind of table, by turns, a compaction and a purge."""
    properties = KINDS[name].properties
    for number, (change, table) in enumerate(changed(name, tmp_path / "t")):
        before, version = content(table), table.version
        (table.purge if number % 2 else table.optimize)()
        assert content(table) == before, change
        if properties.get("delta.enableChangeDataFeed") and table.version > version:
            assert not table.changes(starting_version=version + 1).to_arrow().num_rows
    table.optimize(max_deleted_share=0)
    assert table.optimize(plan=True).is_nothing
    assert table.purge(plan=True).is_nothing
    check_statistics(table)
    if not properties:
        found = PeerTable(str(tmp_path / "t")).to_pyarrow_table(columns=["id"])["id"].to_pylist()
        assert sorted(found) == sorted(row["id"] for row in before)


def check_statistics(table: Table) -> None:
    """The statistics of each file count its rows, and bound its ids."""
    snapshot = table.snapshot
    plan = plan_scan(snapshot, ["id"], statistics=True)
    for at in range(plan.files.num_rows):
        stats = json.loads(plan.files["stats"][at].as_py())
        one = read_plan(replace(plan, files=plan.files.slice(at, 1))).read_all()["id"].to_pylist()
        assert stats["numRecords"] == len(one)  # no file has a vector
        minimum, maximum = (next(iter(stats[bound].values())) for bound in ("minValues", "maxValues"))
        assert (minimum, maximum) == (min(one), max(one))


# ------------------------------------------------------------------------------------------------- which files
def test_files_of_a_partition_become_one_and_rows_keep_their_order(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=("p",), rows=4)
    result = table.optimize(commit_info="why")
    assert (result.metrics["numRemovedFiles"], result.metrics["numAddedFiles"], result.bins) == (8, 2, 2)
    assert ids(table) in ([*range(0, 16, 2), *range(1, 16, 2)], [*range(1, 16, 2), *range(0, 16, 2)])
    commit = table.history(1)[0]
    assert (commit["operation"], commit["userMetadata"], commit["isolationLevel"]) == (
        "OPTIMIZE",
        "why",
        "SnapshotIsolation",
    )
    assert commit["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False}
    assert table.optimize().version is None
    assert table.version == result.version


def test_large_files_rest_and_targets_hold(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT")
    for number in range(8):
        table.append({"id": list(range(number * 10_000, (number + 1) * 10_000))})
    size = table.snapshot.size_in_bytes() // 8
    assert table.optimize(target_size=size, plan=True).is_nothing  # each has the target size
    plan = table.optimize(target_size=9 * size // 2, plan=True)
    assert (len(plan.bins), plan.files_removed, plan.files_added) == (2, 8, 2)
    table.optimize(target_size=9 * size // 2)
    assert sorted(ids(table)) == list(range(80_000))
    assert number_of_files(table) == 2


def test_the_property_and_the_size_of_the_table_give_the_target(tmp_path: Path) -> None:
    table = make(tmp_path, **{"delta.targetFileSize": "64mb"})
    assert table.optimize(plan=True).bins.target_size == 64 << 20
    assert table.optimize(target_size="1GB", plan=True).bins.target_size == 1 << 30
    table.alter().unset_properties("delta.targetFileSize")
    assert table.optimize(plan=True).bins.target_size == 128 << 20
    with pytest.raises(InvalidOptionError, match="target_size is a number of bytes"):
        table.optimize(target_size="much")


def test_one_file_with_many_deleted_rows_is_rewritten_alone(tmp_path: Path) -> None:
    table = make(tmp_path, files=1, rows=1000, **VECTORS)
    table.delete("id = 5")
    assert table.optimize(plan=True).is_nothing  # below the share
    assert not table.optimize(max_deleted_share=0, plan=True).is_nothing
    table.delete("id < 100")
    size = table.snapshot.size_in_bytes()
    result = table.optimize(min_size=1)
    assert (result.metrics["numRemovedFiles"], result.metrics["numAddedFiles"]) == (1, 1)
    assert (result.deletion_vectors_removed, result.deleted_rows_removed) == (1, 100)
    assert table.snapshot.size_in_bytes() < size
    assert ids(table) == list(range(100, 1000))


def test_a_file_of_two_thirds_of_a_bin_is_not_rewritten_for_a_small_one(tmp_path: Path) -> None:
    table = make(tmp_path, files=2, rows=1000)
    size = table.snapshot.size_in_bytes()
    plan = table.optimize(target_size=size, plan=True)
    assert len(plan.bins) == 1  # little
    assert not len(worthwhile(replace(plan.bins, sizes=plan.bins.sizes + (20 << 20))))


@pytest.mark.findings("S04")  # the hand-written commit keeps tight bounds
def test_files_without_rows_leave_by_the_log_alone(tmp_path: Path) -> None:
    """delta-spark's DELETE removes such files; other writers leave them, with a vector of all rows."""
    table = make(tmp_path, files=2, **VECTORS)
    add = next(
        json.loads(line)["add"]
        for line in (tmp_path / "_delta_log" / f"{2:020}.json").read_text().splitlines()
        if "add" in json.loads(line)
    )
    removed = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}
    added = {**add, **vector(0, 1, 2)}
    lines = [json.dumps({"remove": removed}), json.dumps({"add": added})]
    (tmp_path / "_delta_log" / f"{3:020}.json").write_text("\n".join(lines) + "\n")
    (tmp_path / "_delta_log" / f"{2:020}.crc").unlink(missing_ok=True)
    table.refresh()
    files = set(tmp_path.glob("*.parquet"))
    plan = table.optimize(plan=True)
    assert (len(plan.bins), plan.files_removed, plan.facts()["files_without_rows"]) == (0, 1, 1)
    assert "without rows" in str(plan)
    result = table.optimize()
    assert (result.metrics["numRemovedFiles"], result.metrics["numAddedFiles"]) == (1, 0)
    assert set(tmp_path.glob("*.parquet")) == files
    assert ids(table) == [0, 1, 2]


# -------------------------------------------------------------------------------------------------- partitions
def test_a_condition_selects_partitions(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=("p",), rows=4)
    result = table.optimize("p = 'a'")
    assert (result.partitions, result.files_considered, number_of_files(table)) == (1, 4, 5)
    assert table.history(1)[0]["operationParameters"]["predicate"] == "[\"p = 'a'\"]"
    for where in ("id = 1", "p = 'a' AND id > 3", "upper(id) = 'x'"):
        with pytest.raises(InvalidPredicateError) as caught:
            table.optimize(where)
        assert caught.value.error_class == "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    with pytest.raises(InvalidPredicateError):
        table.purge("p = ")


def test_two_spellings_of_a_value_are_one_partition_and_one_spelling_stays(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT, at TIMESTAMP", partition_by=["at"])
    at = datetime(2024, 1, 31, 12, tzinfo=UTC)
    for number in range(4):
        table.append({"id": [number], "at": [at]})
    for version, text in ((2, "2024-01-31 12:00:00"), (3, "2024-01-31 12:00:00")):
        path = tmp_path / "_delta_log" / f"{version:020}.json"
        path.write_text(path.read_text().replace("2024-01-31T12:00:00.000000Z", text))
    for checksum in (tmp_path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    before = content(table)
    assert table.optimize(plan=True).files_added == 1
    table.optimize()
    assert content(table) == before
    other = Table.create(tmp_path / "other", "id BIGINT, at TIMESTAMP", partition_by=["at"])
    for number in range(2):
        other.append({"id": [number], "at": [at]})
        path = tmp_path / "other" / "_delta_log" / f"{number + 1:020}.json"
        path.write_text(path.read_text().replace("2024-01-31T12:00:00.000000Z", "2024-01-31 12:00:00"))
    for checksum in (tmp_path / "other" / "_delta_log").glob("*.crc"):
        checksum.unlink()
    other.optimize()
    (values,) = other.snapshot.files(("partition_values",))["partition_values"].to_pylist()
    assert values == [("at", "2024-01-31 12:00:00")]


# ------------------------------------------------------------------------------------------------------- purging
def test_dropped_columns_and_deleted_rows_are_purged(tmp_path: Path) -> None:
    table = make(tmp_path, files=3, **{"delta.columnMapping.mode": "name"}, **VECTORS)
    assert table.purge(plan=True).is_nothing
    table.delete("id = 0")
    assert table.purge(plan=True).files_removed == 1
    table.alter().drop_columns("p")
    assert table.purge(plan=True).files_removed == 3
    before = content(table)
    result = table.purge()
    commit = table.history(1)[0]
    assert (commit["operation"], commit["operationParameters"]) == ("REORG", {"predicate": "[]", "applyPurge": True})
    assert (result.metrics["numDeletionVectorsRemoved"], content(table)) == (1, before)
    (file,) = table.snapshot.files(("path",))["path"].to_pylist()
    assert len(pq.read_schema(tmp_path / file).names) == 1
    assert table.purge(plan=True).is_nothing


# ------------------------------------------------------------------------------------------------------- budgets
def test_a_budget_of_bytes_takes_what_saves_most_files(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=("p",), rows=4)
    table.append({"id": [100, 101], "p": ["c", "c"]})
    table.append({"id": [102], "p": ["c"]})
    size = table.optimize("p = 'a'", plan=True).bytes_read
    plan = table.optimize(budget=Budget(bytes=size + 10), plan=True)
    assert (len(plan.bins), plan.bins_left) == (1, 2)
    result = table.optimize(budget=Budget(bytes=f"{size + 10}"))
    assert (result.bins, result.bins_left, result.metrics["numRemovedFiles"]) == (1, 2, 4)
    assert table.optimize().bins == 2


def test_commits_are_made_in_batches_and_a_budget_limits_them(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=("p",), rows=4)
    before = content(table)
    plan = plan_optimize(table.snapshot, OptimizeRequest(batch_size=1))
    assert plan.commits == 2
    result = plan.execute()
    assert len(result.versions) == 2
    assert content(table) == before
    other = make(tmp_path / "other", partition_by=("p",), rows=4)
    one = plan_optimize(other.snapshot, OptimizeRequest(batch_size=1, budget=Budget(commits=1)))
    assert len(one.execute().versions) == one.commits == 1


def test_no_bin_is_begun_after_the_seconds(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=("p",), rows=4)
    result = table.optimize(budget=Budget(seconds=1e-9))
    assert (result.version, result.bins, result.bins_left) == (None, 0, 2)
    for wrong in ({"seconds": 0}, {"commits": 0}, {"bytes": "x"}, {"commits": 1.5}):
        with pytest.raises(InvalidOptionError):
            Budget(**wrong)


# --------------------------------------------------------------------------------------------- failures and refusals
def test_an_error_and_a_cancellation_leave_no_file(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=("p",), rows=4)
    files = set(tmp_path.rglob("*.parquet"))

    def cancel(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.optimize(progress=cancel)
    assert set(tmp_path.rglob("*.parquet")) == files
    seen: list[tuple[str, int, int | None]] = []
    table.optimize(progress=lambda one: seen.append((one.phase, one.done, one.total)))
    assert seen[-1] == ("Rewrite files", 8, 8)


@pytest.mark.findings("F02")  # a file is damaged
def test_a_damaged_file_does_not_undo_the_other_bins(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT, p INT", partition_by=["p"])
    for number in range(2):
        rows = [(number, p) for p in (1, 2)] + [(10, 2)] * (100 * number)  # the partition 2 is the largest
        table.append({"id": [row[0] for row in rows], "p": [row[1] for row in rows]})
    files = set(tmp_path.rglob("*.parquet"))
    victim = next((tmp_path / "p=1").iterdir())
    victim.write_bytes(b"no Parquet")
    with pytest.raises(DataFileError):
        table.optimize(threads=1)
    (new,) = set(tmp_path.rglob("*.parquet")) - files
    assert (new.parent.name, table.refresh().history(1)[0]["operationMetrics"]["numRemovedFiles"]) == ("p=2", "2")


def test_c377_an_append_only_table_is_rearranged(tmp_path: Path) -> None:
    table = make(tmp_path, **{"delta.appendOnly": "true"})
    table.optimize()
    assert (number_of_files(table), ids(table)) == (1, list(range(12)))


@pytest.mark.findings("P12")  # the protocol is replaced by hand
def test_a_table_of_the_future_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["ofTheFuture"]}
    (tmp_path / "_delta_log" / f"{5:020}.json").write_text(json.dumps({"protocol": features}) + "\n")
    with pytest.raises(UnsupportedFeatureError, match="ofTheFuture"):
        Table.open(table.location).optimize(plan=True)


def test_c478_a_catalog_must_allow_the_rearrangement(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create()
    for number in range(3):
        warehouse.append(number)
    for command in ("optimize", "purge"):
        with pytest.raises(MaintenanceNotAllowedError, match="rearranged"):
            getattr(warehouse.open(), command)()
    managed: Any = managed_table(warehouse.snapshot().catalog_table)
    managed.catalog.allow_maintenance(managed.info.name, [Maintenance.OPTIMIZE])
    result = warehouse.open().optimize()
    assert (result.metrics["numRemovedFiles"], warehouse.ids()) == (3, [0, 1, 2])


def test_a_purge_of_a_clustered_table_keeps_its_cubes_apart(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT", cluster_by=["id"], properties=VECTORS)
    for number in range(6):
        table.append({"id": [number, number + 10]})
    for version in (1, 2, 3, 4):
        path = tmp_path / "_delta_log" / f"{version:020}.json"
        cube = {"ZCUBE_ID": "one" if version < 3 else "two", "ZCUBE_ZORDER_BY": '["id"]'}
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if "add" in line:
                line["add"] |= {"tags": cube, "clusteringProvider": "liquid"}
        path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    with pytest.raises(InvalidPredicateError) as caught:
        table.optimize("id = 1")
    assert caught.value.error_class == "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"
    clear_cache(str(tmp_path))
    table.delete("id >= 10")
    table.purge()
    files = table.snapshot.files(("tags", "clustering_provider")).to_pylist()
    assert sorted((repr(dict(file["tags"] or {}).get("ZCUBE_ID")), file["clustering_provider"]) for file in files) == [
        ("'one'", "liquid"),
        ("'two'", "liquid"),
        ("None", None),
    ]
    assert sorted(ids(table)) == list(range(6))


# ----------------------------------------------------------------------------------------------------- plans
@pytest.mark.findings("F01")  # the log names files that do not exist
def test_a_plan_of_many_files_has_no_object_for_each(tmp_path: Path) -> None:
    """A hundred thousand files are planned from columns, in a second or two."""
    table = Table.create(tmp_path, "id BIGINT, p INT", partition_by=["p"])
    count = 100_000
    values = [[("p", str(number % 50))] for number in range(count)]
    files = pa.table(
        {
            "path": [f"p={number % 50}/part-{number:06}.parquet" for number in range(count)],
            "partition_values": pa.array(values, pa.map_(pa.string(), pa.string())),
            "size": pa.array([100_000] * count, pa.int64()),
            "modification_time": pa.array(range(count), pa.int64()),
            "stats": ['{"numRecords":10}'] * count,
        }
    )
    with Transaction.on(table.snapshot) as transaction:
        transaction.add(files)
    plan: RewritePlan = table.refresh().optimize(plan=True)
    assert (plan.files_removed, plan.candidates.considered, plan.candidates.groups) == (count, count, 50)
    assert plan.files_added == len(plan.bins) == 100
    assert plan.bytes_read == count * 100_000
    assert "100,000 files" in str(plan)
    assert "OPTIMIZE plan" in plan._repr_html_()
    first = plan.bins.bin(0).files["path"].to_pylist()
    assert first == sorted(first)


# ----------------------------------------------------------------------------------------------------- tasks
@pytest.mark.findings("F02")  # files are damaged
def test_tasks_write_the_same_files_as_threads(tmp_path: Path) -> None:
    properties = {"delta.enableRowTracking": "true", **VECTORS}
    table = Table.create(tmp_path / "a", "id BIGINT, p INT", partition_by=["p"], properties=properties)
    for number in range(3):
        table.append({"id": list(range(number * 12, number * 12 + 12)), "p": [i % 6 for i in range(12)]})
    table.delete("id % 7 = 0")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    before, tasks = content(table), PickledTasks()
    plan = plan_optimize(table.snapshot, OptimizeRequest(batch_size=1))
    assert plan.facts()["engine"] == "Arrow in the driver"
    result = in_tasks(plan, tasks).execute()
    assert (tasks.jobs, len(result.versions), result.bins) == ([4, 2], 6, 6)
    assert content(table) == before
    other = Table.open(tmp_path / "b")
    assert other.optimize().metrics == result.metrics
    commits = [one.history(1)[0]["operationMetrics"] for one in (table.refresh(), other)]
    assert commits[0].keys() == commits[1].keys()
    table.append({"id": [99], "p": [0]})
    live = table.snapshot.files(("path",))["path"].to_pylist()
    for path in live:
        (tmp_path / "a" / path).write_bytes(b"no Parquet")
    with pytest.raises(DataFileError):
        in_tasks(plan_optimize(table.snapshot, OptimizeRequest()), tasks).execute()


def test_a_checkpoint_without_statistics_is_read(tmp_path: Path) -> None:
    for number in range(2):
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"{number}.parquet")
    table = Table.convert(tmp_path, statistics=False)
    assert list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    assert table.optimize().removed.count == 2
