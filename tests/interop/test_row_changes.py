"""DELETE and UPDATE by delta-spark and by us on copies of the same table: the same rows, counts, feed and metrics."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as DeltaLake
from pyspark.sql import SparkSession
from tests.interop.conftest import DeltaSparkServer
from tests.interop.content import content
from tests.lengths import FULL

from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.table import Table

# How long steps took, and what depends on how Spark spreads rows over files. Where files are rewritten, delta-spark
# puts changed rows beside those that stay, and we put them in files of their own.
TOLERATED = {
    "executionTimeMs",
    "scanTimeMs",
    "rewriteTimeMs",
    "numAddedFiles",
    "numAddedBytes",
    "numAddedChangeFiles",
    "numRemovedBytes",
}
# From the second statement on, rows lie in other files than with delta-spark, so these depend on it too.
OF_FILES = {
    "numRemovedFiles",
    "numCopiedRows",
    "numDeletionVectorsAdded",
    "numDeletionVectorsRemoved",
    "numDeletionVectorsUpdated",
}
VECTORS, FEED = "'delta.enableDeletionVectors' = 'true'", "'delta.enableChangeDataFeed' = 'true'"
ROW_IDS, MAPPED = "'delta.enableRowTracking' = 'true'", "'delta.columnMapping.mode' = 'name'"
NO_VECTORS = "'delta.enableDeletionVectors' = 'false'"

Change = Callable[[DeltaTable], Any]
STATEMENTS: list[tuple[str, Change]] = [
    ("delete from {} where id % 7 = 3", lambda table: table.delete("id % 7 = 3")),
    (
        "update {} set n = n + 1, s.a = id, v = concat(v, '!') where n = 3 or v is null",
        lambda table: table.update("n = 3 or v is null", {"n": "n + 1", "s.a": "id", "v": "concat(v, '!')"}),
    ),
    (
        "update {} set p = 'moved' where p = 'b' and id < 60",
        lambda table: table.update("p = 'b' and id < 60", {"p": "'moved'"}),
    ),
    ("delete from {} where p = 'c'", lambda table: table.delete("p = 'c'")),
    (
        "delete from {} where n > 5 and id between 20 and 70",
        lambda table: table.delete("n > 5 and id between 20 and 70"),
    ),
    ("delete from {} where id = -1", lambda table: table.delete("id = -1")),
    ("update {} set n = 0", lambda table: table.update(set={"n": "0"})),
    ("delete from {}", lambda table: table.delete()),
]
TABLES = {
    "vectors, feed": ("", f"{VECTORS}, {FEED}"),
    "rewritten, row ids, feed, partitioned": ("partitioned by (p)", f"{NO_VECTORS}, {ROW_IDS}, {FEED}"),
    "vectors, row ids, mapped": ("", f"{VECTORS}, {ROW_IDS}, {MAPPED}"),
}
ROWS = (
    "select id, if(id % 11 = 0, null, concat('v', id)) v, cast(id % 10 as int) n, "
    "named_struct('a', id * 2, 'b', cast(id as string)) s, substr('abc', cast(id % 3 as int) + 1, 1) p "
    "from range({}, {})"
)


@pytest.mark.parametrize("name", TABLES)
def test_changed_as_delta_spark_does(
    name: str, delta_spark_server: DeltaSparkServer, our_spark: SparkSession, tmp_path: Path
) -> None:
    layout, properties = TABLES[name]
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    delta_spark_server.sql(
        f"create table delta.`{theirs}` (id bigint, v string, n int, s struct<a: bigint, b: string>, p string) "
        f"using delta {layout} tblproperties ({properties})",
        f"insert into delta.`{theirs}` {ROWS.format(0, 50)}",
        f"insert into delta.`{theirs}` {ROWS.format(50, 100)}",
    )
    shutil.copytree(theirs, ours)
    table = DeltaTable.forPath(our_spark, str(ours))
    first = 2 * list(TABLES).index(name)  # some for each table, in an order of its own, and all of them together
    some = [*STATEMENTS[first:-1], *STATEMENTS[:first]][:4] if FULL else STATEMENTS[first:-1][: 3 if first == 4 else 2]
    for text, change in [*some, STATEMENTS[-1]]:
        delta_spark_server.sql(text.format(f"delta.`{theirs}`"))
        before = newest(ours)["version"]
        [affected] = change(table).collect()[0]
        expected = content(Table.open(str(theirs)).scan().to_arrow())
        assert content(Table.open(str(ours)).scan().to_arrow()) == expected, text
        their_commit, our_commit = newest(theirs), newest(ours)
        if our_commit["version"] == before:
            assert affected == 0
            continue
        assert our_commit["version"] == their_commit["version"], text
        assert our_commit["operation"] == their_commit["operation"]
        tolerated = TOLERATED if before == 2 else TOLERATED | OF_FILES
        found, wanted = (
            comparable(*commits, tolerated) for commits in ((our_commit, their_commit), (their_commit, our_commit))
        )
        assert found == wanted, text
    for version in (3, our_commit["version"] - 1):
        assert content(delta_spark_server.read(ours, version)) == content(delta_spark_server.read(theirs, version))
    if FEED in properties:
        assert feed(delta_spark_server, ours) == feed(delta_spark_server, theirs)
    if ROW_IDS in properties:
        ids, last = "select id, _metadata.row_id r from delta.`{}` version as of {}", our_commit["version"] - 1
        found = [sorted(map(repr, delta_spark_server.query(ids.format(p, last)).to_pylist())) for p in (ours, theirs)]
        assert found[0] == found[1]
        assert len(found[0]) > 20


def newest(path: Path) -> dict[str, Any]:
    """The newest commitInfo, with the version."""
    file = max(Path(path, "_delta_log").glob("*.json"))
    [info] = [
        action["commitInfo"] for action in map(json.loads, file.read_text().splitlines()) if "commitInfo" in action
    ]
    return {**info, "version": int(file.stem)}


def comparable(commit: dict[str, Any], other: dict[str, Any], tolerated: set[str]) -> dict[str, Any]:
    """The metrics that must be equal: those that both have; of absent ones, only zeros may be there."""
    mine, theirs = ({k: int(v) for k, v in c["operationMetrics"].items()} for c in (commit, other))
    return {k: v for k, v in mine.items() if k not in tolerated and (k in theirs or v)}


def feed(server: DeltaSparkServer, path: Path) -> list[str]:
    changes = server.query(f"select * except (_commit_timestamp) from table_changes_by_path('{path}', 1)")
    return content(pa.table(changes))


def test_parameters_of_the_history_are_delta_sparks(
    delta_spark_server: DeltaSparkServer, our_spark: SparkSession, tmp_path: Path
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    delta_spark_server.sql(f"create table delta.`{theirs}` using delta as select id, id % 2 k from range(10)")
    shutil.copytree(theirs, ours)
    delta_spark_server.sql(
        f"delete from delta.`{theirs}` where id = 3",
        f"update delta.`{theirs}` set id = id + 100 where id < 2",
        f"update delta.`{theirs}` set k = 5",
        f"delete from delta.`{theirs}`",
    )
    table = DeltaTable.forPath(our_spark, str(ours))
    table.delete("id = 3")
    table.update("id < 2", {"id": "id + 100"})
    table.update(set={"k": "5"})
    table.delete()
    found = [
        [
            (c["operation"], [normal(p) for p in json.loads(c["operationParameters"].get("predicate", "[]"))])
            for c in reversed(Table.open(str(path)).history()[:-1])
        ]
        for path in (ours, theirs)
    ]
    assert found[0] == found[1]


def normal(predicate: str) -> str:
    """The text without the ids of attributes, quotes, brackets and suffixes of constants."""
    text = "".join(c for c in predicate if c not in "`()'\"")
    return " ".join(part.split("#")[0].rstrip("L") for part in text.split())


@pytest.mark.parametrize("twice", [False, True])
def test_c172_the_feed_of_a_transaction_is_read_by_others(
    delta_spark_server: DeltaSparkServer, our_spark: SparkSession, tmp_path: Path, twice: bool
) -> None:
    """Its change data files have columns that no reader knows."""
    path = tmp_path / "t"
    delta_spark_server.sql(
        f"create table delta.`{path}` using delta partitioned by (k) tblproperties ({FEED}) "
        "as select id, id % 2 k, map('a', id) m from range(10)"
    )
    with DeltaTable.forPath(our_spark, str(path)).transaction() as txn:
        txn.update("id < 3", {"m": "map('b', id)", "k": "k + 1"})
        if twice:
            txn.update("id < 5", {"m": "map('c', id)"})
        txn.delete("id in (2, 7)")
    table = Table.open(str(path)).changes(1).to_arrow().drop_columns("_commit_timestamp")
    assert table.num_rows == (10 if twice else 6)
    assert feed(delta_spark_server, path) == content(table)
    theirs = pa.table(DeltaLake(path).load_cdf(starting_version=1))
    assert content(theirs.select(table.schema.names)) == content(table)
