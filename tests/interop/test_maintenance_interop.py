"""RESTORE and VACUUM by turns with delta-spark on one table: rows, history, and the bookmark of lite vacuums."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.interop.conftest import DeltaSparkServer
from tests.lengths import FULL

from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.table import Table

pytestmark = pytest.mark.spark

VERSION = "latestCommitVersionOutsideOfRetentionWindow"
SAME = ("operation", "operationParameters", "isolationLevel", "isBlindAppend")
TABLES = {
    "vectors": "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'",
    "rewritten": "'delta.enableDeletionVectors' = 'false', 'delta.columnMapping.mode' = 'name'",
}


@pytest.fixture(scope="module", params=TABLES if FULL else ["vectors"])
def original(
    request: pytest.FixtureRequest, delta_spark_server: DeltaSparkServer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A table of delta-spark, to copy."""
    path = tmp_path_factory.mktemp("original") / "t"
    columns = "(id bigint, p string) using delta partitioned by (p)"
    delta_spark_server.sql(
        f"create table delta.`{path}` {columns} tblproperties ({TABLES[request.param]})",
        f"insert into delta.`{path}` select /*+ coalesce(1) */ id, if(id < 50, 'a', 'b') from range(100)",
        f"delete from delta.`{path}` where id % 10 = 3",
        f"update delta.`{path}` set p = 'c' where id < 20",
        f"alter table delta.`{path}` set tblproperties ('user.x' = 'y')",
    )
    return path


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "t"))


def rows(path: Path) -> list[tuple[int, str]]:
    found = Table.open(path).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["p"]) for row in found)


def theirs(peer: DeltaSparkServer, path: Path) -> list[tuple[int, str]]:
    return sorted((row["id"], row["p"]) for row in peer.read(path).to_pylist())


def history(path: Path) -> list[dict[str, Any]]:
    clear_cache(str(path))
    return Table.open(path).history()


def test_each_restores_what_the_other_wrote(delta_spark_server: DeltaSparkServer, path: Path, tmp_path: Path) -> None:
    peer, copy = delta_spark_server, tmp_path / "copy"
    shutil.copytree(path, copy)
    for version in (1, 3) if FULL else (3,):
        peer.ask("sql", statements=[f"restore table delta.`{copy}` to version as of {version}"])
        table = Table.open(path)
        result = table.restore(version)
        assert rows(path) == theirs(peer, path) == theirs(peer, copy) == rows(copy)
        ours, expected = history(path)[0], history(copy)[0]
        assert {name: ours[name] for name in SAME} == {name: expected[name] for name in SAME}
        assert ours["operationMetrics"].keys() == expected["operationMetrics"].keys()
        assert ours["operationMetrics"]["numRestoredFiles"] == expected["operationMetrics"]["numRestoredFiles"]
        assert Table.open(path).metadata.configuration.keys() == Table.open(copy).metadata.configuration.keys()
        assert result.version == table.version
    peer.ask("sql", statements=[f"restore table delta.`{path}` to version as of 4"])
    Table.open(copy).restore(5 if FULL else 1)
    assert rows(path) == theirs(peer, path)
    assert rows(copy) == theirs(peer, copy)


@pytest.mark.parametrize("original", ["vectors"], indirect=True)
def test_each_vacuums_after_the_other(delta_spark_server: DeltaSparkServer, path: Path) -> None:
    """Both plan the same files, and lite vacuums of each use and keep the bookmark of the other."""
    peer, table, bookmark = delta_spark_server, Table.open(path), path / "_delta_log" / "_last_vacuum_info"
    expected = [row[0] for row in rows(path)]
    given: dict[str, Any] = {"retention_hours": 0, "enforce_retention_duration": False}
    settings = [
        "set spark.databricks.delta.retentionDurationCheck.enabled = false",
        "set spark.databricks.delta.vacuum.logging.enabled = true",
        "set spark.sql.sources.parallelPartitionDiscovery.parallelism = 1",  # else each listing has thousands of tasks
    ]
    peer.ask("sql", statements=settings)
    planned = set(table.vacuum(mode="full", plan=True, **given).files["path"].to_pylist())
    dry_run = peer.ask("rows", statement=f"vacuum delta.`{path}` retain 0 hours dry run")
    assert planned == {row["path"].removeprefix("file:").removeprefix(f"{path}/") for row in dry_run}
    table.vacuum(mode="full", **given)
    ours, start = json.loads(bookmark.read_bytes()), history(path)[1]
    peer.ask("sql", statements=[f"update delta.`{path}` set p = 'd' where id = 99"])
    peer.ask("sql", statements=[f"vacuum delta.`{path}` lite retain 0 hours"])
    theirs_now, peer_start = json.loads(bookmark.read_bytes()), history(path)[1]
    assert theirs_now[VERSION] > ours[VERSION]
    assert peer_start["operation"] == start["operation"] == "VACUUM START"
    assert {name: peer_start[name] for name in SAME} == {name: start[name] for name in SAME}
    assert peer_start["operationMetrics"].keys() == start["operationMetrics"].keys()
    peer.ask("sql", statements=[f"update delta.`{path}` set p = 'e' where id = 98"])
    clear_cache(str(path))
    plan = Table.open(path).vacuum(mode="lite", plan=True, **given)
    assert plan.files.num_rows
    plan.execute()
    left = Table.open(path).vacuum(mode="full", plan=True, **given)
    assert set(left.by_kind()) <= {"deletion vectors"}  # delta-spark's lite vacuum leaves vectors of live files behind
    assert [row[0] for row in rows(path)] == expected
    assert rows(path) == theirs(peer, path)
