"""Reads the deletion vectors of files for Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.data.opened import rows_in_file
from pyspark_delta.deletion_vectors.bitmap import check_rows
from pyspark_delta.deletion_vectors.files import read_deletion_vectors
from pyspark_delta.errors import DeletionVectorError
from pyspark_delta.scan.bounds import NUM_RECORDS
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import resolve_file

# Spark gets one bit for each row up to the last deleted one: a vector of a few bytes may expand to any size.
_LARGE = 1 << 24  # the row from which the footer of the file must confirm the number of rows
_MOST_ROWS = 1 << 31  # of a file
_MOST_BYTES = 2 << 30  # of all vectors of a scan


def read_vectors(files: pa.Table, location: str, storage_options: Mapping[str, str]) -> list[BitMap64]:
    """Return the deletion vector of each file; every file must have one. They are small enough for Spark.

    Raises DeletionVectorError for a vector that cannot be read, that has a row beyond the end of its file, or that is
    too large for Spark, which needs one bit for each row. The number of rows of a file comes from its statistics, if it
    has some; from its footer if the vector has a row after the first 16 million.
    """
    bitmaps = read_deletion_vectors(
        lambda place: store_for(place, storage_options),
        location,
        [DeletionVectorDescriptor(**one) for one in files["deletion_vector"].to_pylist()],
        data_files=files["path"].to_pylist(),
    )
    if "stats" in files.column_names:
        _check_statistics(files, bitmaps)
    _check_sizes(files, bitmaps)
    for path, bitmap in zip(files["path"].to_pylist(), bitmaps, strict=True):
        if bitmap and bitmap.max() >= _LARGE:
            place = resolve_file(location, path)
            check_rows(bitmap, rows_in_file(place, storage_options), place)
    return bitmaps


def _check_statistics(files: pa.Table, bitmaps: Sequence[BitMap64]) -> None:
    last = [bitmap.max() if bitmap else -1 for bitmap in bitmaps]
    (counts,) = parse_stats(files["stats"].combine_chunks(), (NUM_RECORDS,)).columns
    beyond = pc.fill_null(pc.greater_equal(pa.array(last, pa.int64()), counts), False)
    index = pc.index(beyond, True).as_py()
    if index >= 0:
        path = files["path"][index].as_py()
        raise DeletionVectorError(
            f"The deletion vector of data file '{path}' contains row {last[index]}, but by its statistics the file has "
            f"only {counts[index].as_py()} rows. One of the two files does not belong to this version.",
            path=path,
        )


def _check_sizes(files: pa.Table, bitmaps: Sequence[BitMap64]) -> None:
    total = 0
    for path, bitmap in zip(files["path"].to_pylist(), bitmaps, strict=True):
        last = bitmap.max() if bitmap else 0
        total += last // 8
        if last >= _MOST_ROWS or total > _MOST_BYTES:
            raise DeletionVectorError(
                f"The deletion vector of data file '{path}' contains row {last}. Spark needs a bit for each row up "
                f"to it, which exceeds the limit of {_MOST_BYTES >> 30} GiB for a scan or of {_MOST_ROWS} rows for a "
                "file. Read fewer files at once with a condition on partition columns, or read the table with "
                "pyspark_delta.Table, which does not need this memory.",
                path=path,
            )
