"""Planning scans of real tables: columns, files, residual, and the explanation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError, InvalidPredicateError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.scan.plan import FromFile, PartitionConstant, RowCommitVersion, RowId
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table import Table

Find = Callable[[str], Path]


@pytest.fixture
def partitioned(golden_table: Find) -> Snapshot:
    return Snapshot.load(str(golden_table("dat/multi_partitioned")))


def test_columns_are_planned_by_what_holds_them(partitioned: Snapshot) -> None:
    plan = plan_scan(partitioned, ["NUMBER", "letter"])
    assert plan.schema.names == plan.context.output == ("number", "letter")
    assert [type(column) for column in plan.context.columns] == [FromFile, PartitionConstant]
    assert plan.files.column_names == ["path", "partition_values", "size", "modification_time", "deletion_vector"]
    assert plan_scan(partitioned).schema == partitioned.schema
    assert plan_scan(partitioned, []).schema.names == ()


def test_columns_that_only_the_condition_needs_come_last(partitioned: Snapshot) -> None:
    plan = plan_scan(partitioned, ["letter"], "number > 5 AND letter = 'a'")
    assert [column.field.name for column in plan.context.columns] == ["letter", "number"]
    assert plan.context.output == ("letter",)
    assert plan.context.residual == parse_predicate("number > 5", partitioned.schema)


def test_wrong_columns_are_errors(partitioned: Snapshot) -> None:
    with pytest.raises(InvalidOperationError, match=r"no column 'numbr'.*Did you mean 'number'"):
        plan_scan(partitioned, ["numbr"])
    with pytest.raises(InvalidOptionError, match="twice"):
        plan_scan(partitioned, ["number", "Number"])
    with pytest.raises(InvalidOptionError, match="list of names"):
        plan_scan(partitioned, "number")
    with pytest.raises(InvalidPredicateError, match="Cannot evaluate"):
        plan_scan(partitioned, where="soundex(letter) = 'a'")


def test_opaque_conjuncts_of_an_expression_are_left_to_the_caller(partitioned: Snapshot) -> None:
    where = parse_predicate("number > 5 AND lower(letter) = 'a'", partitioned.schema, on_opaque="keep")
    assert plan_scan(partitioned, where=where).context.residual == parse_predicate("number > 5", partitioned.schema)


def test_an_impossible_condition_reads_nothing(partitioned: Snapshot) -> None:
    for where in ("false", "number = NULL", "number = 5.5"):
        plan = plan_scan(partitioned, where=where)
        assert plan.files.num_rows == 0
        assert plan.files.schema == plan_scan(partitioned).files.schema


def test_row_ids_need_row_tracking(partitioned: Snapshot, golden: Path) -> None:
    with pytest.raises(InvalidOperationError, match="row tracking"):
        plan_scan(partitioned, row_ids=True)
    for log in sorted(golden.glob("*/*/_delta_log")):
        if '"rowTracking"' in "".join(p.read_text("utf-8", "ignore") for p in log.glob("*0.json")):
            plan = plan_scan(Snapshot.load(str(log.parent)), row_ids=True)
            assert [type(c) for c in plan.context.columns[-2:]] == [RowId, RowCommitVersion]
            assert {"base_row_id", "default_row_commit_version"} <= set(plan.files.column_names)
            return
    pytest.fail("no golden table with row tracking")


@pytest.mark.parametrize(
    "where",
    [
        "letter = 'b'",
        "letter <> 'b'",
        "letter IN ('b', 'x') AND number > 0",
        "date = '1970-01-01'",
        "date < '1970-01-01' OR number = 6",
        "number = 6",
        "number > 6",
        "letter IS NULL",
        "NOT (letter = 'b' AND number = 7)",
    ],
)
def test_the_rows_of_a_plan_are_those_a_filter_finds(golden_table: Find, where: str) -> None:
    table = Table.open(golden_table("dat/multi_partitioned"))
    everything = table.scan().to_arrow()
    from pyspark_delta.expressions.evaluate import evaluate

    expected = everything.filter(evaluate(parse_predicate(where, table.schema), everything))
    found = table.scan(where=where).to_arrow()
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_explanation_counts_each_stage(golden_table: Find) -> None:
    table = Table.open(golden_table("dat/multi_partitioned"))
    total = table.files().num_rows
    scan = table.scan(["number"], "letter = 'b' AND number > 1000")
    kept = pc.sum(pc.equal(pc.map_lookup(table.files()["partition_values"], pa.scalar("letter"), "last"), "b")).as_py()
    assert scan.explain().splitlines() == [
        f"Scan of version {table.version}, columns number",
        f"{kept} of {total} files after partition pruning on letter = 'b'",
        f"0 of {kept} file after data skipping on number > 1000L",
        "rows are filtered by number > 1000L",
    ]
    assert [stage.files_after for stage in scan.stages()] == [kept, 0]
    assert "no condition" in table.scan().explain()
    assert "is not a comparison of a column with a constant" in table.scan(where="number + 1 > number").explain()
