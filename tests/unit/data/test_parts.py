"""Rows in any order become files of one partition each, several at a time; what fails leaves none of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta.data import parts
from pyspark_delta.data.partitions import Piece, pieces
from pyspark_delta.data.parts import (
    RollingFileWriter,
    write_all,
    write_each,
    write_files,
    write_in_any_order,
    write_side_by_side,
)
from pyspark_delta.data.writer import WriteContext, WrittenFile
from pyspark_delta.errors import ConstraintViolationError, StorageError
from pyspark_delta.schema.arrow import schema_from_arrow
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.stats.indexed_columns import stats_columns
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.testing.faults import Fault, FaultyStore


def context(location: Path, schema: pa.Schema, *partition: str, **options: Any) -> WriteContext:
    logical = schema_from_arrow(schema)
    data = StructType(tuple(f for f in logical if f.name not in partition))
    return WriteContext(
        str(location), logical, data, partition, partition, stats_columns=stats_columns(data), **options
    )


def ids(location: Path, file: WrittenFile) -> list[int]:
    found: list[int] = pq.read_table(location / unquote(file.path), partitioning=None)["id"].to_pylist()
    return found


def files_in(location: Path) -> list[Path]:
    return [path for path in location.rglob("*") if path.is_file()]


def publishing() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("pyspark-delta-publish")]


@pytest.mark.parametrize("threads", [1, 3])
def test_every_row_goes_to_a_file_of_its_partition_in_the_order_in_which_it_came(tmp_path: Path, threads: int) -> None:
    names = [None, "", "b", "a/c", "b ", "x"]
    rows = [(i, names[i * 7 % 6], i * 5 % 4 or None) for i in range(5000)]
    table = pa.table(
        {
            "id": [row[0] for row in rows],
            "p": pa.array([row[1] for row in rows]).dictionary_encode(),
            "n": pa.array([row[2] for row in rows], pa.int16()),
        }
    )
    write = context(tmp_path, table.schema, "n", "p", row_group_rows=150)
    files = write_in_any_order(write, table.to_batches(max_chunksize=700), part=4, threads=threads)
    expected: dict[tuple[str | None, str | None], list[int]] = {}
    for number, name, other in rows:  # null and the empty string are one partition (C422)
        expected.setdefault((None if other is None else str(other), name or None), []).append(number)
    found: dict[tuple[str | None, str | None], list[list[int]]] = {}
    for file in files:
        values = dict(file.partition_values)
        assert list(values) == ["n", "p"]
        found.setdefault((values["n"], values["p"]), []).append(ids(tmp_path, file))
        assert file.num_records == json.loads(file.stats)["numRecords"]
        assert file.path.rpartition("/")[2].split("-")[1] in {f"{4 + i:05d}" for i in range(threads)}
    assert {key: sorted(chain.from_iterable(parts)) for key, parts in found.items()} == expected
    assert all(part == sorted(part) for parts in found.values() for part in parts)
    assert all(len(parts) <= threads for parts in found.values())


def test_files_that_grow_side_by_side_are_one_for_each_partition(tmp_path: Path) -> None:
    table = pa.table({"id": range(6000), "p": [i % 5 for i in range(6000)]})
    write = context(tmp_path, table.schema, "p", row_group_bytes=8000)
    files = write_side_by_side(write, table.to_batches(max_chunksize=300), part=2)
    found = {file.partition_values["p"]: ids(tmp_path, file) for file in files}
    assert len(files) == 5
    assert found == {str(p): list(range(p, 6000, 5)) for p in range(5)}
    for file in files:  # no more rows waited than one row group may have
        footer = pq.read_metadata(tmp_path / file.path)
        assert footer.num_row_groups > 1
        assert file.num_records == footer.num_rows == json.loads(file.stats)["numRecords"]


@pytest.mark.parametrize(("row_group_bytes", "most"), [(40_000, 1), (8_000, 3)])
def test_side_by_side_threads_share_partitions_of_several_row_groups(
    tmp_path: Path, row_group_bytes: int, most: int
) -> None:
    table = pa.table({"id": range(6000), "p": [i % 5 for i in range(6000)]})  # 20,000 bytes in each partition
    write = context(tmp_path, table.schema, "p", row_group_bytes=row_group_bytes)
    files = write_side_by_side(write, table.to_batches(max_chunksize=300), threads=3, at_once=10_000)
    found: dict[str | None, list[list[int]]] = {}
    for file in files:
        found.setdefault(file.partition_values["p"], []).append(ids(tmp_path, file))
    assert {p: sorted(chain.from_iterable(several)) for p, several in found.items()} == {
        str(p): list(range(p, 6000, 5)) for p in range(5)
    }
    assert {len(several) for several in found.values()} == {most}
    assert len({file.path.rpartition("/")[2].split("-")[1] for file in files}) == 3


def test_side_by_side_no_more_files_are_begun_than_a_store_can_bear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_MOST_BEGUN", 3)
    table = pa.table({"id": range(6000), "p": [i % 10 for i in range(6000)]})
    write = context(tmp_path, table.schema, "p", row_group_bytes=8000)
    files = write_side_by_side(write, table.to_batches(max_chunksize=300))
    assert len(files) > 10
    assert sorted(chain.from_iterable(ids(tmp_path, file) for file in files)) == list(range(6000))
    assert len(files_in(tmp_path)) == len(files)


@pytest.mark.parametrize("partitions", [3, 10])
def test_side_by_side_little_waits_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    monkeypatch.setattr(parts, "_MOST_BEGUN", 9)
    table = pa.table({"id": range(6000), "p": [i % partitions for i in range(6000)]})
    write = context(tmp_path, table.schema, "p", row_group_bytes=8000)
    writer, found = RollingFileWriter(write, 0, side_by_side=True, writers=3), list[WrittenFile]()
    for piece in pieces(write, table.to_batches(max_chunksize=1500), 50_000):
        found += writer.append(piece)
        assert sum(file.gathered_bytes for file in writer._open.values()) <= 8000
        assert sum(file.is_begun for file in writer._open.values()) <= 3
    found += writer.finish()
    assert sorted(chain.from_iterable(ids(tmp_path, file) for file in found)) == list(range(6000))
    assert (len(found) == 3) == (partitions == 3)  # those that are begun may grow


def test_side_by_side_files_end_where_their_rows_are_limited(tmp_path: Path) -> None:
    table = pa.table({"id": range(1000), "p": [i % 2 for i in range(1000)]})
    files = write_side_by_side(context(tmp_path, table.schema, "p", max_records_per_file=200), table.to_batches())
    assert sorted(file.num_records for file in files) == [100, 100, 200, 200, 200, 200]


@pytest.mark.parametrize("nth", [1, 7])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("threads", [1, 3])
def test_side_by_side_what_fails_leaves_no_file(tmp_path: Path, nth: int, when: Any, threads: int) -> None:
    table = pa.table({"id": range(2000), "p": [i % 10 for i in range(2000)]})
    store = FaultyStore(store_for(str(tmp_path)), Fault(kind="open_output", nth=nth, when=when))
    write = context(tmp_path, table.schema, "p", row_group_bytes=4000)
    with intercepted(lambda _: store), pytest.raises(StorageError, match="connection was lost"):
        write_side_by_side(write, table.to_batches(), threads=threads)
    assert files_in(tmp_path) == []


def test_threads_share_rows_without_partitions_by_row_groups(tmp_path: Path) -> None:
    table = pa.table({"id": range(1000)})
    write = context(tmp_path, table.schema, row_group_rows=100)
    files = write_in_any_order(write, table.to_batches(max_chunksize=1000), threads=3)
    assert sorted(chain.from_iterable(ids(tmp_path, file) for file in files)) == list(range(1000))
    assert 1 <= len(files) <= 3
    for file in files:
        footer = pq.read_metadata(tmp_path / file.path)
        assert {footer.row_group(i).num_rows for i in range(footer.num_row_groups)} == {100}


@pytest.mark.parametrize(("rows", "threads"), [([100], 1), ([100, 49], 1), ([100, 50], 3), ([100, 100], 3)])
def test_another_thread_is_worth_a_file_of_half_the_rows(rows: list[int], threads: int) -> None:
    batch = pa.table({"id": range(100)}).to_batches()[0]
    assert parts._threads(3, [Piece(("a",), (batch.slice(0, count),)) for count in rows]) == threads
    others = [Piece((str(count),), (batch.slice(0, count),)) for count in rows]
    assert parts._threads(3, others) == (3 if len(rows) > 1 else 1)


def test_sources_are_written_to_files_of_their_own_and_an_error_deletes_all(tmp_path: Path) -> None:
    table = pa.table({"id": range(40)})
    write = context(tmp_path, table.schema)
    sources = [table.slice(start, 10).to_batches(max_chunksize=3) for start in (0, 10, 20, 30)]
    files = write_each(write, sources, threads=2)
    assert [ids(tmp_path, file) for file in files] == [list(range(start, start + 10)) for start in (0, 10, 20, 30)]
    before = files_in(tmp_path)

    def broken() -> Iterator[pa.RecordBatch]:
        yield table.to_batches()[0]
        raise ValueError("no more rows")

    for threads in (1, 2):
        with pytest.raises(ValueError, match="no more rows"):
            write_each(write, [sources[0], broken(), *sources], threads)
        assert sorted(files_in(tmp_path)) == sorted(before)


@pytest.mark.parametrize("rows", [1, 100, 140])
def test_what_is_not_worth_two_files_goes_to_one(tmp_path: Path, rows: int) -> None:
    table = pa.table({"id": range(rows)})
    [file] = write_in_any_order(context(tmp_path, table.schema, row_group_rows=100), table.to_batches(), threads=3)
    assert ids(tmp_path, file) == list(range(rows))
    assert write_in_any_order(context(tmp_path, table.schema), [table.to_batches()[0].slice(0, 0)]) == []


@pytest.mark.parametrize(
    "write", [write_all, partial(write_in_any_order, threads=1), partial(write_in_any_order, threads=3)]
)
def test_a_source_that_breaks_leaves_no_file(tmp_path: Path, write: Any) -> None:
    table = pa.table({"id": range(1000)})

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=100)
        raise RuntimeError("the source broke")

    limited = context(tmp_path, table.schema, row_group_rows=100, max_records_per_file=100)
    with pytest.raises(RuntimeError, match="the source broke"):
        write(limited, batches())
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_a_row_that_breaks_a_rule_leaves_no_file(tmp_path: Path, threads: int) -> None:
    schema = StructType((StructField("id", LONG, nullable=False),))
    table = pa.table({"id": [*range(900), None]})
    write = WriteContext(str(tmp_path), schema, schema, row_group_rows=100, max_records_per_file=100)
    with pytest.raises(ConstraintViolationError, match="'id' is NOT NULL"):
        write_in_any_order(write, table.to_batches(max_chunksize=100), threads=threads)
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_file_that_cannot_be_published_leaves_no_other(tmp_path: Path, threads: int, when: Any) -> None:
    table = pa.table({"id": range(2000), "p": [i % 40 for i in range(2000)]})
    write = context(tmp_path, table.schema, "p")
    store = FaultyStore(store_for(str(tmp_path)), Fault(kind="open_output", nth=30, when=when))
    with intercepted(lambda _: store), pytest.raises(StorageError, match="connection was lost"):
        write_in_any_order(write, table.to_batches(), threads=threads)
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("write", [write_files, write_in_any_order, write_side_by_side])
def test_a_single_file_is_not_there_where_nobody_was_told_of_it(tmp_path: Path, write: Any) -> None:
    table = pa.table({"id": range(10)})
    store = FaultyStore(store_for(str(tmp_path)), Fault(kind="open_output", when="after"))
    with intercepted(lambda _: store), pytest.raises(StorageError, match="connection was lost"):
        list(write(context(tmp_path, table.schema), table.to_batches()))
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_files_that_were_yielded_stay_where_a_later_one_cannot_be_published(tmp_path: Path, when: Any) -> None:
    table = pa.table({"id": range(100), "p": range(100)})
    store = FaultyStore(store_for(str(tmp_path)), Fault(kind="open_output", nth=50, when=when))
    found: list[WrittenFile] = []
    with intercepted(lambda _: store):
        files = write_files(context(tmp_path, table.schema, "p"), table.to_batches())
        with pytest.raises(StorageError, match="connection was lost"):
            found.extend(files)
    assert found
    assert {str(path) for path in files_in(tmp_path)} == {f"{tmp_path}/{file.path}" for file in found}
    assert not publishing()


def test_files_come_in_the_order_of_the_rows_however_many_are_being_published(tmp_path: Path) -> None:
    table = pa.table({"id": range(30), "p": list(range(30))})
    [batch] = table.to_batches()
    files = list(
        write_files(context(tmp_path, table.schema, "p"), [batch.slice(0, 20), batch.slice(3, 0), batch.slice(20)])
    )
    assert [file.partition_values["p"] for file in files] == [str(i) for i in range(30)]
    assert [ids(tmp_path, file) for file in files] == [[i] for i in range(30)]
    assert [file.path.split(".")[1] for file in files] == [f"c{i:03d}" for i in range(30)]
    assert not publishing()
