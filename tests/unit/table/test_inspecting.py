"""Metadata tables and differences of versions: compared with deltalake, DuckDB and the log itself."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from pyspark_delta.errors import InvalidOptionError, VersionNotFoundError
from pyspark_delta.inspection import NAMES
from pyspark_delta.table import Table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    rows = {"id": list(range(10)), "p": ["a", None] * 5}
    table = Table.write(tmp_path / "t", rows, partition_by=["p"], properties={"delta.enableDeletionVectors": "true"})
    table.delete("id < 4")
    table.append({"id": [100], "p": ["c"]})
    table.delete("p = 'c'")
    return table


def test_files_and_partitions_are_those_of_deltalake(tmp_path: Path) -> None:
    columns = {"id": list(range(20)), "p": [n % 3 or None for n in range(20)], "q": ["x y", "z"] * 10}
    table = Table.write(tmp_path / "t", columns, partition_by=["p", "q"])
    table.append({"id": [21], "p": [1], "q": ["z"]})
    files = table.inspect("files").to_arrow()
    peer = pa.table(PeerTable(table.location).get_add_actions(flatten=True))

    def key(row: dict[str, object]) -> str:
        return str(row["path"]).replace("%20", " ").replace("%2520", " ")

    ours = {key(row): row for row in files.to_pylist()}
    theirs = {key(row): row for row in peer.to_pylist()}
    assert len(ours) == len(theirs) == 7
    for path, row in ours.items():
        expected = theirs[path]
        assert (row["size"], row["num_records"]) == (expected["size_bytes"], expected["num_records"])
        assert row["partition"] == {"p": expected["partition.p"], "q": expected["partition.q"]}
        assert row["modification_time"].timestamp() * 1000 == pytest.approx(expected["modification_time"])
    partitions = table.inspect("partitions").to_arrow()
    grouped = duckdb.sql(
        """select "partition", count(*) num_files, sum(size) size, min(size) smallest_file, max(size) largest_file,
        sum(num_records) num_records, sum(num_deleted_records) num_deleted_records,
        max(modification_time) last_modified from files group by all order by 1"""
    ).fetchall()
    assert [tuple(row.values()) for row in partitions.to_pylist()] == sorted(
        grouped, key=lambda row: tuple((value is None, value) for value in row[0].values())
    )


def test_deleted_rows_and_missing_counts_are_shown(table: Table) -> None:
    by_partition = {row["partition"]["p"]: row for row in table.inspect("partitions").to_arrow().to_pylist()}
    assert {p: (row["num_records"], row["num_deleted_records"]) for p, row in by_partition.items()} == {
        "a": (5, 2),
        None: (5, 2),
    }
    log = Path(table.location, "_delta_log", f"{0:020}.json")
    log.write_text(log.read_text().replace("numRecords", "other"))
    table = Table.open(table.location, version=0)
    assert {row["num_records"] for row in table.inspect("partitions").to_arrow().to_pylist()} == {None}


def test_tombstones_say_when_they_expire(table: Table) -> None:
    found = table.inspect("tombstones").to_arrow().to_pylist()
    assert sorted((row["partition"]["p"] or "", row["deletion_vector"] is None) for row in found) == [
        ("", True),
        ("a", True),
        ("c", True),
    ]
    assert {row["expires"] - row["deletion_time"] for row in found} == {timedelta(weeks=1)}


def test_row_groups_are_those_of_duckdb(table: Table) -> None:
    found = table.inspect("row_groups").to_arrow().to_pylist()
    assert len(found) == 2
    for row in found:
        (chunk,) = row["columns"]
        expected = duckdb.sql(
            "select row_group_id, row_group_num_rows, path_in_schema, type, compression, total_compressed_size, "
            "total_uncompressed_size, num_values, stats_null_count "
            f"from parquet_metadata('{table.location}/{row['path']}')"
        ).fetchall()
        assert expected == [
            (
                *(row["row_group"], row["num_rows"], chunk["path"], chunk["type"], chunk["compression"]),
                *(chunk["compressed_size"], chunk["uncompressed_size"], chunk["num_values"], chunk["null_count"]),
            )
        ]


def test_commits_features_and_domains_are_shown(table: Table) -> None:
    history = table.inspect("history").to_arrow().to_pylist()
    peer = PeerTable(table.location).history()
    assert [(row["version"], row["operation"]) for row in history] == [(r["version"], r["operation"]) for r in peer]
    assert dict(history[0]["operationMetrics"])["numDeletedRows"] == "1"
    features = {row["feature"]: row for row in table.inspect("protocol").to_arrow().to_pylist()}
    vectors, append = features["deletionVectors"], features["appendOnly"]
    assert (vectors["kind"], vectors["active"], append["kind"], append["active"]) == (
        "reader-writer",
        True,
        "writer",
        False,
    )
    assert table.inspect("domains").to_arrow().num_rows == 0
    clustered = Table.create(Path(table.location).parent / "c", "id BIGINT", cluster_by=["id"])
    (domain,) = clustered.inspect("domains").to_arrow().to_pylist()
    assert domain == {
        "domain": "delta.clustering",
        "configuration": clustered.snapshot.domains()["delta.clustering"].configuration,
    }


def test_metadata_tables_are_read_as_any_rows(table: Table) -> None:
    for name in NAMES:
        found = table.inspect(name)
        assert found.to_arrow().schema == found.table.schema
        assert found.head(1).num_rows == min(1, found.to_arrow().num_rows)
    assert duckdb.sql("select sum(size) from files", connection=_connection(table)).fetchall() == [
        (table.snapshot.size_in_bytes(),)
    ]
    assert table.inspect("files").to_polars().select("num_records").collect().sum().item() == 10
    with pytest.raises(InvalidOptionError, match="The metadata tables are files, partitions"):
        table.inspect("file")  # type: ignore[arg-type]


def _connection(table: Table) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("files", table.inspect("files").to_arrow())
    return connection


def test_differences_are_those_that_commits_made(table: Table) -> None:
    table.alter().set_properties({"user.a": "1", "delta.columnMapping.mode": "name"})
    before = table.version
    table.alter().set_properties({"user.a": "2", "delta.enableInCommitTimestamps": "true"}).unset_properties(
        "delta.enableDeletionVectors"
    ).rename_column("id", "k").add_column("s", "STRUCT<x: INT>").set_column_comment("p", "a part").set_comment("text")
    table.append({"k": [7], "p": ["n"], "s": [{"x": 1}]})
    found = table.diff(before)
    assert found.files_added["path"].to_pylist() == [
        path
        for path in table.files()["path"].to_pylist()
        if path not in Table.open(table.location, version=before).files()["path"].to_pylist()
    ]
    assert (found.files_removed.num_rows, found.rows) == (0, (6, 7))
    changes = {(row["kind"], row["name"]): (row["before"], row["after"]) for row in found.changes.to_pylist()}
    enabled = table.metadata.configuration
    assert changes == {
        ("column", "k"): ("id long", "k long"),
        ("column", "p"): ("string", 'string {"comment":"a part"}'),
        ("column", "s"): (None, "struct"),
        ("column", "s.x"): (None, "integer"),
        ("table", "description"): (None, "text"),
        ("property", "user.a"): ("1", "2"),
        ("property", "delta.enableDeletionVectors"): ("true", None),
        ("property", "delta.enableInCommitTimestamps"): (None, "true"),
        ("property", "delta.inCommitTimestampEnablementVersion"): (
            None,
            enabled["delta.inCommitTimestampEnablementVersion"],
        ),
        ("property", "delta.inCommitTimestampEnablementTimestamp"): (
            None,
            enabled["delta.inCommitTimestampEnablementTimestamp"],
        ),
        ("property", "delta.columnMapping.maxColumnId"): ("2", "4"),
        ("feature", "inCommitTimestamp"): (None, "supported"),
    }
    assert "column k: id long to k long" in str(found)
    assert found.facts()["declarations_changed"] == len(changes)


def test_another_deletion_vector_is_another_file(table: Table) -> None:
    forth, back = table.diff(0, 1), table.diff(1, 0)
    assert (forth.rows, back.rows) == ((10, 6), (6, 10))
    assert forth.files_added.equals(back.files_removed)
    assert sorted(forth.files_added["path"].to_pylist()) == sorted(forth.files_removed["path"].to_pylist())
    assert (forth.files_added["deletion_vector"].null_count, forth.files_removed["deletion_vector"].null_count) == (
        0,
        2,
    )
    assert table.diff(2, 2).facts() == {
        **table.diff(2, 2).facts(),
        "files_added": 0,
        "files_removed": 0,
        "declarations_changed": 0,
    }
    with pytest.raises(VersionNotFoundError):
        table.diff(99)
    with pytest.raises(InvalidOptionError, match="whole number from 0"):
        table.diff(-1)
