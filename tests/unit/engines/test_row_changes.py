"""One task of a row change: which rows leave which files, what is written, and what stays when it fails: nothing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta.data.violations import watch
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.deletion_vectors.bitmap import deserialize
from pyspark_delta.engines.row_changes import RESULT, ChangeContext, RowAction, change_task
from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.protocol.rows import CheckKind, RowCheck
from pyspark_delta.schema.types import LONG, STRING, StructField, StructType

ACTIONS = (RowAction.UPDATE, RowAction.INSERT, RowAction.DELETE, RowAction.PREIMAGE)
UPDATE, INSERT, DELETE, PREIMAGE = range(4)
SCHEMA = StructType((StructField("id", LONG),))
CHANGED = StructType((*SCHEMA, StructField("_change_type", STRING)))
CHECK = watch(RowCheck("small", "id < 100", CheckKind.CONSTRAINT), ["id"])

Row = tuple[int, int, int | None, int | None]  # the value, the action, the file and the position there


def context(folder: Path, *, checks: bool = False, changes: bool = False, **options: Any) -> ChangeContext:
    data = WriteContext(str(folder), SCHEMA, SCHEMA, checks=(CHECK,) if checks else (), **options)
    told = WriteContext(str(folder / "_change_data"), CHANGED, CHANGED, **options) if changes else None
    return ChangeContext(ACTIONS, SCHEMA, data, told)


def batch(rows: Sequence[Row], violations: Sequence[str | None] | None = None) -> pa.RecordBatch:
    ids, actions, files, places = ([row[i] for row in rows] for i in range(4))
    arrays = [pa.array(ids, pa.int64()), *([] if violations is None else [pa.array(violations, pa.string())])]
    arrays += [pa.array(actions, pa.int32()), pa.array(files, pa.int64()), pa.array(places, pa.int64())]
    return pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


def run(change: ChangeContext, *batches: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches(change_task(change, 0, iter(batches)), RESULT)


def gone(result: pa.Table) -> dict[int, list[int]]:
    found = result.filter(result["file"].is_valid())
    return {row["file"]: sorted(deserialize(row["rows"])) for row in found.to_pylist()}


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_rows_leave_their_files_in_whatever_order_they_come(tmp_path: Path) -> None:
    first = [(0, DELETE, 7, 5), (0, DELETE, 2, 9), (0, UPDATE, 7, 1), (0, INSERT, None, None), (0, DELETE, 2, 3)]
    second = [(0, DELETE, 2, 9), (0, PREIMAGE, 7, 8), (0, DELETE, 4, 0)]
    result = run(context(tmp_path), batch(first), batch([]), batch(second))
    assert gone(result) == {2: [3, 9], 4: [0], 7: [1, 5]}
    assert [counts for counts in result["counts"].to_pylist() if counts is not None] == [[1, 1, 5, 1]]


def test_rows_that_stay_or_go_are_told_from_those_that_are_written(tmp_path: Path) -> None:
    rows: list[Row] = [(1, UPDATE, 0, 0), (2, PREIMAGE, 0, 0), (3, DELETE, 0, 1), (4, INSERT, None, None)]
    result = run(context(tmp_path, changes=True), batch(rows))
    paths = dict(zip(result["is_change"].to_pylist(), result["path"].to_pylist(), strict=True))
    assert pq.read_table(tmp_path / paths[False])["id"].to_pylist() == [1, 4]
    assert pq.read_table(tmp_path / "_change_data" / paths[True]).to_pydict() == {
        "id": [1, 2, 3, 4],
        "_change_type": ["update_postimage", "update_preimage", "delete", "insert"],
    }


def test_only_rows_that_are_written_can_break_a_rule(tmp_path: Path) -> None:
    rows: list[Row] = [(1, UPDATE, 0, 0), (300, PREIMAGE, 0, 0), (300, DELETE, 0, 1)]
    kept = run(context(tmp_path, checks=True), batch(rows, [None, '[0,"300"]', '[0,"300"]']))
    assert kept["num_records"].drop_null().to_pylist() == [1]
    broken = run(context(tmp_path, checks=True), batch([(300, INSERT, None, None)], ['[0,"300"]']))
    [failure] = broken["failure"].to_pylist()
    assert isinstance(pickle.loads(failure), ConstraintViolationError)


@pytest.mark.parametrize("at_most", [None, 1])
@pytest.mark.parametrize("is_ours", [True, False])
def test_what_fails_leaves_no_file(tmp_path: Path, at_most: int | None, is_ours: bool) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield batch([(i, INSERT, None, None) for i in range(20)], [None] * 20)
        assert files_in(tmp_path)
        if not is_ours:
            raise RuntimeError("lost")
        yield batch([(300, INSERT, None, None)], ['[0,"300"]'])

    change = context(tmp_path, checks=True, changes=True, max_records_per_file=at_most, row_group_rows=5)
    if is_ours:
        [result] = change_task(change, 0, batches())
        assert result["path"].null_count == len(result) == 1
    else:
        with pytest.raises(RuntimeError, match="lost"):
            list(change_task(change, 0, batches()))
    assert files_in(tmp_path) == []


def test_a_batch_may_have_nothing_to_write(tmp_path: Path) -> None:
    change = context(tmp_path, partition_columns=("id",), partition_names=("id",), stores_partition_columns=True)
    result = run(change, batch([(1, INSERT, None, None)]), batch([(2, DELETE, 0, 3)]), batch([(1, INSERT, None, None)]))
    assert result["num_records"].drop_null().to_pylist() == [2]
    assert gone(result) == {0: [3]}
