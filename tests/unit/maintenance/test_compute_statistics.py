"""Statistics for files that lack them: equal to those of a writer, for the files and columns that are asked for."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.managed import Warehouse

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.errors import CommitConflictError, InvalidOptionError, MaintenanceNotAllowedError
from pyspark_delta.maintenance import recommitting, statistics
from pyspark_delta.maintenance.budget import Budget
from pyspark_delta.table import Table
from pyspark_delta.transaction.attempts import commit_draft

DATA = pa.table(
    {
        "id": [3, None, 1],
        "s": ["ü" * 40, "b", None],
        "f": [1.5, float("nan"), 0.0],
        "d": [date(2024, 1, 31), None, date(1500, 1, 1)],
        "at": pa.array([datetime(2024, 1, 31, 12, 0, 0, 123456, UTC)] * 3, pa.timestamp("us", "UTC")),
        "m": pa.array([Decimal("-1.50"), None, Decimal("2.00")], pa.decimal128(20, 2)),
        "b": [True, None, None],
        "x": [b"x", None, b""],
        "n": [[1], None, []],
        "st": [{"x": 5, "y": None}, None, {"x": None, "y": "z"}],
    }
)


def stats(table: Table) -> list[dict[str, Any]]:
    texts = Table.open(table.location).files()["stats"].to_pylist()
    return [{} if text is None else json.loads(text) for text in texts]


def without_statistics(path: Path, **options: Any) -> Table:
    """A table of two files, the second with less statistics than the properties of the table ask for."""
    table = Table.write(path, DATA, properties={"delta.dataSkippingNumIndexedCols": "0"}, **options)
    table.alter().unset_properties("delta.dataSkippingNumIndexedCols")
    return table


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_statistics_equal_those_of_a_writer(tmp_path: Path, mapping: str) -> None:
    given = {"delta.columnMapping.mode": mapping, "delta.enableRowTracking": "true"}
    table = Table.create(tmp_path, DATA.schema, properties={**given, "delta.dataSkippingNumIndexedCols": "0"})
    table.append(DATA)
    (bare,) = stats(table)
    assert bare["nullCount"] == {}
    table.alter().unset_properties("delta.dataSkippingNumIndexedCols")
    before = table.refresh().snapshot.files(("path", "base_row_id", "default_row_commit_version", "modification_time"))
    plan = table.compute_statistics(plan=True)
    assert (plan.facts()["files"], plan.facts()["version"]) == (1, 2)
    result = table.compute_statistics(commit_info="why")
    assert (result.version, result.num_files, table.version) == (3, 1, 3)
    (found,) = stats(table)
    table.append(DATA)
    written = [one for one in stats(table) if one != found]
    assert not written or written == [{**found, "tightBounds": True}]
    after = table.snapshot.at_version(3).files(before.column_names)
    assert after.to_pylist() == before.to_pylist()
    commit = table.history()[1]
    assert (commit["operation"], commit["userMetadata"]) == ("COMPUTE STATS", "why")
    assert commit["operationParameters"] == {"predicate": "[]"}
    assert table.compute_statistics().version is None


def test_rows_are_counted_without_indexed_columns(tmp_path: Path) -> None:
    table = Table.write(tmp_path, DATA, properties={"delta.dataSkippingNumIndexedCols": "0"})
    table.compute_statistics(only_missing=False)
    assert [one["numRecords"] for one in stats(table)] == [3]


def test_files_and_columns_are_chosen(tmp_path: Path) -> None:
    table = without_statistics(tmp_path, partition_by=["b"])
    assert table.snapshot.num_files() == 2
    result = table.compute_statistics("b", columns=["id", "st.x"])
    assert result.num_files == 1
    found = [one for one in stats(table) if one.get("minValues")]
    assert [(one["minValues"], one["nullCount"]) for one in found] == [
        ({"id": 3, "st": {"x": 5}}, {"id": 0, "st": {"x": 0}})
    ]
    assert table.history(1)[0]["operationParameters"] == {"predicate": '["b"]'}
    assert table.compute_statistics("b", columns=["id"], plan=True).files.num_rows == 0
    assert table.compute_statistics("b", columns=["id"], only_missing=False, plan=True).files.num_rows == 1
    assert table.compute_statistics(columns=["id"], plan=True).files.num_rows == 1
    for name in ("b", "n.element"):
        with pytest.raises((InvalidOptionError,), match="has no statistics"):
            table.compute_statistics(columns=[name])


def test_deleted_rows_make_bounds_wide(tmp_path: Path) -> None:
    table = without_statistics(tmp_path)
    table.alter().set_properties({"delta.enableDeletionVectors": "true"})
    table.delete("id = 3")
    table.compute_statistics(columns=["id"])
    (found,) = stats(table)
    assert (found["maxValues"]["id"], found["tightBounds"], found["numRecords"]) == (3, False, 3)
    assert table.count() == 2


def test_a_file_that_is_removed_meanwhile_is_a_conflict_and_an_append_is_none(tmp_path: Path) -> None:
    table = without_statistics(tmp_path)
    plan = table.compute_statistics(plan=True)
    Table.open(tmp_path).append(DATA)
    plan.execute()
    plan = table.compute_statistics(only_missing=False, plan=True)
    Table.open(tmp_path).delete("id = 1")
    with pytest.raises(CommitConflictError):
        plan.execute()


def test_a_file_that_is_removed_between_two_commits_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = without_statistics(tmp_path)
    table.append(DATA)
    plan = table.compute_statistics(only_missing=False, plan=True)
    commits = 0

    def commit_and_delete(*args: Any, **options: Any) -> Any:
        nonlocal commits
        state = commit_draft(*args, **options)
        commits += 1
        Table.open(tmp_path).delete()
        return state

    monkeypatch.setattr(statistics, "FILES_PER_COMMIT", 1)
    monkeypatch.setattr(recommitting, "commit_draft", commit_and_delete)
    with pytest.raises(CommitConflictError):
        plan.execute()
    assert commits == 1
    assert Table.open(tmp_path).count() == 0


def test_c478_a_catalog_must_allow_it(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create()
    warehouse.append(1, 2)
    with pytest.raises(MaintenanceNotAllowedError):
        warehouse.open().compute_statistics(only_missing=False)
    managed: Any = managed_table(warehouse.snapshot().catalog_table)
    managed.catalog.allow_maintenance(managed.info.name, [Maintenance.OPTIMIZE])
    assert warehouse.open().compute_statistics(only_missing=False).num_files == 1


def test_a_budget_leaves_files_for_the_next_run(tmp_path: Path) -> None:
    table = without_statistics(tmp_path)
    for _ in range(3):
        table.append(DATA)
    size = table.files()["size"][0].as_py()
    options: Any = {"columns": ["id"], "only_missing": False}
    assert table.compute_statistics(budget=Budget(bytes=2 * size + 200), plan=True, **options).files_left == 2
    assert table.compute_statistics(budget=Budget(bytes=1), **options).num_files == 1
    before = table.version
    done = table.compute_statistics(budget=Budget(seconds=1e-9), **options)
    assert (done.num_files, done.num_files_left, table.version) == (4, 0, before + 1)


def test_commits_of_limited_time_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_FILES_IN_TIME", 1)
    table = without_statistics(tmp_path)
    for _ in range(3):
        table.append(DATA)
    options: Any = {"columns": ["id"], "only_missing": False}
    done = table.compute_statistics(budget=Budget(seconds=1e-9), **options)
    assert (done.num_files, done.num_files_left) == (1, 3)
    before = table.version
    done = table.compute_statistics(budget=Budget(seconds=600, commits=2), **options)
    assert (done.num_files, done.num_files_left, table.version) == (4, 0, before + 2)
