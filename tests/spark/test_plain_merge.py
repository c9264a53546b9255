"""Merges that Arrow carries out by itself; `test_engines` compares what all engines do to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from tests.costs import SetCost

from pyspark_delta import DeltaTable, Table
from pyspark_delta.engines.arrow import merge as merging
from pyspark_delta.engines.contract import EngineDeclined
from pyspark_delta.engines.row_changes import ChangedRows
from pyspark_delta.errors import ComputationError, ConstraintViolationError, InvalidOperationError
from pyspark_delta.spark.api.merge_builder import DeltaMergeBuilder
from pyspark_delta.spark.engine.write.save import save


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
    if generated:
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
    assert [rows is not None for rows in tried] == [True, True, False, False]  # Arrow says which column is null


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
