"""DROP FEATURE beside delta-spark: the same commits on copies of a table, which both can read and go on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable as PeerTable
from tests.interop.conftest import DeltaSparkServer
from tests.lengths import FULL

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.table import Table

pytestmark = pytest.mark.spark

TABLES = {  # the feature, and the properties of a table that uses it
    "deletionVectors": "'delta.enableDeletionVectors' = 'true'",
    "columnMapping": "'delta.columnMapping.mode' = 'name'",
    "typeWidening": "'delta.enableTypeWidening' = 'true'",
    "v2Checkpoint": "'delta.checkpointPolicy' = 'v2'",
    "rowTracking": "'delta.enableRowTracking' = 'true'",
    "inCommitTimestamp": "'delta.enableInCommitTimestamps' = 'true'",
    "vacuumProtocolCheck": "'delta.feature.vacuumProtocolCheck' = 'supported'",
}
USUAL = ("deletionVectors",)  # test_drop_feature.py drops each
OTHER = {  # engines that refuse the feature, of those that are installed
    "columnMapping": "polars",
    "typeWidening": "deltalake",
    "v2Checkpoint": "polars",
    "vacuumProtocolCheck": "deltalake",
}


def create(peer: DeltaSparkServer, path: Path, feature: str) -> None:
    own = TABLES[feature]
    vectors = "" if "DeletionVectors" in own else ", 'delta.enableDeletionVectors' = 'false'"
    statements = [
        f"create table delta.`{path}` (id int, p string) using delta partitioned by (p) tblproperties ({own}{vectors})",
        f"insert into delta.`{path}` select /*+ coalesce(1) */ cast(id as int), if(id < 50, 'a', 'b') from range(100)",
        f"delete from delta.`{path}` where id % 10 = 3",
    ]
    if feature == "columnMapping":
        statements.append(f"alter table delta.`{path}` rename column p to q")
    if feature == "typeWidening":
        statements.append(f"alter table delta.`{path}` alter column id type bigint")
    peer.ask("sql", statements=statements)


def history(path: Path) -> list[dict[str, Any]]:
    clear_cache(str(path))
    return Table.open(path).history()


def commits(path: Path, since: int) -> list[tuple[str, Any]]:
    """The operations after a version, with parameters that do not depend on the table."""
    found = []
    for row in reversed(history(path)):
        if row["version"] > since:
            parameters = dict(row["operationParameters"] or {})
            parameters.pop("columns", None)
            found.append((row["operation"], parameters))
    return found


def values(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("feature", TABLES if FULL else USUAL)
def test_both_drop_a_feature_in_the_same_way(
    delta_spark_server: DeltaSparkServer, tmp_path: Path, feature: str
) -> None:
    peer, ours, theirs = delta_spark_server, tmp_path / "ours", tmp_path / "theirs"
    create(peer, ours, feature)
    shutil.copytree(ours, theirs)
    before = Table.open(ours).version
    expected = values(Table.open(ours).scan().to_arrow().to_pylist())
    peer.ask("sql", statements=[f"alter table delta.`{theirs}` drop feature {feature}"])
    Table.open(ours).drop_feature(feature)
    mine, other = Table.open(ours), Table.open(theirs)
    assert mine.protocol == other.protocol
    assert without_numbers(mine) == without_numbers(other)
    assert commits(ours, before) == commits(theirs, before)
    assert values(mine.scan().to_arrow().to_pylist()) == expected
    assert values(peer.read(ours).to_pylist()) == expected
    if OTHER.get(feature) == "polars":
        assert values(pl.read_delta(str(ours)).to_dicts()) == expected
    else:
        assert values(PeerTable(str(ours)).to_pyarrow_table().to_pylist()) == expected
    peer.ask(
        "sql", statements=[f"insert into delta.`{ours}` values (1000, 'c')", f"delete from delta.`{ours}` where id < 5"]
    )
    left = [row for row in expected if row[0] >= 5]
    clear_cache(str(ours))
    assert values(Table.open(ours).scan().to_arrow().to_pylist()) == [*left, (1000, "c")]
    assert values(peer.read(ours).to_pylist()) == [*left, (1000, "c")]


def without_numbers(table: Table) -> dict[str, str]:
    """The properties, without versions."""
    version = "delta.requireCheckpointProtectionBeforeVersion"
    return {name: "" if name == version else value for name, value in table.metadata.configuration.items()}


def test_each_finishes_what_the_other_began(delta_spark_server: DeltaSparkServer, tmp_path: Path) -> None:
    peer = delta_spark_server
    for name, first, second in (("1", drop_by_peer, drop_by_us), ("2", drop_by_us, drop_by_peer)):
        path = tmp_path / name
        create(peer, path, "deletionVectors")
        assert "WAIT_FOR_RETENTION_PERIOD" in first(peer, path)
        assert "HISTORICAL_VERSIONS_EXIST" in second(peer, path)
        if FULL or first is drop_by_peer:
            peer.ask("sql", statements=[f"alter table delta.`{path}` drop feature deletionVectors"])
        else:
            Table.open(path).drop_feature("deletionVectors")
        clear_cache(str(path))
        assert "deletionVectors" not in Table.open(path).protocol.listed_features


def drop_by_us(peer: DeltaSparkServer, path: Path) -> str:
    clear_cache(str(path))
    with pytest.raises(InvalidOperationError) as raised:
        Table.open(path).drop_feature("deletionVectors", truncate_history=True)
    return str(raised.value)


def drop_by_peer(peer: DeltaSparkServer, path: Path) -> str:
    statement = f"alter table delta.`{path}` drop feature deletionVectors truncate history"
    with pytest.raises(AssertionError) as raised:
        peer.ask("sql", statements=[statement])
    return str(raised.value)
