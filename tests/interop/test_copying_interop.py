"""CLONE, CONVERT and GENERATE beside delta-spark: the same results and history, and each uses the other's tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable as PeerTable
from tests.interop.conftest import DeltaSparkServer
from tests.lengths import FULL

from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.table import Table

pytestmark = pytest.mark.spark

SAME = ("operation", "operationParameters", "isolationLevel", "isBlindAppend")
TABLES = {
    "vectors": "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'",
    "mapped": "'delta.enableDeletionVectors' = 'false', 'delta.columnMapping.mode' = 'name', 'user.x' = 'y'",
}


@pytest.fixture(scope="module", params=TABLES if FULL else ["vectors"])
def original(
    request: pytest.FixtureRequest, delta_spark_server: DeltaSparkServer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A table of delta-spark, to copy."""
    path = tmp_path_factory.mktemp("original") / "t"
    delta_spark_server.sql(
        f"create table delta.`{path}` (id bigint, p string) using delta partitioned by (p)"
        f" tblproperties ({TABLES[request.param]})",
        f"insert into delta.`{path}` select /*+ coalesce(1) */ id, if(id < 50, 'a b%', null) from range(100)",
        f"delete from delta.`{path}` where id % 10 = 3",
    )
    return path


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "t"))


def rows(path: Path) -> list[tuple[int, str]]:
    clear_cache(str(path))
    found = Table.open(path).scan().to_arrow().to_pylist()
    return sorted((row["id"], repr(row["p"])) for row in found)


def theirs(peer: DeltaSparkServer, path: Path) -> list[tuple[int, str]]:
    return sorted((row["id"], repr(row["p"])) for row in peer.read(path).to_pylist())


def shared(path: Path, version: int = 0) -> dict[str, Any]:
    commit = next(one for one in Table.open(path).history() if one["version"] == version)
    return {**{name: commit[name] for name in SAME}, "metrics": commit["operationMetrics"]}


def adds(path: Path) -> list[dict[str, Any]]:
    lines = (path / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    return sorted((json.loads(line)["add"] for line in lines if '"add"' in line), key=lambda add: str(add["path"]))


def test_clones_are_equal_and_used_by_both(delta_spark_server: DeltaSparkServer, path: Path, tmp_path: Path) -> None:
    peer, ours, expected, deep = delta_spark_server, tmp_path / "ours", tmp_path / "theirs", tmp_path / "deep"
    (result,) = peer.ask("rows", statement=f"create table delta.`{expected}` shallow clone delta.`{path}`")
    found = Table.open(path).clone(ours)
    assert list(found.as_row().items()) == list(result.items())
    assert shared(ours) == shared(expected)
    one, other = Table.open(ours), Table.open(expected)
    assert one.protocol == other.protocol
    assert one.schema == other.schema
    assert one.metadata.configuration.keys() - {"pyspark_delta.cloneOf"} == other.metadata.configuration.keys()
    mine, wanted = adds(ours), adds(expected)
    assert sorted(add.pop("baseRowId", -1) for add in mine) == sorted(add.pop("baseRowId", -1) for add in wanted)
    assert mine == wanted
    Table.open(path).clone(deep, shallow=False)
    before = rows(path)
    for clone in (ours, expected, deep):
        assert rows(clone) == theirs(peer, clone) == before
        if clone == expected and not FULL:
            continue  # their own clone, which they change as any table of theirs
        peer.sql(
            f"insert into delta.`{clone}` values (1000, 'new')",
            f"delete from delta.`{clone}` where id % 10 = 5",
            f"update delta.`{clone}` set p = 'moved' where id = 7",
        )
        assert rows(clone) == theirs(peer, clone) != before
        peer.sql(f"create table delta.`{clone}-2` shallow clone delta.`{clone}`")
        Table.open(clone).clone(f"{clone}-3", shallow=False)
        assert rows(Path(f"{clone}-2")) == rows(clone) == theirs(peer, Path(f"{clone}-3"))
    assert rows(path) == theirs(peer, path) == before
    Table.open(path).delete("id < 50")
    Table.open(path).clone(deep, shallow=False, replace=True)
    assert theirs(peer, deep) == rows(path) == rows(deep)


def test_versions_are_cloned_alike(delta_spark_server: DeltaSparkServer, path: Path, tmp_path: Path) -> None:
    peer, table = delta_spark_server, Table.open(path)
    with_properties = "tblproperties ('user.x' = 'y')"
    peer.sql(f"create table delta.`{tmp_path}/a` shallow clone delta.`{path}` version as of 1 {with_properties}")
    table.clone(tmp_path / "b", version=1, properties={"user.x": "y"})
    assert rows(tmp_path / "b") == rows(tmp_path / "a")
    assert shared(tmp_path / "b") == shared(tmp_path / "a")
    assert len(rows(tmp_path / "b")) == 100


FLAT = "id, cast(id as tinyint) b, cast(id / 3 as decimal(12, 2)) m, 'ü' s, timestamp'2024-01-31 12:00:00' at"
PARTITIONED = "id, id / 2 x, array(id) l, named_struct('a', id) st, date'2024-01-31' day, cast(id % 3 as int) n"
ODD = "id, map('k', id) m, if(id % 3 = 0, null, concat('a b/%:=', id % 3)) p"
ALL = f"{PARTITIONED}, {FLAT.removeprefix('id, ')}"
PARQUET = {  # declared partition columns, and the rows
    "flat": ("", FLAT),
    "partitioned": ("day date, n int", ALL),
    "odd values": ("p string", ODD),
}


@pytest.mark.parametrize("kind", PARQUET if FULL else ["partitioned", "odd values"])
def test_conversions_are_equal(delta_spark_server: DeltaSparkServer, tmp_path: Path, kind: str) -> None:
    peer, ours, expected = delta_spark_server, tmp_path / "ours", tmp_path / "theirs"
    declared, select = PARQUET[kind]
    by = f"partitioned by ({', '.join(name.split()[0] for name in declared.split(', '))})" if declared else ""
    source = f"select /*+ coalesce(1) */ {select} from range(20)"
    peer.sql(f"create table source_{kind.replace(' ', '_')} using parquet {by} location '{expected}' as {source}")
    shutil.copytree(expected, ours)
    clause = f" partitioned by ({declared})" if declared else ""
    peer.sql(f"convert to delta parquet.`{expected}`{clause}")
    inferred = Table.convert(ours, plan=True)
    table = Table.convert(ours, partition_schema=declared or None)
    other = Table.open(expected)
    assert inferred.configuration is not None
    assert inferred.configuration.schema == table.schema
    assert table.schema == other.schema
    assert (table.partition_columns, table.protocol) == (other.partition_columns, other.protocol)
    assert shared(ours) == shared(expected)
    for mine, wanted in zip(adds(ours), adds(expected), strict=True):
        assert {name: mine[name] for name in ("path", "partitionValues", "size")} == {
            name: wanted[name] for name in ("path", "partitionValues", "size")
        }
        stats, theirs_ = json.loads(mine["stats"]), json.loads(wanted["stats"])
        assert stats["numRecords"] == theirs_["numRecords"]
        for part in ("minValues", "maxValues", "nullCount"):  # ours has no number of nulls for lists
            assert stats[part] == {name: value for name, value in theirs_[part].items() if name in stats[part]}
            assert theirs_[part].keys() - stats[part].keys() <= {"l", "m"}
    assert sorted(map(repr, peer.read(ours).to_pylist())) == sorted(map(repr, peer.read(expected).to_pylist()))
    assert sorted(PeerTable(str(ours)).to_pyarrow_table()["id"].to_pylist()) == list(range(20))
    assert table.count() == 20
    peer.sql(f"delete from delta.`{ours}` where id < 5")
    clear_cache(str(ours))
    assert Table.open(ours).count() == 15


def test_a_conversion_with_its_log_elsewhere_is_used_by_others(
    delta_spark_server: DeltaSparkServer, tmp_path: Path
) -> None:
    peer, source, path = delta_spark_server, tmp_path / "a b%20ü", tmp_path / "t"
    files = "create table elsewhere_source using parquet partitioned by (p) location"
    peer.sql(f"{files} '{source}' as select /*+ coalesce(1) */ {ODD} from range(20)")
    before = {file: file.read_bytes() for file in source.rglob("*.parquet")}
    table = Table.convert(source, where_delta_lies=path)
    expected = sorted(map(repr, peer.query("select id, p from elsewhere_source").to_pylist()))
    assert sorted(map(repr, table.scan(columns=["id", "p"]).to_arrow().to_pylist())) == expected
    assert sorted(map(repr, peer.query(f"select id, p from delta.`{path}`").to_pylist())) == expected
    peer.sql(
        f"insert into delta.`{path}` select 100, map(), 'new'",
        f"delete from delta.`{path}` where id < 5",
        "set spark.databricks.delta.retentionDurationCheck.enabled = false",
        "set spark.sql.sources.parallelPartitionDiscovery.parallelism = 1",  # 10,000 tasks list directories otherwise
        f"vacuum delta.`{path}` retain 0 hours",
        "reset spark.databricks.delta.retentionDurationCheck.enabled",
        "reset spark.sql.sources.parallelPartitionDiscovery.parallelism",
    )
    clear_cache(str(path))
    assert sorted(Table.open(path).scan().to_arrow()["id"].to_pylist()) == [*range(5, 20), 100]
    assert {file: file.read_bytes() for file in source.rglob("*.parquet")} == before


@pytest.mark.parametrize("by", ["", "partitioned by (p)"])
def test_manifests_are_equal(delta_spark_server: DeltaSparkServer, tmp_path: Path, by: str) -> None:
    peer, path = delta_spark_server, tmp_path / "t"
    root = path / "_symlink_format_manifest"
    peer.sql(
        f"create table delta.`{path}` (id bigint, p string) using delta {by}"
        " tblproperties ('delta.enableDeletionVectors' = 'false')",
        f"insert into delta.`{path}` select id, if(id % 3 = 0, null, concat('a b/%:ü', id % 3)) from range(10)",
        f"generate symlink_format_manifest for table delta.`{path}`",
    )

    def manifests() -> dict[str, list[str]]:
        found = root.rglob("manifest")
        return {str(file.relative_to(root)): sorted(file.read_text().splitlines()) for file in found}

    expected = manifests()
    shutil.rmtree(root)
    Table.open(path).generate()
    assert manifests() == expected
