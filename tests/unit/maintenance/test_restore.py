"""RESTORE and undo without Spark: rows of earlier versions, and what never goes back."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable

from pyspark_delta.errors import (
    AppendOnlyTableError,
    ConcurrentAppendError,
    InvalidOperationError,
    InvalidOptionError,
    VersionNotFoundError,
)
from pyspark_delta.maintenance import missing_files
from pyspark_delta.maintenance.restore import plan_restore
from pyspark_delta.table import Table

VECTORS = {"delta.enableDeletionVectors": "true"}


def ids(table: Table) -> list[int]:
    found: list[int] = sorted(Table.open(table.location).scan(columns=["id"]).to_arrow()["id"].to_pylist())
    return found


def make(path: Path, **properties: str) -> Table:
    table = Table.create(path, "id BIGINT, s STRING", properties=properties)
    table.append({"id": list(range(10)), "s": ["a"] * 10})
    return table


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_rows_come_back_and_go(tmp_path: Path, vectors: str) -> None:
    table = make(tmp_path, **{"delta.enableDeletionVectors": vectors})
    table.delete("id < 3")
    table.append({"id": [100], "s": ["x"]})
    table.delete("id > 7")
    assert ids(table) == [3, 4, 5, 6, 7]
    for version, expected in ((1, list(range(10))), (2, list(range(3, 10))), (3, [*range(3, 10), 100]), (0, [])):
        result = table.restore(version)
        assert ids(table) == expected
        assert result.version == table.version
        if vectors == "false":
            peer = PeerTable(str(tmp_path)).to_pyarrow_table() if expected else pa.table({"id": []})
            assert sorted(peer["id"].to_pylist()) == expected


def test_history_and_metrics_have_delta_sparks_names(tmp_path: Path) -> None:
    table = make(tmp_path)
    size = table.snapshot.size_in_bytes()
    table.append({"id": [100], "s": ["x"]})
    more = table.snapshot.size_in_bytes() - size
    result = table.restore(1, commit_info="why")
    commit = table.history(1)[0]
    assert commit["operation"] == "RESTORE"
    assert commit["operationParameters"] == {"version": 1, "timestamp": None}
    assert commit["userMetadata"] == "why"
    assert dict(result.metrics) == {
        "tableSizeAfterRestore": size,
        "numOfFilesAfterRestore": 1,
        "numRemovedFiles": 1,
        "numRestoredFiles": 0,
        "removedFilesSize": more,
        "restoredFilesSize": 0,
    }
    assert commit["operationMetrics"] == {name: str(value) for name, value in result.metrics.items()}


def test_a_timestamp_names_the_version(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append({"id": [100], "s": ["x"]})
    for version in range(3):
        os.utime(tmp_path / "_delta_log" / f"{version:020}.json", (version * 86_400, version * 86_400))
    table.restore(timestamp="1970-01-02 12:00:00")
    assert ids(table) == list(range(10))
    assert table.history(1)[0]["operationParameters"] == {"version": None, "timestamp": "1970-01-02 12:00:00"}
    with pytest.raises(InvalidOptionError, match="either a version or a timestamp"):
        table.restore()
    with pytest.raises(InvalidOptionError, match="either a version or a timestamp"):
        table.restore(1, datetime.now(UTC))


def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.delete("id = 1")
    plan = table.restore(1, plan=True)
    assert (plan.adds.num_rows, plan.removes.num_rows, table.version) == (1, 1, 2)
    assert f"Restore version 1 of '{tmp_path}'" in str(plan)
    assert plan.execute() == 3


def test_declarations_go_back_and_high_water_marks_do_not(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path,
        "id BIGINT, k BIGINT GENERATED ALWAYS AS IDENTITY",
        properties={"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true", **VECTORS},
    )
    table.append({"id": [1, 2]})
    table.alter().add_column("more", "INT").set_properties({"user.note": "x"}).add_constraint("c", "id > 0")
    table.append({"id": [3], "more": [4]})
    highest = int(table.metadata.configuration["delta.columnMapping.maxColumnId"])
    table.restore(1)
    assert table.schema.names == ("id", "k")
    properties = table.metadata.configuration
    assert "user.note" not in properties
    assert "delta.constraints.c" not in properties
    assert int(properties["delta.columnMapping.maxColumnId"]) == highest
    assert {"checkConstraints", "columnMapping"} <= table.protocol.listed_features  # a feature never goes
    table.append({"id": [5]})
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1, 2, 4]  # 3 was taken
    adds = table.snapshot.files(("path", "base_row_id"))["base_row_id"].to_pylist()
    assert sorted(adds) == [0, 3]  # 2 was taken, and restored files keep theirs (C331)


def test_clustering_columns_go_back(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT, s STRING", cluster_by=["id"])
    table.append({"id": [1], "s": ["a"]})
    table.alter().cluster_by("s")
    table.restore(1)
    assert table.snapshot.clustering_columns() == ["id"]
    table.alter().cluster_by()
    table.restore(2)
    assert table.snapshot.clustering_columns() == ["s"]


def test_the_table_before_a_replacement_comes_back_with_its_id(tmp_path: Path) -> None:
    """Streams of the replacement stop, as with delta-spark."""
    first = make(tmp_path).metadata.id
    replacement = Table.create(tmp_path, "other INT", if_exists="replace").metadata.id
    table = Table.open(tmp_path)
    table.restore(1)
    assert table.metadata.id == first != replacement


def test_in_commit_timestamps_stay_enabled(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.alter().set_properties({"delta.enableInCommitTimestamps": "true"})
    table.append({"id": [100], "s": ["x"]})
    kept = {k: v for k, v in table.metadata.configuration.items() if "nCommitTimestamp" in k}
    table.restore(1)
    assert {k: v for k, v in table.metadata.configuration.items() if "nCommitTimestamp" in k} == kept
    assert len(kept) == 3
    assert table.snapshot.commit_info().in_commit_timestamp is not None


def test_the_change_feed_shows_the_difference(tmp_path: Path) -> None:
    table = make(tmp_path, **{"delta.enableChangeDataFeed": "true"}, **VECTORS)
    table.delete("id < 2")
    table.append({"id": [100], "s": ["x"]})
    table.restore(1)
    changed = table.changes(starting_version=table.version).to_arrow().to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in changed) == [
        ("delete", 100),
        ("insert", 0),
        ("insert", 1),
    ]


def test_undo_reverts_the_newest_change_and_again(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.delete("id < 5")
    table.vacuum()  # logs two commits that change nothing
    table.undo()
    assert ids(table) == list(range(10))
    table.undo()
    assert ids(table) == list(range(5, 10))
    table.alter().add_column("more", "INT")
    table.undo()
    assert table.schema.names == ("id", "s")
    new = Table.create(tmp_path / "new", "id INT")
    with pytest.raises(InvalidOperationError, match="creation"):
        new.undo()


@pytest.mark.parametrize("by_listing", [False, True])
def test_missing_files_are_named_or_left_out(tmp_path: Path, monkeypatch: Any, by_listing: bool) -> None:
    if by_listing:
        monkeypatch.setattr(missing_files, "REQUESTS", 0)
    table = make(tmp_path, **VECTORS)
    table.append({"id": [100], "s": ["x"]})
    table.delete("true")
    (gone,) = (file for file in tmp_path.glob("*.parquet") if pq.read_table(file)["id"].to_pylist() == [100])
    gone.unlink()
    with pytest.raises(InvalidOperationError, match=f"1 of its files are gone .*{gone.name}") as caught:
        table.restore(2)
    assert caught.value.facts["files"] == 1
    table.restore(1)
    assert ids(table) == list(range(10))
    table.delete("true")
    table.restore(2, ignore_missing_files=True)
    assert ids(table) == list(range(10))


def test_files_with_missing_vectors_count_as_missing(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT", properties=VECTORS)
    table.append({"id": list(range(20_000))})
    table.delete("id % 3 = 1")
    (vector,) = tmp_path.glob("deletion_vector_*.bin")
    table.delete("true")
    vector.unlink()
    with pytest.raises(InvalidOperationError, match="1 of its files are gone"):
        table.restore(2)
    table.restore(1)
    assert table.count() == 20_000


def test_refusals_come_before_anything_is_written(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(InvalidOperationError, match="nothing to restore"):
        table.restore(1)
    with pytest.raises(VersionNotFoundError):
        table.restore(7)
    table.append({"id": [100], "s": ["x"]})
    table.alter().set_properties({"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyTableError):
        table.restore(1)
    assert table.refresh().version == 3


def test_a_concurrent_append_is_a_conflict(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.delete("id = 1")
    plan = plan_restore(table.snapshot, table.snapshot.at_version(1))
    Table.open(tmp_path).append({"id": [100], "s": ["x"]})
    with pytest.raises(ConcurrentAppendError):
        plan.execute()
