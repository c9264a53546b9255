"""Rules of rows through Spark Connect: public API only."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.hand_made import field
from tests.spark.rule_cases import identity, mark_of, rows_in, table_of, with_a_file

from pyspark_delta.errors import ConstraintViolationError, InvalidOperationError
from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.spark.engine.write.save import save


def test_c381_c385_c390_c392_c399_all_rules_at_once(plain_connect: SparkSession, tmp_path: Path) -> None:
    table = table_of(
        tmp_path / "t",
        identity("id", 10, 5),
        field("a.b", "integer", **{"delta.invariants": '{"expression":{"expression":"`a.b` > 0"}}'}),
        field("g", "long", **{"delta.generationExpression": "`a.b` * 2"}),
        field("d", "string", CURRENT_DEFAULT="'ü'"),
        configuration={"delta.constraints.few": "id < 1000000"},
    )
    save(plain_connect.range(1, 3, 1, 1).selectExpr("id as `a.b`"), table, "append")
    save(plain_connect.range(0).selectExpr("id as `a.b`"), table, "append")
    save(plain_connect.sql("select 3 as `a.b`, 6L as g, null as d"), table, "append")
    assert rows_in(table) == [
        {"id": 10, "a.b": 1, "g": 2, "d": "ü"},
        {"id": 15, "a.b": 2, "g": 4, "d": "ü"},
        {"id": 20, "a.b": 3, "g": 6, "d": None},
    ]
    assert mark_of(table, "id") == 20
    for broken, values in (("0 as `a.b`", {"a.b": "0"}), ("4 as `a.b`, 5L as g", {"a.b": "4", "g": "5"})):
        with pytest.raises(ConstraintViolationError) as raised:
            save(plain_connect.sql(f"select {broken}"), table, "append")
        assert raised.value.facts["values"] == values
    with pytest.raises(InvalidOperationError, match="GENERATED ALWAYS AS IDENTITY"):
        save(plain_connect.sql("select 1L as id, 1 as `a.b`"), table, "append")
    assert len(rows_in(table)) == 3


def test_c387_c416_conditions_see_null_for_empty_partition_values(plain_connect: SparkSession, tmp_path: Path) -> None:
    bound = {"delta.constraints.given": "p is not null"}
    table = table_of(tmp_path / "t", field("p", "string"), field("v", "string"), partition=["p"], configuration=bound)
    with pytest.raises(ConstraintViolationError, match="given"):
        save(plain_connect.sql("select '' p, '' v"), table, "append")
    assert rows_in(table) == []


@pytest.mark.parametrize("metadata", [{"CURRENT_DEFAULT": "(select 'x')"}, {"delta.generationExpression": "uuid()"}])
def test_hostile_text_is_not_sent_to_the_server(
    plain_connect: SparkSession, tmp_path: Path, metadata: dict[str, str]
) -> None:
    table = table_of(tmp_path / "t", field("id"), field("n", "string", **metadata))
    with_a_file(table)
    with pytest.raises(InvalidOperationError, match="is not evaluated, because its text uses"):
        save(plain_connect.range(3), table, "append")
    with pytest.raises(InvalidOperationError, match="is not evaluated, because its text uses"):
        DeltaTable.forPath(plain_connect, table).update(set={"id": "id + 1"})
    assert rows_in(table) == [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}]
