from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.change_tables import FILES, ChangeTable, changed_files, write_change_table
from benchmarks.data_tables import DataTable, write_data_table
from benchmarks.datasets import Datasets
from benchmarks.json_logs import JsonLog, time_of, write_json_log
from benchmarks.model import dataset
from benchmarks.workloads.plans import files_in_plan

from pyspark_delta.table import Table

deltalake = pytest.importorskip("deltalake")


@pytest.mark.parametrize(
    ("shape", "rows"),
    [
        ({}, 1000),
        ({"partitions": 2}, 1000),
        ({"mapped": True}, 1000),
        ({"deleted": 0.1}, 900),
        ({"deleted": 0.1, "every": 4}, 975),
    ],
)
def test_data_is_read_alike_by_a_peer(tmp_path: Path, shape: dict[str, Any], rows: int):
    write_data_table(tmp_path / "t", DataTable(rows=1000, files=4, **shape))
    ours = Table.open(tmp_path / "t").scan(columns=["id", "amount", "name"]).to_arrow().sort_by("id")
    reader = deltalake.DeltaTable(str(tmp_path / "t")).scan(columns=["id", "amount", "name"])
    theirs = pa.table(reader.read_all()).cast(ours.schema).sort_by("id")
    assert ours.num_rows == rows
    assert ours == theirs


@pytest.mark.parametrize(
    ("kind", "commits", "counts"),
    [
        ("appends", 4, {"insert": 400}),
        ("rewrites", 4, {"update_postimage": 200, "update_preimage": 200}),
        ("vectors", FILES + 10, {"delete": 400}),
    ],
)
def test_change_tables_have_so_many_changes(tmp_path: Path, kind: str, commits: int, counts: dict[str, int]):
    made_of = ChangeTable(kind, commits, changes=400)
    write_change_table(tmp_path / "t", made_of)
    columns = ["id", "amount", "_change_type", "_commit_version"]
    ours = Table.open(tmp_path / "t").changes(1, columns=columns).to_arrow()
    found = {one["values"]: one["counts"] for one in ours["_change_type"].value_counts().to_pylist()}
    assert found == counts
    assert all((tmp_path / "t" / name).exists() for name in changed_files(made_of, 2))
    reader = deltalake.DeltaTable(str(tmp_path / "t")).load_cdf(starting_version=1, columns=columns)
    order = [("_commit_version", "ascending"), ("id", "ascending"), ("_change_type", "ascending")]
    theirs = pa.table(reader.read_all()).select(columns).cast(ours.schema)
    assert ours.sort_by(order) == theirs.sort_by(order)


def test_json_logs_remove_the_oldest_files(tmp_path: Path):
    write_json_log(tmp_path / "t", JsonLog(commits=10, adds=5, removes=2))
    table = Table.open(tmp_path / "t", timestamp=time_of(9) + 1)
    assert table.version == 9
    theirs = deltalake.DeltaTable(str(tmp_path / "t"), version=9).file_uris()
    assert table.files().num_rows == len(theirs) == 9 * 5 - 8 * 2


def test_compacted_json_logs_give_the_same_files(tmp_path: Path):
    write_json_log(tmp_path / "plain", JsonLog(commits=10, adds=5, removes=2))
    write_json_log(tmp_path / "compacted", JsonLog(commits=10, adds=5, removes=2, compacted=4))
    plain, compacted = Table.open(tmp_path / "plain"), Table.open(tmp_path / "compacted")
    assert [(c.start, c.end) for c in compacted.snapshot.segment.compactions] == [(1, 4), (5, 8)]
    assert compacted.files().sort_by("path") == plain.files().sort_by("path")


def test_a_dataset_is_made_once(tmp_path: Path):
    said: list[str] = []
    datasets = Datasets(tmp_path, said.append)
    first = datasets(dataset("data", rows=10, files=1))
    assert datasets(dataset("data", files=1, rows=10)) == first
    assert len(said) == 1
    assert Table.open(first).scan().to_arrow().num_rows == 10


@pytest.mark.parametrize(
    ("plan", "files"),
    [
        ("Parquet SCAN [/t/a.parquet]\nPROJECT */9 COLUMNS", 1),
        ("Parquet SCAN [/t/a.parquet, ... 14 other sources]\nPROJECT */9 COLUMNS", 15),
        ("DF []", 0),
    ],
)
def test_polars_says_how_many_files_it_reads(plan: str, files: int):
    assert files_in_plan(plan) == files
