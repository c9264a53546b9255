"""The deletion vectors of files that Spark is to read."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.deletion_vectors.files import read_deletion_vectors
from pyspark_delta.errors import DeletionVectorError
from pyspark_delta.scan.bounds import NUM_RECORDS
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.storage import store_for


def read_vectors(files: pa.Table, location: str, storage_options: Mapping[str, str]) -> list[BitMap64]:
    """The vector of each file, of which every one has one.

    Raises DeletionVectorError for a vector that cannot be read, or that marks a row beyond the end of its file, where
    statistics tell it.
    """
    bitmaps = read_deletion_vectors(
        lambda place: store_for(place, storage_options),
        location,
        [DeletionVectorDescriptor(**one) for one in files["deletion_vector"].to_pylist()],
        data_files=files["path"].to_pylist(),
    )
    last = [bitmap.max() if bitmap else -1 for bitmap in bitmaps]
    (counts,) = parse_stats(files["stats"].combine_chunks(), (NUM_RECORDS,)).columns
    beyond = pc.fill_null(pc.greater_equal(pa.array(last, pa.int64()), counts), False)
    index = pc.index(beyond, True).as_py()
    if index >= 0:
        path = files["path"][index].as_py()
        raise DeletionVectorError(
            f"The deletion vector of data file '{path}' marks row {last[index]}, but by its statistics the file has "
            f"only {counts[index].as_py()} rows. One of the two files does not belong to this version.",
            path=path,
        )
    return bitmaps
