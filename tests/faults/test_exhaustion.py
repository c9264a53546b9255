"""Tables whose files announce more than they hold: no more memory is taken than what is there allows."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from pyspark_delta.data.raw_rows import RowSelection
from pyspark_delta.data.record_counts import with_record_counts
from pyspark_delta.data.variant_objects import Names
from pyspark_delta.deletion_vectors.bitmap import index_pieces, to_words
from pyspark_delta.deletion_vectors.files import encode_inline, write_deletion_vectors
from pyspark_delta.errors import CorruptLogError, DeletionVectorError, VersionNotFoundError
from pyspark_delta.log.listing import first_gap
from pyspark_delta.storage import store_for
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.table import Table
from pyspark_delta.testing.table_builder import TableBuilder, WireAction, add, metadata, protocol
from pyspark_delta.transaction.deleted_rows import delete_rows

ROWS = 600_000_000
MEGABYTE = 1 << 20
_PROTOCOL = protocol(3, 7, reader_features=["deletionVectors"])


@contextmanager
def memory(megabytes: int) -> Iterator[None]:
    """Let the block take so many megabytes at a time, by Python and NumPy."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * MEGABYTE
    finally:
        tracemalloc.stop()


def _bomb(rows: int = ROWS) -> BitMap64:
    bitmap = BitMap64(range(rows))
    bitmap.run_optimize()
    return bitmap


def _wire(descriptor: Any) -> dict[str, Any]:
    found = {
        "storageType": descriptor.storage_type,
        "pathOrInlineDv": descriptor.path_or_inline_dv,
        "sizeInBytes": descriptor.size_in_bytes,
        "cardinality": descriptor.cardinality,
    }
    return found if descriptor.offset is None else {**found, "offset": descriptor.offset}


def _table(path: Path, vector: dict[str, Any], stats: str | None = None) -> Path:
    pq.write_table(pa.table({"id": pa.array([1, 2, 3])}), path / "f.parquet")
    stored: WireAction = add("f.parquet", deletionVector=vector, stats=stats)
    TableBuilder(path).commit(0, [_PROTOCOL, metadata(), stored])
    return path


@pytest.mark.parametrize("stored", ["inline", "in a file"])
def test_a_vector_is_compared_with_its_file_before_it_is_expanded(tmp_path: Path, stored: str) -> None:
    bomb = _bomb()
    assert encode_inline(bomb).size_in_bytes < 200_000
    descriptor = encode_inline(bomb)
    if stored == "in a file":
        (descriptor,) = write_deletion_vectors(LocalStore(), str(tmp_path), [bomb])
    table = Table.open(_table(tmp_path, _wire(descriptor)))
    with memory(20), pytest.raises(DeletionVectorError, match=f"contains row {ROWS - 1}, but the file has only 3 rows"):
        table.scan().to_arrow()


def test_rows_are_taken_out_of_no_file_that_its_vector_does_not_fit(tmp_path: Path) -> None:
    table = Table.open(_table(tmp_path, _wire(encode_inline(_bomb())), stats='{"numRecords":3}'))
    files = with_record_counts(table.files(), table.location, None)
    with memory(20), pytest.raises(DeletionVectorError, match="has only 3 rows"):
        delete_rows(table.location, {}, files, {0: BitMap64([1])})


def test_marks_are_expanded_for_the_rows_of_a_batch() -> None:
    bomb = _bomb()
    with memory(4):
        kept = RowSelection(bomb).mask(ROWS - 1000, 2000)
        selected = RowSelection(bomb, selects=True).mask(ROWS - 1000, 2000)
        assert RowSelection(bomb).mask(ROWS, 10) is None
    assert kept is not None
    assert selected is not None
    expected = ([False] * 1000 + [True] * 1000, [True] * 1000 + [False] * 1000)
    assert (kept.tolist(), selected.tolist()) == expected


def test_words_are_made_a_piece_at_a_time() -> None:
    few = BitMap64([0, 63, 64, (1 << 20) - 1, 1 << 20, 100_000_000])
    with memory(40):
        words = to_words(_bomb(100_000_000))
        assert len(words) == 100_000_000 // 64
        assert bool((words == -1).all())
        assert [piece.tolist() for piece in index_pieces(few)] == [[0, 63, 64, (1 << 20) - 1], [1 << 20], [100_000_000]]
        sparse = to_words(few)
    assert np.flatnonzero(sparse).tolist() == [0, 1, (1 << 14) - 1, 1 << 14, 100_000_000 // 64]


@pytest.mark.parametrize("size", [30 << 30, 2**31 - 1 - 8, -5])
def test_a_descriptor_that_announces_more_than_its_file_takes_no_memory(tmp_path: Path, size: int) -> None:
    (descriptor,) = write_deletion_vectors(LocalStore(), str(tmp_path), [BitMap64([1])])
    path = _table(tmp_path, {**_wire(descriptor), "sizeInBytes": size})
    with memory(8), pytest.raises((DeletionVectorError, CorruptLogError)):
        Table.open(path).scan().to_arrow()


def test_a_range_beyond_the_end_of_a_file_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    with memory(1):
        assert store_for(str(tmp_path)).read(str(tmp_path / "f"), (1, 30 << 30)) == b"bc"


def test_a_checkpoint_of_ten_thousand_million_parts_is_incomplete(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.commit(0, [protocol(), metadata()])
    log = tmp_path / "_delta_log"
    (log / f"{0:020d}.checkpoint.{1:010d}.{9_999_999_999:010d}.parquet").write_bytes(b"PAR1")
    with memory(4):
        assert Table.open(tmp_path).version == 0


def test_a_checkpoint_of_more_rows_than_bytes_is_refused(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    path = table.classic_checkpoint(0, [protocol(), metadata(), add("f.parquet")])
    one = pa.StructArray.from_arrays([pa.array(["f.parquet"])], names=["path"])
    equal = pa.table({"add": pa.repeat(one[0], 4_000_000)})  # which take some kilobytes
    pq.write_table(equal, path)
    assert path.stat().st_size * 64 < equal.num_rows
    with memory(8), pytest.raises(CorruptLogError, match=r"declares \d+ rows in \d+ bytes"):
        Table.open(tmp_path).scan().to_arrow()


@pytest.mark.parametrize("version", [10_000_000_000, 2**63 - 1])
def test_a_commit_of_a_far_version_takes_no_memory(tmp_path: Path, version: int) -> None:
    table = TableBuilder(tmp_path)
    table.commit(0, [protocol(), metadata()])
    (tmp_path / "_delta_log" / f"{version:020d}.json").write_bytes(b'{"commitInfo":{}}\n')
    with memory(4), pytest.raises(CorruptLogError, match="version 1 is missing"):
        Table.open(tmp_path)


def test_changes_up_to_a_far_checkpoint_take_no_memory(tmp_path: Path) -> None:
    table, far = TableBuilder(tmp_path), 10_000_000_000
    table.commit(0, [protocol(), metadata()])
    table.classic_checkpoint(far, [protocol(), metadata()])
    opened = Table.open(tmp_path)
    assert opened.version == far
    with memory(8), pytest.raises((CorruptLogError, VersionNotFoundError)):
        opened.changes(starting_version=0).to_arrow()


def test_a_hint_of_any_numbers_is_a_hint(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.commit(0, [protocol(), metadata()])
    for parts in (None, 2**31 - 1, 2**63 - 1):
        table.hint({"version": 2**62, "size": 2**62, "sizeInBytes": 30 << 30, "parts": parts})
        with memory(4):
            assert Table.open(tmp_path).version == 0


def test_the_first_gap_takes_no_more_steps_than_there_are_versions() -> None:
    assert first_gap({0, 1, 2}, 0, 2) is None
    assert first_gap({0, 2}, 0, 2) == 1
    assert first_gap(set(), 5, 4) is None
    assert first_gap({0}, 0, 2**63) == 1


def test_the_metadata_of_a_variant_announces_no_memory() -> None:
    announced = bytes([0xC1]) + (2**32 - 2).to_bytes(4, "little")
    overlapping = bytes([0xC1]) + (4).to_bytes(4, "little")
    text = b"x" * 1000
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 1000, 1, 1000, 1000))
    for metadata_of_value in (announced, announced + b"\0" * 64, overlapping + offsets + text):
        with memory(2), pytest.raises(pa.ArrowInvalid, match="metadata of a variant"):
            Names(pa.array([metadata_of_value], pa.binary()))
    assert Names(pa.array([b"\x01\x02\x00\x01\x02ab"], pa.binary())).every == [b"a", b"b"]
