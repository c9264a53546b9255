"""What tables ask of new rows: conditions, computed columns, identity numbers (INV, CHK, GEN, DEF, IDN)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.costs import ENGINES, SetCost
from tests.hand_made import Json, field, struct_of
from tests.spark.rule_cases import identity, mark_of, rows_in, table_of

from pyspark_delta.errors import ConstraintViolationError, DeltaError, InvalidOperationError
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.table import Table


def append(spark: SparkSession, location: str, select: str) -> int | None:
    return save(spark.sql(f"select {select}"), location, "append")


def refused(spark: SparkSession, location: str, select: str, error_class: str) -> DeltaError:
    """The error of an append, after which the table is as it was."""
    before = Table.open(location).version
    with pytest.raises(DeltaError) as raised:
        append(spark, location, select)
    assert raised.value.error_class == error_class
    assert Table.open(location).version == before
    return raised.value


# -------------------------------------------------------------------------------------------------- conditions
def test_c381_c382_rows_that_break_an_invariant_abort(spark: SparkSession, tmp_path: Path) -> None:
    invariant = {"delta.invariants": '{"expression":{"expression":"x > 3"}}'}
    table = table_of(tmp_path / "t", field("x", "integer", **invariant), field("y"))
    append(spark, table, "4 x, 1L y")
    error = refused(spark, table, "id x, id * 2 y from range(3, 9)", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    assert isinstance(error, ConstraintViolationError)
    assert error.facts == {"constraint": "x", "expression": "x > 3", "values": {"x": "3"}}
    assert "\n - x : 3\n" in str(error)
    assert error.getSqlState() == "23001"
    refused(spark, table, "cast(null as int) x", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    refused(spark, table, "1L y", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    assert rows_in(table) == [{"x": 4, "y": 1}]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_null_struct_has_no_not_null_member(
    delta_spark: SparkSession, tmp_path: Path, cost: SetCost, engine: str
) -> None:
    """As in delta-spark, whose INSERT, UPDATE and MERGE refuse it."""
    cost(delta_spark, **ENGINES[engine])
    table = f"delta.`{tmp_path / 't'}`"
    delta_spark.sql(f"CREATE TABLE {table} (id INT, s STRUCT<x: INT NOT NULL, y: INT>)")
    delta_spark.sql(f"INSERT INTO {table} VALUES (1, named_struct('x', 1, 'y', null))")
    null = "CAST(NULL AS STRUCT<x: INT, y: INT>)"
    for statement in (
        f"INSERT INTO {table} SELECT 2, {null}",
        f"INSERT INTO {table} (id) VALUES (2)",
        f"INSERT INTO {table} SELECT 2, named_struct('x', CAST(NULL AS INT), 'y', 1)",
        f"UPDATE {table} SET s = NULL",
        f"MERGE INTO {table} t USING (SELECT 2 id, {null} s) n ON t.id = n.id WHEN NOT MATCHED THEN INSERT *",
        f"MERGE INTO {table} t USING (SELECT 1 id) n ON t.id = n.id WHEN MATCHED THEN UPDATE SET s = NULL",
    ):
        with pytest.raises(ConstraintViolationError, match=r"The column 's\.x' is NOT NULL") as raised:
            delta_spark.sql(statement)
        assert raised.value.error_class == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    assert rows_in(str(tmp_path / "t")) == [{"id": 1, "s": {"x": 1, "y": None}}]
    assert Table.open(tmp_path / "t").version == 1


def test_c380_c381_invariants_of_nested_and_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    odd = "grö.ße `x`"
    nested = struct_of(field("in.ner", "integer", **{"delta.invariants": "`s`.`in.ner` < 5"}))
    table = table_of(
        tmp_path / "t", field("s", nested), field(odd, "string", **{"delta.invariants": "`grö.ße ``x``` like 'ü%'"})
    )
    append(spark, table, "named_struct('in.ner', 4) s, 'üx' `grö.ße ``x```")
    error = refused(
        spark, table, "named_struct('in.ner', 5) s, 'ü' `grö.ße ``x```", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    )
    assert error.facts["values"] == {"s": "{5}"}
    error = refused(
        spark, table, "named_struct('in.ner', 1) s, 'x' `grö.ße ``x```", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    )
    assert error.facts["values"] == {odd: "x"}
    assert rows_in(table) == [{"s": {"in.ner": 4}, odd: "üx"}]


def test_c385_c387_constraints_hold_for_every_new_row(spark: SparkSession, tmp_path: Path) -> None:
    constraints = {"delta.constraints.positive": "a > 0 AND A < b", "delta.constraints.text": "s IN ('a > 0', 'b')"}
    table = table_of(
        tmp_path / "t",
        field("a", "integer"),
        field("b"),
        field("s", "string"),
        partition=["s"],
        configuration=constraints,
    )
    append(spark, table, "1 a, 2L b, 'b' s union all select 5, 6, 'a > 0'")
    append(spark, table, "1 a, 2L b, 'b' s where false")
    for row in ("0 a, 1L b, 'b' s", "null a, 1L b, 'b' s", "3 a, 3L b, 'b' s", "1L b, 'b' s"):
        error = refused(spark, table, row, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
        assert error.facts["constraint"] == "positive"
        assert set(error.facts["values"]) == {"a", "b"}
    error = refused(spark, table, "1 a, 2L b, 'no' s", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    assert error.facts["values"] == {"s": "no"}
    assert len(rows_in(table)) == 2


def test_c381_c385_c416_conditions_see_null_for_empty_partition_values(spark: SparkSession, tmp_path: Path) -> None:
    """An empty string or binary value of a partition column is stored as null."""
    invariant = {"delta.invariants": '{"expression":{"expression":"length(b) < 3"}}'}
    table = table_of(
        tmp_path / "t",
        field("p", "string", CURRENT_DEFAULT="''"),
        field("b", "binary", **invariant),
        field("v", "string"),
        field("n", "string", **{"delta.generationExpression": "coalesce(p, 'none')"}),
        partition=["p", "b"],
        configuration={"delta.constraints.given": "p is not null or v = 'any'"},
    )
    append(spark, table, "'' p, X'41' b, 'any' v")
    append(spark, table, "X'41' b, 'any' v, 'none' n")
    for broken, values in (
        ("'' p, X'41' b, '' v", {"p": None, "v": ""}),
        ("X'41' b, '' v", {"p": None, "v": ""}),
        ("'x' p, X'' b, '' v", {"b": None}),
        ("'' p, X'41' b, 'any' v, '' n", {"n": "", "p": None}),
    ):
        error = refused(spark, table, broken, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
        assert error.facts["values"] == values
    row = {"p": None, "b": b"A", "v": "any", "n": "none"}
    assert rows_in(table) == [row, row]


def test_c390_c416_generated_partition_values_that_are_empty(spark: SparkSession, tmp_path: Path) -> None:
    """They are null; a row may give them as the expression does, or as readers get them."""
    generation = {"delta.generationExpression": "left(v, 1)"}
    binary = {"delta.generationExpression": "cast(left(v, 1) as binary)"}
    table = table_of(
        tmp_path / "t",
        field("v", "string"),
        field("p", "string", **generation),
        field("b", "binary", **binary),
        partition=["p", "b"],
        configuration={"delta.constraints.given": "p is not null or v = ''"},
    )
    for given in ("'' v", "'' v, '' p, X'' b", "'' v, null p, cast(null as binary) b", "'ab' v, 'a' p"):
        append(spark, table, given)
    refused(spark, table, "'ab' v, '' p", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    refused(spark, table, "cast(null as string) v", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    assert [(row["v"], row["p"], row["b"]) for row in rows_in(table)] == [("", None, None)] * 3 + [("ab", "a", b"a")]


def test_c416_no_row_meets_a_replace_where_on_an_empty_partition_value(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", field("p", "string"), field("v", "string"), partition=["p"])
    append(spark, table, "'' p, 'old' v")
    rows = spark.sql("select '' p, 'new' v")
    with pytest.raises(ConstraintViolationError, match="replaceWhere") as caught:
        save(rows, table, "overwrite", options={"replaceWhere": "p = ''"})
    assert caught.value.error_class == "DELTA_REPLACE_WHERE_MISMATCH"
    save(rows, table, "overwrite", options={"replaceWhere": "p is null"})
    save(rows, table, "overwrite", options={"partitionOverwriteMode": "dynamic"})
    assert rows_in(table) == [{"p": None, "v": "new"}]


def test_c387_rows_that_a_limit_or_join_drops_break_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", field("a"), configuration={"delta.constraints.small": "a < 10"})
    rows = spark.range(0, 100, 1, 1).selectExpr("id as a")
    save(rows.limit(10), table, "append")
    save(rows.join(spark.range(3).selectExpr("id as a"), "a"), table, "append")
    save(rows.where("a between 5 and 9"), table, "append")
    assert len(rows_in(table)) == 18


def test_conditions_see_the_types_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(
        tmp_path / "t",
        field("a", "integer"),
        field("type", "string", **{"delta.generationExpression": "typeof(a)"}),
        configuration={"delta.constraints.c": "a IS NOT NULL"},
    )
    append(spark, table, "7L a")
    assert rows_in(table) == [{"a": 7, "type": "int"}]
    error = refused(spark, table, "shiftleft(1L, 40) a", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE")
    assert error.facts["values"] == {"a": str(1 << 40)}


def test_declared_lengths_of_texts_bind(spark: SparkSession, tmp_path: Path) -> None:
    declared = "__CHAR_VARCHAR_TYPE_STRING"
    array = {"type": "array", "elementType": "string", "containsNull": True}
    table = table_of(
        tmp_path / "t",
        field("v", "string", **{declared: "varchar(3)"}),
        field("l", array, **{declared: "array<char(2)>"}),
    )
    append(spark, table, "'abc' v, array('ab', null) l")
    append(spark, table, "'üöä' v")
    assert refused(spark, table, "'abcd' v", "DELTA_EXCEED_CHAR_VARCHAR_LIMIT").getSqlState() == "22001"
    refused(spark, table, "array('a', 'abc') l", "DELTA_EXCEED_CHAR_VARCHAR_LIMIT")
    assert len(rows_in(table)) == 2


# ---------------------------------------------------------------------------------------------------- NOT NULL
NOT_NULL = struct_of(field("y", "long", nullable=False), field("z", "long"))


@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        (field("c", "long", nullable=False), "1L", "cast(null as long)"),
        (field("c", NOT_NULL), "named_struct('y', 1L, 'z', null)", "named_struct('y', cast(null as long), 'z', 1L)"),
        (
            field("c", {"type": "array", "elementType": "long", "containsNull": False}),
            "array(1L, 2L)",
            "array(1L, null)",
        ),
        (
            field("c", {"type": "array", "elementType": NOT_NULL, "containsNull": True}),
            "array(named_struct('y', 1L, 'z', null), null)",
            "array(null, named_struct('y', cast(null as long), 'z', 1L))",
        ),
        (
            field("c", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False}),
            "map('a', 1L)",
            "map('a', cast(null as long))",
        ),
        (
            field("c", {"type": "map", "keyType": NOT_NULL, "valueType": NOT_NULL, "valueContainsNull": True}),
            "map(named_struct('y', 1L, 'z', null), null)",
            "map(named_struct('y', 1L, 'z', 1L), named_struct('y', cast(null as long), 'z', 1L))",
        ),
    ],
)
def test_not_null_binds_at_every_level(spark: SparkSession, tmp_path: Path, column: Json, good: str, bad: str) -> None:
    table = table_of(tmp_path / "t", field("id", "integer"), column)
    append(spark, table, f"1 id, {good} c")
    if column["type"] == NOT_NULL:
        assert refused(spark, table, "2 id, null c", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED").facts["column"] == "c.y"
    elif column["nullable"]:
        append(spark, table, "2 id, null c")
    error = refused(spark, table, f"3 id, {bad} c", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED")
    assert error.getSqlState() == "23502"
    assert error.facts["column"].startswith("c")


def test_a_not_null_column_must_be_there(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", field("id"), field("p", "string", nullable=False), partition=["p"])
    refused(spark, table, "1L id", "DELTA_MISSING_NOT_NULL_COLUMN_VALUE")
    refused(spark, table, "1L id, if(rand() < 2, null, 'x') p", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED")


# ------------------------------------------------------------------------------------------- computed columns
def test_c390_generated_columns_are_computed_or_must_be_equal(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(
        tmp_path / "t",
        field("day.of", "date", **{"delta.generationExpression": "CAST(ts AS DATE)"}),
        field("ts", "timestamp"),
        field("half", "decimal(5,1)", **{"delta.generationExpression": "n / 2"}),
        field("n", "integer"),
        partition=["day.of"],
    )
    append(spark, table, "timestamp'2024-02-29 12:00:00' ts, 3 n")
    append(spark, table, "timestamp'2024-02-29 12:00:00' ts, 3 n, date'2024-02-29' `day.of`, 1.5 half")
    append(spark, table, "null ts, cast(null as date) `day.of`")
    error = refused(spark, table, "3 n, 1.4 half", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    assert error.facts["values"] == {"half": "1.4", "n": "3"}
    refused(spark, table, "timestamp'2024-02-29 12:00:00' ts, null `day.of`", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    refused(spark, table, "date'2024-02-29' `day.of`", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    rows = rows_in(table)
    assert [str(row["day.of"]) for row in rows] == ["None", "2024-02-29", "2024-02-29"]
    assert [str(row["half"]) for row in rows] == ["None", "1.5", "1.5"]


def test_c392_defaults_fill_columns_that_rows_lack_and_null_stays(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(
        tmp_path / "t",
        field("id"),
        field("d", "integer", False, CURRENT_DEFAULT="6 * 7"),
        field("s", "string", CURRENT_DEFAULT="'it''s'"),
        field("next", "long", **{"delta.generationExpression": "d + 1"}),
    )
    append(spark, table, "1L id")
    append(spark, table, "2L id, 5 d, cast(null as string) s")
    append(spark, table, "3L id, 6 d, null s")
    assert rows_in(table) == [
        {"id": 1, "d": 42, "s": "it's", "next": 43},
        {"id": 2, "d": 5, "s": None, "next": 6},
        {"id": 3, "d": 6, "s": None, "next": 7},
    ]
    refused(spark, table, "4L id, if(rand() < 2, null, 1) d", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED")


# ------------------------------------------------------------------------------------------------- identity
@pytest.mark.parametrize(("start", "step"), [(1, 1), (10, -5), (-3, 7)])
def test_c397_c399_c401_numbers_are_new_multiples_of_the_step(
    spark: SparkSession, tmp_path: Path, start: int, step: int
) -> None:
    table = table_of(tmp_path / "t", field("v"), identity("id", start, step), partition=[])
    given: list[int] = []
    for tasks, count in ((1, 3), (3, 1000), (7, 5), (1, 40), (2, 0)):
        before = mark_of(table, "id")
        save(spark.range(0, count, 1, tasks).selectExpr("id as v"), table, "append")
        rows = Table.open(table).scan().to_arrow()
        numbers = rows.column("id").to_pylist()
        fresh = sorted(set(numbers) - set(given), reverse=step < 0)
        assert len(numbers) == len(set(numbers)) == len(given) + count
        assert all((n - start) % step == 0 and (n - start) // step >= 0 for n in fresh)
        if fresh:
            assert before is None or (fresh[0] - before) * step > 0
            assert mark_of(table, "id") == fresh[-1]
        else:
            assert mark_of(table, "id") == before
        given = numbers
    assert sorted(given, reverse=step < 0)[:3] == [start, start + step, start + 2 * step]
    assert abs((mark_of(table, "id") or 0) - start) // abs(step) < 64 * len(given)


def test_c398_c399_who_may_give_numbers(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", field("v"), identity("always"), identity("free", explicit=True))
    for select in ("1L v, 5L always", "1L v, null always"):
        error = refused(spark, table, select, "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED")
        assert isinstance(error, InvalidOperationError)
    append(spark, table, "1L v, 77L free")
    append(spark, table, "2L v")
    assert rows_in(table) == [{"v": 1, "always": 1, "free": 77}, {"v": 2, "always": 2, "free": 1}]
    assert (mark_of(table, "always"), mark_of(table, "free")) == (2, 1)


@pytest.mark.parametrize(("mark", "step"), [((1 << 63) - 3, 1), (-(1 << 63) + 3, -1), ((1 << 63) - 1, 1), (0, 1 << 62)])
def test_c400_numbers_beyond_64_bits_are_refused(spark: SparkSession, tmp_path: Path, mark: int, step: int) -> None:
    table = table_of(tmp_path / "t", field("v"), identity("id", 0, step, highWaterMark=mark))
    error = refused(spark, table, "id v from range(0, 10, 1, 1)", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE")
    assert error.facts["constraint"] == "id"


def test_constraints_see_identity_numbers(spark: SparkSession, tmp_path: Path) -> None:
    few = {"delta.constraints.few": "id <= 4"}
    table = table_of(tmp_path / "t", identity("id"), field("v"), configuration=few)
    save(spark.range(0, 4, 1, 1).selectExpr("id as v"), table, "append")
    error = refused(spark, table, "9L v", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    assert error.facts["values"] == {"id": "5"}


def test_c401_an_overwrite_goes_on_counting(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", identity("id"), field("v"))
    for _ in itertools.repeat(None, 2):
        save(spark.range(0, 2, 1, 1).selectExpr("id as v"), table, "overwrite")
    assert [row["id"] for row in rows_in(table)] == [3, 4]
    assert mark_of(table, "id") == 4
