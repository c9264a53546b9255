"""The commands clone, convert, generate and analyze, through the entry point; results are read by deltalake."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.unit.cli.test_cli_changes import done, invoke

from pyspark_delta.table import Table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    Table.write(path, {"id": [1, 2, 3]}).delete("id = 3")
    return path


def ids(table: Path) -> list[int]:
    found: list[int] = sorted(DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist())
    return found


def test_tables_are_cloned(table: Path, tmp_path: Path) -> None:
    plan = done("clone", table, tmp_path / "deep", "--deep", "--plan")
    assert (plan["kind"], plan["files_to_copy"], (tmp_path / "deep").exists()) == ("deep", 1, False)
    result = done("clone", table, tmp_path / "deep", "--deep", "--property", "a=b", "--user-metadata", "why")
    assert (result["version"], result["num_copied_files"], result["copied_files_size"]) == (0, 1, plan["bytes_to_copy"])
    assert ids(tmp_path / "deep") == [1, 2]
    assert DeltaTable(str(tmp_path / "deep")).metadata().configuration["a"] == "b"
    Table.open(table).append({"id": [4]})
    assert done("clone", table, tmp_path / "merged", "--deep", "--merge-files")["num_copied_files"] == 1
    assert ids(tmp_path / "merged") == [1, 2, 4]
    done("clone", table, tmp_path / "old", "--version", "0")
    assert Table.open(tmp_path / "old").count() == 3
    assert "source num of files" in invoke("clone", table, tmp_path / "old", "--replace").stdout
    assert invoke("clone", table, tmp_path / "old").exit_code == 1
    both = invoke("clone", table, tmp_path / "x", "--version", "0", "--timestamp", "2024-01-01")
    assert (both.exit_code, "not both" in both.output) == (2, True)


def test_folders_are_converted_and_analyzed(tmp_path: Path) -> None:
    (tmp_path / "day=2024-01-31").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "day=2024-01-31" / "a.parquet")
    (tmp_path / "day=2024-01-31" / "b.parquet").write_text("no")
    assert invoke("convert", tmp_path).exit_code == 1
    given = (tmp_path, "--skip-unreadable", "--no-statistics")
    plan = done("convert", *given, "--plan")
    assert (plan["files"], plan["files_skipped"], plan["partition_columns"]) == (1, 1, {"day": "date"})
    assert "partition columns\tday=date" in invoke("convert", *given, "--plan").stdout
    assert done("convert", *given, "--partition-by", "day STRING") == {"version": 0, "files": 1}
    assert ids(tmp_path) == [1, 2]
    other = tmp_path / "_elsewhere"
    (tmp_path / "day=2024-01-31" / "b.parquet").unlink()
    shutil.copytree(tmp_path / "day=2024-01-31", other / "files" / "day=2024-01-31")
    done("convert", other / "files", "--where-delta-lies", other / "t")
    assert (Table.open(other / "t").count(), (other / "files" / "_delta_log").exists()) == (2, False)
    assert done("analyze", tmp_path, "--columns", "id", "--plan")["files"] == 1
    assert done("analyze", tmp_path, "--where", "day = 'x'") == {"version": None, "files": 0, "files_left": 0}
    assert done("analyze", tmp_path) == {"version": 1, "files": 1, "files_left": 0}
    assert done("analyze", tmp_path, "--again", "--plan")["files"] == 1
    assert invoke("analyze", tmp_path, "--columns", ",").exit_code == 1


def test_manifests_are_generated(table: Path) -> None:
    assert done("generate", table, "--plan")["files"] == 1
    assert not (table / "_symlink_format_manifest").exists()
    assert done("generate", table) == {"manifests": 1, "manifests_deleted": 0, "files": 1}
    assert (table / "_symlink_format_manifest" / "manifest").read_text().startswith(f"file:{table}/")
    assert invoke("generate", table, "--mode", "other").exit_code == 1
