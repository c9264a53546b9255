"""Deletion vectors before they are expanded for Spark: one bit for each row up to the last that is marked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from pyspark_delta.actions.columns import DELETION_VECTOR
from pyspark_delta.deletion_vectors.files import encode_inline
from pyspark_delta.errors import DeletionVectorError
from pyspark_delta.spark.frames.catalyst.vectors import read_vectors


def _files(path: Path, bitmap: BitMap64, stats: str | None, count: int = 1) -> pa.Table:
    """Some entries of a file of three rows, with a vector."""
    pq.write_table(pa.table({"id": [1, 2, 3]}), path / "f.parquet")
    descriptor = encode_inline(bitmap)
    vector = {f.name: getattr(descriptor, f.name) for f in DELETION_VECTOR.type}
    columns = {
        "path": pa.array(["f.parquet"] * count),
        "deletion_vector": pa.array([vector] * count, DELETION_VECTOR.type),
    }
    return pa.table(columns if stats is None else {**columns, "stats": pa.array([stats] * count)})


@pytest.mark.parametrize(
    ("last", "stats", "says"),
    [
        (3, '{"numRecords":3}', "by its statistics the file has only 3 rows"),
        (600_000_000, '{"numRecords":600000001}', "but the file has only 3 rows"),
        (600_000_000, "{}", "but the file has only 3 rows"),
        (600_000_000, None, "but the file has only 3 rows"),
        (1 << 40, f'{{"numRecords":{1 << 41}}}', "Spark needs a bit for each row"),
    ],
)
def test_a_vector_beyond_its_file_is_refused(tmp_path: Path, last: int, stats: str | None, says: str) -> None:
    with pytest.raises(DeletionVectorError, match=says):
        read_vectors(_files(tmp_path, BitMap64([0, last]), stats), str(tmp_path), {})


def test_many_vectors_that_are_large_together_are_refused(tmp_path: Path) -> None:
    last = (1 << 24) - 1  # too few rows for a look at the footer
    files = _files(tmp_path, BitMap64([last]), None, count=1025)
    with pytest.raises(DeletionVectorError, match="2 GiB"):
        read_vectors(files, str(tmp_path), {})
    assert len(read_vectors(files.slice(0, 1000), str(tmp_path), {})) == 1000


def test_a_vector_within_its_file_is_read(tmp_path: Path) -> None:
    (found,) = read_vectors(_files(tmp_path, BitMap64([0, 2]), '{"numRecords":3}'), str(tmp_path), {})
    assert list(found) == [0, 2]
