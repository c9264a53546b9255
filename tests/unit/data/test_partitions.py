"""Rows by partition: every row once, in the order in which it came, no more of them at once than a row group."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest

from pyspark_delta.data.partitions import Partition, pieces, runs
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.schema.arrow import schema_from_arrow
from pyspark_delta.schema.types import StructType
from pyspark_delta.stats.indexed_columns import stats_columns

MUCH = 1 << 30


def context(schema: pa.Schema, *partition: str, **options: Any) -> WriteContext:
    logical = schema_from_arrow(schema)
    data = StructType(tuple(f for f in logical if f.name not in partition))
    return WriteContext("/t", logical, data, partition, partition, stats_columns=stats_columns(data), **options)


def found(write: WriteContext, batches: Iterable[pa.RecordBatch], at_once: int = MUCH) -> list[tuple[Partition, Any]]:
    """The partition of each piece, with the ids of its rows."""
    made = []
    for piece in pieces(write, batches, at_once):
        ids = [number for batch in piece.rows() for number in batch["id"].to_pylist()]
        assert piece.num_rows == len(ids)
        made.append((piece.partition, ids))
    return made


def text(value: object) -> str | None:
    return None if value in (None, "") else str(value)


MIXED = pa.table(
    {
        "id": range(2000),
        "p": pa.array([[None, "", "b", "c"][i * 7 % 4] for i in range(2000)]).dictionary_encode(),
        "n": pa.array([i * i % 5 or None for i in range(2000)], pa.int16()),
    }
)


def test_rows_of_a_partition_follow_one_another() -> None:
    expected: dict[Partition, list[int]] = {}
    for row in MIXED.to_pylist():
        expected.setdefault((text(row["n"]), text(row["p"])), []).append(row["id"])
    made = found(context(MIXED.schema, "n", "p"), MIXED.to_batches(max_chunksize=300))
    assert len(made) == len(expected)
    assert dict(made) == expected


@pytest.mark.parametrize("most", [1, 7, 100])
def test_a_piece_is_no_more_than_a_row_group(most: int) -> None:
    whole = dict(found(context(MIXED.schema, "p"), MIXED.to_batches()))
    made = found(context(MIXED.schema, "p", row_group_rows=most), MIXED.to_batches())
    for partition, ids in whole.items():
        assert [part for of, part in made if of == partition] == [
            ids[start : start + most] for start in range(0, len(ids), most)
        ]
    of_bytes = found(context(MIXED.schema, "p", row_group_bytes=MIXED.nbytes // 20), MIXED.to_batches())
    assert 95 <= max(len(ids) for _, ids in of_bytes) <= 100


def test_so_many_bytes_are_put_in_order_at_once() -> None:
    table = pa.table({"id": range(100), "p": [i % 2 for i in range(100)]})
    batches = table.to_batches(max_chunksize=10)
    batches.insert(4, batches[0].slice(0, 0))
    made = found(context(table.schema, "p"), batches, at_once=3 * batches[0].nbytes)
    assert [len(ids) for _, ids in made] == [15, 15, 15, 15, 15, 15, 5, 5]
    assert made[2] == (("0",), list(range(30, 60, 2)))


def test_rows_without_partitions_are_gathered_to_row_groups() -> None:
    table = pa.table({"id": range(100)})
    by_rows = found(context(table.schema, row_group_rows=25), table.to_batches(max_chunksize=10))
    assert by_rows == [((), list(range(start, min(start + 30, 100)))) for start in range(0, 100, 30)]
    large = found(context(table.schema, row_group_rows=25), table.to_batches())
    assert large == [((), list(range(start, start + 25))) for start in range(0, 100, 25)]
    by_bytes = found(context(table.schema, row_group_bytes=8 * 20), table.to_batches(max_chunksize=10))
    assert by_bytes == [((), list(range(start, start + 20))) for start in range(0, 100, 20)]


def test_what_is_one_short_of_a_row_group_waits_for_more() -> None:
    table = pa.table({"id": range(100)})
    for limit in ({"row_group_rows": 21}, {"row_group_bytes": 8 * 20 + 1}):
        made = found(context(table.schema, **limit), table.to_batches(max_chunksize=10))
        assert [len(ids) for _, ids in made] == [30, 30, 30, 10]


def test_batches_without_rows_make_no_pieces() -> None:
    [batch] = MIXED.slice(0, 10).combine_chunks().to_batches()
    for partition in ((), ("p",)):
        assert found(context(MIXED.schema, *partition), [batch.slice(0, 0), batch.slice(5, 0)]) == []


def test_more_partitions_than_two_bytes_can_count() -> None:
    count = (1 << 16) + 1
    table = pa.table({"id": range(count), "p": range(count)})
    made = list(pieces(context(table.schema, "p"), table.to_batches(), MUCH))
    assert [(piece.partition, list(piece.chosen)) for piece in made if piece.chosen is not None] == [
        ((str(number),), [number]) for number in range(count)
    ]


def test_many_columns_of_many_values() -> None:
    names = [f"p{i}" for i in range(5)]  # 7000 to the fifth is no 64-bit number
    table = pa.table({"id": range(7000), **{name: range(7000) for name in names}})
    made = found(context(table.schema, *names), table.to_batches())
    assert made == [((str(number),) * 5, [number]) for number in range(7000)]


@pytest.mark.parametrize("partition", [("p",), ("n", "p")])
def test_runs_are_adjacent_rows(partition: tuple[str, ...]) -> None:
    [batch] = MIXED.combine_chunks().to_batches()
    rows = [(tuple(text(row[name]) for name in partition), row["id"]) for row in batch.to_pylist()]
    expected = [(key, [number for _, number in group]) for key, group in groupby(rows, key=lambda row: row[0])]
    made = [(key, part["id"].to_pylist()) for key, part in runs(context(MIXED.schema, *partition), batch)]
    assert made == expected
    assert list(runs(context(MIXED.schema), batch)) == [((), batch)]


def test_values_are_of_the_types_of_the_table() -> None:
    written = pa.table({"id": [1, 2], "p": pa.array([1, 2]).cast(pa.decimal128(20, 1))})
    declared = pa.schema([("id", pa.int64()), ("p", pa.decimal128(10, 2))])
    assert found(context(declared, "p"), written.to_batches()) == [(("1.00",), [1]), (("2.00",), [2])]
