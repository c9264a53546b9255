"""Rows of areas ADD, REM and CDC that ordinary readers meet: what add and remove say, and columns of change files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.hand_made import PLAIN, HandMade, add, features, field, metadata, remove

from pyspark_delta.errors import CorruptLogError, InvalidOperationError
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table import Table

COLUMNS = ("path", "partition_values", "size", "modification_time", "stats", "tags", "deletion_vector")
MORE = ("base_row_id", "default_row_commit_version", "clustering_provider")
ROW_TRACKING = ("rowTracking", "domainMetadata", "clustering")


def row_tracking(*extra: str) -> dict[str, Any]:
    """A protocol with row tracking, a feature for writers."""
    return features(*ROW_TRACKING, *extra, reader=extra)


@pytest.fixture
def table(tmp_path: Path) -> HandMade:
    """An empty folder for a table."""
    return HandMade(tmp_path / "table")


def files(table: HandMade, *columns: str) -> list[dict[str, Any]]:
    """The live files with some columns, in order of their paths."""
    return sorted(Snapshot.load(str(table.path)).files(("path", *columns)).to_pylist(), key=lambda row: row["path"])


def vector(offset: int) -> dict[str, Any]:
    """A descriptor; the file need not be there."""
    path = "ab^-aqEH.-t@S}K{vb[*k^"
    return {"storageType": "u", "pathOrInlineDv": path, "offset": offset, "sizeInBytes": 40, "cardinality": 6}


def test_c139_null_and_empty_partition_values_are_null(table: HandMade) -> None:
    adds = [table.data(f"{n}.parquet", {"id": [n]}, {"p": value}) for n, value in enumerate([None, "", "x"])]
    table.commit(0, PLAIN, metadata(field("id"), field("p", "string"), partition=["p"]), *adds)
    rows = Table.open(table.path).scan().to_arrow().sort_by("id")
    assert rows["p"].to_pylist() == [None, None, "x"]


@pytest.mark.parametrize("missing", ["path", "size", "modificationTime"])
def test_c140_required_fields_are_required(table: HandMade, missing: str) -> None:
    action = add("a.parquet")
    del action["add"][missing]
    table.commit(0, PLAIN, metadata(field("id")), action)
    with pytest.raises(CorruptLogError, match=missing) as caught:
        files(table, "size", "modification_time")
    assert caught.value.path.endswith("00000000000000000000.json")


def test_c142_optional_fields_are_read_and_null_equals_absent(table: HandMade) -> None:
    given = {"stats": '{"numRecords":3}', "tags": {"k": "v"}, "deletionVector": vector(1)}
    given |= {"baseRowId": 4071, "defaultRowCommitVersion": 41, "clusteringProvider": "liquid"}
    nulls = dict.fromkeys(given)
    table.commit(
        0, row_tracking("deletionVectors"), metadata(field("id")), add("1", **given), add("2", **nulls), add("3")
    )
    first, second, third = files(table, "stats", "tags", "deletion_vector", *MORE)
    assert dict(first["tags"]) == {"k": "v"}
    assert first["deletion_vector"]["cardinality"] == 6
    assert [first[name] for name in MORE] == [4071, 41, "liquid"]
    assert {**second, "path": ""} == {**third, "path": ""}
    assert all(value is None for name, value in third.items() if name != "path")


def test_c143_a_repeated_add_replaces_what_was_known(table: HandMade) -> None:
    table.commit(0, PLAIN, metadata(field("id")), add("a", size=1, stats='{"numRecords":1}', tags={"x": "1"}))
    table.commit(1, add("a", size=1, stats='{"numRecords":2}', dataChange=False))
    assert files(table, "stats", "tags") == [{"path": "a", "stats": '{"numRecords":2}', "tags": None}]


def test_c143_a_repeated_add_replaces_that_of_a_checkpoint(table: HandMade) -> None:
    table.checkpoint(0, PLAIN, metadata(field("id")), add("a", stats='{"numRecords":1}'), add("b"))
    table.commit(1, add("a", stats='{"numRecords":2}', dataChange=False))
    assert [row["stats"] for row in files(table, "stats")] == ['{"numRecords":2}', None]


@pytest.mark.parametrize("checkpointed", [False, True], ids=["commits", "checkpoint"])
def test_c144_the_key_is_path_and_vector(table: HandMade, checkpointed: bool) -> None:
    start = [features("deletionVectors"), metadata(field("id")), add("a"), add("b", deletionVector=vector(1))]
    if checkpointed:
        table.checkpoint(0, *start)
    else:
        table.commit(0, *start)
    table.commit(1, remove("a"), add("a", deletionVector=vector(60)))
    table.commit(2, remove("b", deletionVector=vector(2)))  # another vector, another file
    assert [(row["path"], row["deletion_vector"]["offset"]) for row in files(table, "deletion_vector")] == [
        ("a", 60),
        ("b", 1),
    ]
    table.commit(3, remove("b", deletionVector=vector(1)))
    assert [row["path"] for row in files(table)] == ["a"]


def test_c150_actions_without_data_change_count_for_the_content(table: HandMade) -> None:
    table.commit(0, PLAIN, metadata(field("id")), add("a"), add("b"))
    table.commit(1, remove("a", dataChange=False), remove("b", dataChange=False), add("ab", dataChange=False))
    assert [row["path"] for row in files(table)] == ["ab"]


def test_c151_partitioned_sample(table: HandMade) -> None:
    path = "date=2017-12-10/part-00000-5ba8cc03-1aee-4ee0-9ef1-5ef2dcdbb3a9.c000.snappy.parquet"
    sample = {
        "add": {
            "path": path,
            "partitionValues": {"date": "2017-12-10"},
            "size": 841454,
            "modificationTime": 1512909768000,
            "dataChange": True,
            "baseRowId": 4071,
            "defaultRowCommitVersion": 41,
            "stats": '{"numRecords":1,"minValues":{"val..."',
        }
    }
    table.commit(0, row_tracking(), metadata(field("id"), field("date", "date"), partition=["date"]), sample)
    (found,) = files(table, *COLUMNS[1:], *MORE)
    assert dict(found["partition_values"]) == {"date": "2017-12-10"}
    assert (found["size"], found["modification_time"]) == (841454, 1512909768000)
    assert [found[name] for name in MORE] == [4071, 41, None]
    scan = Table.open(table.path).scan(where="id > 5 and date = date'2017-12-10'")  # the statistics are cut off
    assert scan.files().num_rows == 1


def test_c152_clustered_sample_the_path_means_nothing(table: HandMade) -> None:
    sample = add("date=2017-12-10/part-00000-a.parquet", 841454, baseRowId=4071, clusteringProvider="liquid")
    table.data("date=2017-12-10/part-00000-a.parquet", {"id": [1]})
    table.commit(0, row_tracking(), metadata(field("id"), field("date", "date")), sample)
    assert [row["clustering_provider"] for row in files(table, "clustering_provider")] == ["liquid"]
    assert Table.open(table.path).scan().to_arrow().to_pylist() == [{"id": 1, "date": None}]


def test_c153_c154_c155_c156_c157_removes_are_read_with_any_of_their_fields(table: HandMade) -> None:
    whole = {
        "deletionTimestamp": 1515488792485,
        "dataChange": False,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": 7,
        "stats": '{"numRecords":1}',
        "deletionVector": vector(1),
        "baseRowId": 4071,
        "defaultRowCommitVersion": 41,
    }
    table.commit(
        0, features("deletionVectors"), metadata(field("id")), add("a", deletionVector=vector(1)), add("b b"), add("c")
    )
    table.commit(1, {"remove": {"path": "a", **whole}}, {"remove": {"path": "b%20b", "dataChange": True}})
    assert [row["path"] for row in files(table)] == ["c"]
    found = {row["path"]: row for row in Snapshot.load(str(table.path)).tombstones().to_pylist()}
    assert found["a"]["deletion_timestamp"] == 1515488792485
    assert found["a"]["size"] == 7
    assert found["b%20b"]["deletion_timestamp"] is None


def test_c160_sample_of_a_remove(table: HandMade) -> None:
    path = "part-00001-9…..snappy.parquet"
    table.commit(0, row_tracking(), metadata(field("id")), add(path), add("b"))
    sample = {"path": path, "deletionTimestamp": 1515488792485, "dataChange": True}
    table.commit(1, {"remove": {**sample, "baseRowId": 4071, "defaultRowCommitVersion": 41}})
    assert [row["path"] for row in files(table)] == ["b"]


def test_c172_c374_columns_outside_the_schema_are_dropped_and_missing_ones_are_null(table: HandMade) -> None:
    data = table.data("a.parquet", {"id": [1, 2], "_change_type": ["insert", "delete"], "extra": [[1], [2]]})
    table.commit(0, PLAIN, metadata(field("id"), field("later", "string")), data)
    assert Table.open(table.path).scan().to_arrow() == pa.table(
        {"id": [1, 2], "later": pa.array([None, None], pa.string())}
    )


def test_c321_row_ids_are_offered_only_where_row_tracking_is_enabled(table: HandMade) -> None:
    data = table.data("a.parquet", {"id": [1, 2]})
    data["add"].update(baseRowId=10, defaultRowCommitVersion=0)
    table.commit(0, row_tracking(), metadata(field("id")), data)
    with pytest.raises(InvalidOperationError, match="row tracking"):
        plan_scan(Snapshot.load(str(table.path)), row_ids=True)
    table.commit(1, metadata(field("id"), configuration=enabled()))
    assert plan_scan(Snapshot.load(str(table.path)), row_ids=True).schema.names[-2:] == (
        "_row_id",
        "_row_commit_version",
    )


def enabled() -> dict[str, str]:
    """The properties of a table whose row ids can be relied on."""
    return {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
    }
