"""Merges that Arrow carries out by itself: the same comes of them as when Spark does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import StructType
from tests.costs import SPARK, TASKS, SetCost

from pyspark_delta import DeltaTable, Table
from pyspark_delta.data.reader import read_plan
from pyspark_delta.engines.arrow import merge as merging
from pyspark_delta.engines.contract import EngineDeclined
from pyspark_delta.engines.row_changes import ChangedRows
from pyspark_delta.errors import ComputationError, ConstraintViolationError, InvalidOperationError
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.api.merge_builder import DeltaMergeBuilder
from pyspark_delta.spark.engine.write.save import save

Merge = Callable[[DeltaMergeBuilder], DeltaMergeBuilder]
TABLE = """
    select id, cast(id % 7 as int) n, case when id % 5 <> 0 then concat('v', id % 3) end v,
        cast(id * 1.25 as decimal(12, 2)) amount,
        case id % 4 when 0 then double('NaN') when 1 then -0.0D else id / 3 end d,
        date_add(date'2024-01-01', cast(id as int)) day, timestamp_seconds(id * 100000 - 5000000000) at,
        named_struct('x', id, 'y', array('a', null)) st, cast(id % 2 as string) p
    from range(0, 60, 1, 6)
"""
SOURCE = """
    select id * 3 as id, cast(id as int) n, case when id % 2 = 0 then 'new' end v, cast(-1.5 as decimal(12, 2)) amount,
        -0.0D d, date'1999-12-31' day, timestamp'1890-01-01 00:00:00' at,
        named_struct('x', -id, 'y', cast(array() as array<string>)) st, cast(id % 3 as string) p, id % 4 = 1 gone
    from range(0, 30) union all select null, 1, 'null', null, null, null, null, null, null, false
"""
NAMES = ("id", "n", "v", "amount", "d", "day", "at", "st", "p")
INSERT = {name: f"s.{name}" for name in NAMES}
KINDS: dict[str, dict[str, Any]] = {
    "vectors": {"options": {"delta.enableDeletionVectors": "true"}},
    "rewritten": {},
    "feed": {"options": {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}},
    "feed, vectors": {
        "options": {
            "delta.enableChangeDataFeed": "true",
            "delta.enableDeletionVectors": "true",
            "delta.enableRowTracking": "true",
            "delta.columnMapping.mode": "id",
        }
    },
    "partitioned": {"partition_by": ["p"], "options": {"delta.enableChangeDataFeed": "true"}},
}
MERGES: dict[str, tuple[str, Merge]] = {
    "upsert": (
        "t.id = s.id",
        lambda m: m.whenMatchedUpdateAll().whenNotMatchedInsertAll(),
    ),
    "clauses in turn": (
        "s.id = t.id and t.n < 6",
        lambda m: (
            m.whenMatchedDelete("s.gone")
            .whenMatchedUpdate("s.n > t.n + 5", {"v": "s.v", "n": "t.n * 2 + s.n", "p": "'moved'"})
            .whenMatchedUpdate("s.v is null", {"amount": "s.amount", "d": "1.5", "st": "s.st"})
            .whenNotMatchedInsert("s.id % 2 = 0", INSERT)
            .whenNotMatchedInsert("s.n > 20", {"id": "s.id", "v": "'late'"})
        ),
    ),
    "inserts": ("t.id = s.id", lambda m: m.whenNotMatchedInsertAll("s.gone")),
    "deletes": ("t.id = s.id and t.p = s.p", lambda m: m.whenMatchedDelete()),
    "deletes and inserts": (
        "t.id = s.id",
        lambda m: m.whenMatchedDelete("t.v = 'v1'").whenNotMatchedInsert(values={"id": F.col("s.id"), "v": "s.v"}),
    ),
    "values as columns": (
        "t.id = s.id",
        lambda m: (
            m.whenMatchedUpdate(F.col("s.gone"), {"n": F.lit(5), "v": F.lit(None), "amount": F.expr("s.amount")})
            .whenMatchedUpdate(set={"n": F.col("t.n") + F.col("s.n") % 5, "d": F.col("s.d").alias("x")})
            .whenNotMatchedInsert(values={"id": F.col("s.id"), "n": -F.col("s.n") * 2, "p": F.coalesce("s.v", "s.p")})
        ),
    ),
    "several keys": (
        "t.v = s.v and s.day = t.day and t.at = s.at and s.amount = t.amount",
        lambda m: m.whenMatchedUpdateAll().whenNotMatchedInsertAll(),
    ),
    "a part of a struct": ("t.st.x = s.id", lambda m: m.whenMatchedUpdate(set={"day": "s.day", "d": "t.d"})),
    "a smaller key": ("s.id = t.n", lambda m: m.whenMatchedDelete()),
}
LEFT: dict[str, tuple[str, Merge]] = {
    "rows of the table alone": ("t.id = s.id", lambda m: m.whenNotMatchedBySourceDelete("t.n = 3")),
    "a condition that is no key": ("t.id > s.id + 55", lambda m: m.whenMatchedDelete()),
    "a function": ("t.id = s.id", lambda m: m.whenMatchedUpdate(set={"v": "upper(s.v)"})),
    "a function in a condition": ("t.id = s.id", lambda m: m.whenMatchedDelete("upper(s.v) = 'NEW'")),
    "a function in a key": ("t.id = s.id and upper(t.v) = 'V0'", lambda m: m.whenMatchedDelete()),
    "a part of a struct": ("t.id = s.id", lambda m: m.whenMatchedUpdate(set={"st.x": "5"})),
    "floating numbers": ("t.d = s.d and t.id = s.n", lambda m: m.whenMatchedUpdate(set={"n": "t.d"})),
}


def taken(monkeypatch: pytest.MonkeyPatch) -> list[ChangedRows | None]:
    """What Arrow made of the merges that it tried."""
    found: list[ChangedRows | None] = []
    merge = merging.merge_in_driver

    def watched(*arguments: Any) -> ChangedRows:
        try:
            found.append(merge(*arguments))
        except (EngineDeclined, ComputationError):
            found.append(None)
            raise
        return cast(ChangedRows, found[-1])

    monkeypatch.setattr(merging, "merge_in_driver", watched)
    return found


def outcome(session: SparkSession, path: Path, kind: str, condition: str, clauses: Merge) -> dict[str, Any]:
    """What a merge makes of a table, as far as it does not depend on who carried it out."""
    save(session.sql(TABLE), str(path), **KINDS[kind])
    table = DeltaTable.forPath(session, str(path))
    table.delete("id = 41")
    before = Table.open(str(path)).version
    result = clauses(table.alias("t").merge(session.sql(SOURCE).alias("s"), condition)).execute().collect()
    after = Table.open(str(path))
    [newest] = after.history(1)
    has_ids = "delta.enableRowTracking" in KINDS[kind].get("options", {})
    rows = read_plan(plan_scan(Snapshot.load(str(path)), row_ids=has_ids)).read_all().to_pylist()
    if has_ids:  # those of new rows depend on the order in which they are written
        rows = [{**row, "_row_id": min(row["_row_id"], 60)} for row in rows]
    feed: list[Any] = []
    if "delta.enableChangeDataFeed" in KINDS[kind].get("options", {}) and after.version > before:
        feed = after.changes(starting_version=before + 1).to_arrow().drop_columns(["_commit_timestamp"]).to_pylist()
    metrics = newest["operationMetrics"]
    kept = {name: n for name, n in metrics.items() if not name.endswith(("TimeMs", "BytesAdded", "FilesAdded"))}
    return {
        "result": result,
        "version": after.version - before,
        "rows": sorted(map(repr, rows)),
        "feed": sorted(map(repr, feed)),
        "metrics": {**kept, "changes": metrics["numTargetChangeFilesAdded"] != "0"},
        "parameters": newest["operationParameters"],
    }


CASES = [
    *((kind, name, False) for name in MERGES for kind in ("feed, vectors", "partitioned")),
    *((kind, name, False) for name in ("upsert", "clauses in turn") for kind in ("vectors", "rewritten", "feed")),
    *(("feed, vectors", name, True) for name in ("clauses in turn", "deletes and inserts", "several keys")),
]


@pytest.mark.parametrize(("kind", "name", "by_workers"), CASES)
def test_c252_the_same_comes_of_a_merge_by_arrow_and_by_spark(
    delta_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cost: SetCost,
    kind: str,
    name: str,
    by_workers: bool,
) -> None:
    if by_workers:
        cost(delta_spark, **TASKS)
    tried = taken(monkeypatch)
    by_arrow = outcome(delta_spark, tmp_path / "arrow", kind, *MERGES[name])
    assert [rows is not None for rows in tried] == [True]
    cost(delta_spark, **SPARK)
    by_spark = outcome(delta_spark, tmp_path / "spark", kind, *MERGES[name])
    assert len(tried) == 1
    assert by_arrow == by_spark
    assert by_arrow["version"] == 1


@pytest.mark.parametrize("name", LEFT)
def test_other_merges_are_left_to_spark(
    delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tried = taken(monkeypatch)
    assert outcome(delta_spark, tmp_path, "vectors", *LEFT[name])["version"] == 1
    assert tried == []


@pytest.mark.parametrize("is_ansi", [True, False])
def test_a_number_too_large_for_its_type_is_what_the_session_says(
    delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ansi: bool
) -> None:
    tried = taken(monkeypatch)
    save(delta_spark.range(0, 40, 1, 4).selectExpr("cast(id as int) id", "2147483600 n"), str(tmp_path))
    table = DeltaTable.forPath(delta_spark, str(tmp_path)).alias("t")
    source = delta_spark.sql("select 3 id, 10 n union all select 30, 100").alias("s")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"n": "t.n + s.n"})
    delta_spark.conf.set("spark.sql.ansi.enabled", is_ansi)
    try:
        if is_ansi:
            with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
                merge.execute()
            assert Table.open(str(tmp_path)).version == 0
        else:
            assert merge.execute().collect() == [(2, 2, 0, 0)]
            rows = Table.open(str(tmp_path)).scan(where="id IN (3, 30)").to_arrow()["n"].to_pylist()
            assert sorted(rows) == [2147483700 - 2**32, 2147483610]
    finally:
        delta_spark.conf.unset("spark.sql.ansi.enabled")
    assert tried == [None]


def test_c381_rows_that_break_a_rule_are_told_by_spark(
    delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = taken(monkeypatch)
    table = (
        DeltaTable.create(delta_spark)
        .location(str(tmp_path))
        .addColumns(StructType.fromDDL("id bigint not null, n int"))
        .property("delta.constraints.small", "n % 1000 < 100")
        .execute()
    ).alias("t")

    def upsert(rows: str) -> DeltaMergeBuilder:
        source = delta_spark.sql(f"select * from values {rows} v(id, n)").alias("s")
        return table.merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()

    assert upsert("(1L, 5), (2L, 1007)").execute().collect() == [(2, 0, 0, 2)]
    with pytest.raises(ConstraintViolationError, match="small") as broken:
        upsert("(1L, 6), (3L, 500)").execute()
    assert "n : 500" in str(broken.value)
    before = set(tmp_path.glob("*.parquet"))
    with pytest.raises(ConstraintViolationError, match="NOT NULL"):
        upsert("(1L, 6), (null, 5)").execute()
    assert set(tmp_path.glob("*.parquet")) == before
    with pytest.raises(InvalidOperationError, match=r"\(id=1\): 2 rows"):
        upsert("(1L, 6), (1L, 7)").execute()
    assert [rows is not None for rows in tried] == [True, False, False]  # Arrow itself says which column is null
    found = Table.open(str(tmp_path))
    assert (found.version, sorted(found.scan().to_arrow()["n"].to_pylist())) == (1, [5, 1007])


@pytest.mark.parametrize("generated", [False, True])
def test_c385_c416_conditions_see_null_for_empty_partition_values(
    delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generated: bool
) -> None:
    tried = taken(monkeypatch)
    builder = DeltaTable.create(delta_spark).location(str(tmp_path))
    builder = builder.addColumns(StructType.fromDDL("id bigint, p string, m string not null"))
    if generated:  # which is for Spark to compute
        builder = builder.addColumn("g", "string", generatedAlwaysAs="coalesce(p, 'none')")
    builder = builder.partitionedBy("p", "m").property("delta.constraints.given", "p is not null or id > 9")
    table = builder.execute().alias("t")

    def upsert(rows: str) -> None:
        source = delta_spark.sql(f"select * from values {rows} v(id, p, m)").alias("s")
        values = {"id": "s.id", "p": "s.p", "m": "s.m"}
        merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set=values)
        merge.whenNotMatchedInsert(values=values).execute()

    upsert("(1L, 'a', 'm'), (11L, '', 'm'), (12L, 'c', 'm')")
    upsert("(12L, '', 'm')")
    for row in ("(1L, '', 'm')", "(2L, '', 'm')", "(11L, 'a', '')"):
        with pytest.raises(ConstraintViolationError):
            upsert(row)
    found = Table.open(str(tmp_path)).scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["p"]) for row in found) == [(1, "a"), (11, None), (12, None)]
    if generated:
        assert sorted(row["g"] for row in found) == ["a", "none", "none"]
    assert [rows is not None for rows in tried] == (
        [] if generated else [True, True, False, False]
    )  # Arrow says itself which column is null


def test_a_source_that_is_large_is_left_to_spark(
    delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost: SetCost
) -> None:
    tried = taken(monkeypatch)
    save(delta_spark.range(0, 40, 1, 4).selectExpr("id", "'old' v"), str(tmp_path))
    table = DeltaTable.forPath(delta_spark, str(tmp_path)).alias("t")
    source = delta_spark.range(30, 50).selectExpr("id", "'new' v").alias("s")

    def upsert() -> list[Any]:
        return table.merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().collect()

    assert upsert() == [(20, 10, 0, 10)]
    cost(delta_spark, source_rows=19)  # Spark's guess of the bytes was too low
    assert upsert() == [(20, 20, 0, 0)]
    assert [rows is not None for rows in tried] == [True]
    cost(delta_spark, source_rows=20, source_bytes=0)
    assert upsert() == [(20, 20, 0, 0)]
    assert [rows is not None for rows in tried] == [True, True]
    cost(delta_spark, source_bytes=0, source_values=39)
    assert upsert() == [(20, 20, 0, 0)]
    assert len(tried) == 2
    cost(delta_spark, source_bytes=0, source_values=40, matched_rows=19)
    assert upsert() == [(20, 20, 0, 0)]
    assert tried[2:] == [None]
