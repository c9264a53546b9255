"""DELETE, UPDATE and MERGE on real tables with Arrow as the only engine: no PySpark is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_delta.data.reader import read_plan
from pyspark_delta.ddl.change import commit_change
from pyspark_delta.ddl.constraints import add_constraint
from pyspark_delta.ddl.properties import set_properties
from pyspark_delta.engines.arrow.engines import ArrowEngines, ArrowSettings
from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.errors import (
    AppendOnlyTableError,
    ConcurrentWriteError,
    ConstraintViolationError,
    InvalidOperationError,
    InvalidPredicateError,
)
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.schema.types import INTEGER, LONG, STRING, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.statements.contract import Rewriter, Staged
from pyspark_delta.statements.delete import Delete
from pyspark_delta.statements.execution import execute
from pyspark_delta.statements.merge.clauses import Clause, RowKind
from pyspark_delta.statements.merge.merge import Merge
from pyspark_delta.statements.plan import plan_change
from pyspark_delta.statements.update import Update
from pyspark_delta.table import Table
from pyspark_delta.transaction.new_table import new_table
from pyspark_delta.transaction.transaction import Transaction
from pyspark_delta.write.options import WriteOptions, transaction_of
from pyspark_delta.write.written import has_row_ids

SCHEMA = StructType((StructField("id", LONG), StructField("n", INTEGER), StructField("p", STRING)))
TRACKED = {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}
VECTORS = {**TRACKED, "delta.enableDeletionVectors": "true"}
ARROW = ArrowSettings().open


def make(path: Path, properties: dict[str, str], files: int = 2) -> Callable[[], Snapshot]:
    """A table with ten rows in each file: `id` counts, `n` is id % 3, and `p` is a partition for each file."""
    Transaction.creating(str(path), new_table(SCHEMA, ["p"], properties)).commit()
    for number in range(files):
        ids = range(10 * number, 10 * number + 10)
        columns = [pa.array(ids, pa.int64()), pa.array([i % 3 for i in ids], pa.int32()), pa.array([str(number)] * 10)]
        with Transaction.on(Snapshot.load(str(path))) as transaction:
            transaction.write([pa.RecordBatch.from_arrays(columns, names=["id", "n", "p"])])
    return lambda: Snapshot.load(str(path))


def rows(current: Callable[[], Snapshot]) -> dict[int, tuple[int | None, int | None]]:
    """Return the value and the row id by `id`."""
    snapshot = current()
    found = read_plan(plan_scan(snapshot, row_ids=has_row_ids(snapshot.configuration))).read_all().to_pylist()
    return {row["id"]: (row["n"], row.get("_row_id")) for row in found}


def changes(current: Callable[[], Snapshot]) -> list[tuple[str, int, int | None]]:
    version = current().version
    read = Table(current()).changes(starting_version=version, ending_version=version).to_arrow().to_pylist()
    return sorted((row["_change_type"], row["id"], row["n"]) for row in read)


def commit_info(path: Path) -> dict[str, Any]:
    newest = max((path / "_delta_log").glob("*.json"))
    found: dict[str, Any] = json.loads(newest.read_text().splitlines()[0])["commitInfo"]
    return found


def done(staged: Staged | None) -> list[int]:
    assert staged is not None
    return list(staged.result)


@pytest.mark.parametrize("properties", [TRACKED, VECTORS], ids=["rewrites", "vectors"])
class TestRows:
    def test_a_delete_removes_the_rows_and_keeps_the_ids_of_others(
        self, tmp_path: Path, properties: dict[str, str]
    ) -> None:
        current = make(tmp_path, properties)
        before = rows(current)
        assert done(execute(current, Delete(ARROW, "n = 1 AND id < 15"))) == [5]
        gone = {1, 4, 7, 10, 13}
        assert rows(current) == {i: row for i, row in before.items() if i not in gone}
        assert changes(current) == sorted(("delete", i, 1) for i in gone)
        info = commit_info(tmp_path)
        assert info["operation"] == "DELETE"
        assert info["operationParameters"] == {"predicate": '["n = 1 AND id < 15"]'}
        assert info["operationEngine"] == "Arrow in the driver"
        assert info["engineInfo"].startswith("pyspark-delta/")
        assert info["tags"] == {"delta.rowTracking.preserved": "true"}
        metrics = info["operationMetrics"]
        with_vectors = properties is VECTORS
        assert (metrics["numDeletedRows"], metrics["numCopiedRows"]) == ("5", "0" if with_vectors else "15")
        assert metrics["numDeletionVectorsAdded"] == ("2" if with_vectors else "0")
        assert metrics["numAddedChangeFiles"] == ("0" if with_vectors else "2")

    def test_an_update_writes_new_values_under_the_same_ids(self, tmp_path: Path, properties: dict[str, str]) -> None:
        current = make(tmp_path, properties)
        before = rows(current)
        assert done(execute(current, Update(ARROW, {"t.n": "t.n + 10"}, "t.id % 10 = 4", "t"))) == [2]
        assert rows(current) == {**before, 4: (11, before[4][1]), 14: (12, before[14][1])}
        expected = [("update_postimage", 4, 11), ("update_postimage", 14, 12)]
        assert changes(current) == [*expected, ("update_preimage", 4, 1), ("update_preimage", 14, 2)]
        info = commit_info(tmp_path)
        assert (info["operation"], info["operationMetrics"]["numUpdatedRows"]) == ("UPDATE", "2")

    def test_whole_files_are_removed_without_an_engine(self, tmp_path: Path, properties: dict[str, str]) -> None:
        current = make(tmp_path, properties)
        assert done(execute(current, Delete(ARROW, "p = '0'"))) == [10]
        assert commit_info(tmp_path)["operationEngine"] == "none"
        assert done(execute(current, Delete(ARROW))) == [10]
        assert rows(current) == {}


def test_change_data_files_hold_the_rows_of_whole_files_too(tmp_path: Path) -> None:
    current = make(tmp_path, TRACKED)
    assert done(execute(current, Delete(ARROW, "p = '0' OR id = 15"))) == [11]
    assert [row[1] for row in changes(current)] == [*range(10), 15]


def test_nothing_is_committed_where_no_row_is_meant(tmp_path: Path) -> None:
    current = make(tmp_path, {})
    assert done(execute(current, Delete(ARROW, "id > 99"))) == [0]
    assert done(execute(current, Update(ARROW, {"n": "1"}, "id > 99"))) == [0]
    assert done(execute(current, Update(ARROW, {"n": "1"}, "id > 5 AND n > 5"))) == [0]
    assert current().version == 2


def test_defaults_and_null_are_assigned(tmp_path: Path) -> None:
    current = make(tmp_path, TRACKED)
    assert done(execute(current, Update(ARROW, {"n": "DEFAULT"}, "id = 3"))) == [1]
    assert rows(current)[3][0] is None


@pytest.mark.parametrize("statement", ["delete", "update"])
def test_what_arrow_cannot_run_is_an_error_with_its_reason(tmp_path: Path, statement: str) -> None:
    current = make(tmp_path, {})
    made = (
        Delete(ARROW, "soundex(p) = 'x' AND id = 3")
        if statement == "delete"
        else Update(ARROW, {"n": "cast(soundex(p) as int)"}, "id = 3")
    )
    reason = "the condition is not one that Arrow" if statement == "delete" else "the new value of 'n' exactly"
    reason += r".*does not compute soundex\(\.\.\.\) exactly as Spark does"
    with pytest.raises(InvalidOperationError, match=rf"run this {statement.upper()}\. Arrow: .*{reason}") as error:
        execute(current, made)
    assert error.value.error_class == "DELTA_NO_ENGINE_FOR_STATEMENT"
    assert current().version == 2


def test_a_row_that_breaks_a_constraint_is_named(tmp_path: Path) -> None:
    current = make(tmp_path, {})
    commit_change(add_constraint(current().configuration, "small", "n < 5"), current())
    with pytest.raises(ConstraintViolationError, match=r"'small' is not true for a row: \(n < 5\)[\s\S]*n : 7"):
        execute(current, Update(ARROW, {"n": "7"}, "id = 3"))
    assert len(list(tmp_path.glob("p=*/*.parquet"))) == 2


@pytest.mark.parametrize(
    ("properties", "value"), [({}, {"p": "'9'"}), (TRACKED, {"n": "n + 1"})], ids=["moves", "changes"]
)
def test_new_files_are_deleted_when_the_others_cannot_be_rewritten(
    tmp_path: Path, properties: dict[str, str], value: dict[str, str]
) -> None:
    class WithoutRewriters(ArrowEngines):
        def rewriters(self) -> list[tuple[str, Rewriter]]:
            return []

    def opened(snapshot: Snapshot, alias: str | None, declared: TableConfiguration | None) -> ArrowEngines:
        return WithoutRewriters(ARROW(snapshot, alias, declared).target)

    current = make(tmp_path, properties)
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(InvalidOperationError, match="can run this rewrite of files"):
        execute(current, Update(opened, value, "id = 4"))
    assert sorted(tmp_path.rglob("*.parquet")) == before


@pytest.mark.parametrize("ids", [False, True], ids=["plain", "row ids"])
def test_an_update_rewrites_files_in_place(tmp_path: Path, ids: bool) -> None:
    """Rows that a vector deletes do not come back; files without a row to update stay."""
    current = make(tmp_path, {"delta.enableRowTracking": str(ids).lower(), "delta.enableDeletionVectors": "true"}, 4)
    execute(current, Delete(ARROW, "id in (0, 4, 11)"))
    commit_change(set_properties(current().configuration, {"delta.enableDeletionVectors": "false"}), current())
    commit_change(add_constraint(current().configuration, "small", "n < 99 OR p IS NULL"), current())
    before, files = rows(current), set(Table(current()).files()["path"].to_pylist())
    assert done(execute(current, Update(ARROW, {"n": "n + 10"}, "id % 5 = 2 AND id < 25"))) == [5]
    new = {i: (i % 3 + 10, before[i][1]) for i in (2, 7, 12, 17, 22)}
    assert rows(current) == {**before, **new}
    found = Table(current()).scan(columns=["id"], where="p = '1'").to_arrow()["id"].to_pylist()
    assert found == [10, *range(12, 20)]
    assert len(files & set(Table(current()).files()["path"].to_pylist())) == 1
    metrics = commit_info(tmp_path)["operationMetrics"]
    counts = ("numUpdatedRows", "numCopiedRows", "numRemovedFiles", "numAddedFiles", "numDeletionVectorsRemoved")
    assert [metrics[name] for name in counts] == ["5", "22", "3", "3", "2"]
    versions = read_plan(plan_scan(current(), row_ids=ids)).read_all()
    if ids:
        newest = pc.equal(versions["_row_commit_version"], current().version)
        assert versions.filter(newest)["id"].to_pylist() == sorted(new)


def test_an_update_of_all_rows_and_of_one_that_cannot_be_computed(tmp_path: Path) -> None:
    current = make(tmp_path, {})
    assert done(execute(current, Update(ARROW, {"n": "n + 1"}))) == [20]
    assert rows(current) == {i: (i % 3 + 1, None) for i in range(20)}
    files = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(InvalidOperationError, match="n"):
        execute(current, Update(ARROW, {"n": "n + 2147483645"}, "id > 0"))
    assert sorted(tmp_path.rglob("*.parquet")) == files


def test_wrong_statements_are_refused(tmp_path: Path) -> None:
    current = make(tmp_path, {})
    with pytest.raises(InvalidPredicateError, match="nowhere"):
        execute(current, Delete(ARROW, "nowhere = 1"))
    with pytest.raises(InvalidPredicateError):
        execute(current, Delete(ARROW, "id = = 1"))
    with pytest.raises(InvalidPredicateError, match="not deterministic"):
        execute(current, Delete(ARROW, "rand() < 0.5"))
    with pytest.raises(InvalidOperationError, match="no column 'nowhere'"):
        execute(current, Update(ARROW, {"nowhere": "1"}))
    with pytest.raises(TypeError, match="The condition of DELETE is SQL text, found int 5"):
        execute(current, Delete(ARROW, 5))
    append_only = make(tmp_path / "a", {"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyTableError):
        execute(append_only, Delete(ARROW, "id = 1"))


def test_a_statement_runs_again_on_the_version_that_won(tmp_path: Path) -> None:
    current = make(tmp_path, VECTORS)
    old = [current()]
    execute(current, Update(ARROW, {"n": "100"}, "id = 3"))

    def first_old_then_new() -> Snapshot:
        return old.pop() if old else current()

    assert done(execute(first_old_then_new, Delete(ARROW, "n = 100 OR id = 4"))) == [2]
    assert rows(current).keys() == set(range(20)) - {3, 4}


def test_an_application_transaction_takes_effect_once(tmp_path: Path) -> None:
    current = make(tmp_path, {})
    transaction = transaction_of("job", "1")
    opened = ArrowSettings(WriteOptions(transaction=transaction)).open
    assert done(execute(current, Delete(opened, "id = 1"), transaction=transaction)) == [1]
    assert execute(current, Delete(opened, "id = 2"), transaction=transaction) is None
    assert 2 in rows(current)


def test_a_plan_says_what_would_happen_and_runs(tmp_path: Path) -> None:
    current = make(tmp_path, VECTORS)
    statement = Delete(ARROW, "n = 1 AND id < 15")
    plans = [plan_change(current, statement, lambda newest: done(execute(newest, statement))) for _ in range(2)]
    assert current().version == 2
    assert (plans[0].rows_affected, plans[0].method, plans[0].engine) == (5, "deletion vectors", "Arrow in the driver")
    assert plans[0].execute() == [5]
    with pytest.raises(ConcurrentWriteError, match="for version 2"):
        plans[1].execute()


MERGED = (
    Clause(RowKind.MATCHED, RowAction.DELETE, "s.n = 0"),
    Clause(RowKind.MATCHED, RowAction.UPDATE, None, {"n": "t.n + s.n"}),
    Clause(RowKind.NOT_MATCHED, RowAction.INSERT, None, {"id": "s.id", "n": "s.n", "p": "'0'"}),
)


def source(ids: list[int], values: list[int]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(values, pa.int32())})


@pytest.mark.parametrize("properties", [TRACKED, VECTORS], ids=["rewrites", "vectors"])
def test_a_merge_updates_deletes_and_inserts(tmp_path: Path, properties: dict[str, str]) -> None:
    current = make(tmp_path, properties)
    before = rows(current)
    opened = ArrowSettings().merging(source([3, 4, 99], [0, 50, 7]))
    assert done(execute(current, Merge(opened, "t.id = s.id", "t", MERGED))) == [3, 1, 1, 1]
    after = rows(current)
    assert after.pop(99)[0] == 7
    assert after == {**{i: row for i, row in before.items() if i != 3}, 4: (51, before[4][1])}
    expected = [("delete", 3, 0), ("insert", 99, 7), ("update_postimage", 4, 51), ("update_preimage", 4, 1)]
    assert changes(current) == expected
    info = commit_info(tmp_path)
    assert info["operationParameters"]["predicate"] == '["t.id = s.id"]'
    assert info["operationParameters"]["matchedPredicates"] == (
        '[{"predicate":"s.n = 0","actionType":"delete"},{"actionType":"update"}]'
    )
    metrics = info["operationMetrics"]
    assert {name: metrics[f"num{name}"] for name in ("SourceRows", "TargetRowsInserted", "TargetRowsUpdated")} == {
        "SourceRows": "3",
        "TargetRowsInserted": "1",
        "TargetRowsUpdated": "1",
    }


def test_a_merge_that_arrow_cannot_run_names_the_reason(tmp_path: Path) -> None:
    current = make(tmp_path, {})
    twice = Merge(ArrowSettings().merging(source([4, 4], [1, 2])), "t.id = s.id", "t", MERGED)
    with pytest.raises(InvalidOperationError, match=r"Several rows of the source .* for \(id=4\): 2 rows"):
        execute(current, twice)
    function = (Clause(RowKind.MATCHED, RowAction.DELETE, "soundex(s.n) = 'x'"),)
    with pytest.raises(InvalidOperationError, match="WHEN MATCHED THEN DELETE: Arrow does not compute the condition"):
        execute(current, Merge(ArrowSettings().merging(source([4], [1])), "t.id = s.id", "t", function))
    assert current().version == 2


def test_no_module_of_pyspark_is_loaded() -> None:
    names = ("contract", "delete", "execution", "merge.merge", "plan", "update")
    modules = ["engines.arrow.engines", *(f"statements.{name}" for name in names)]
    code = "".join(f"import pyspark_delta.{module}\n" for module in modules)
    code += "import sys; print([name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
