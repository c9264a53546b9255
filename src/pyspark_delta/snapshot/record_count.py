"""The number of rows of a version from its log alone: numRecords of each file, less its deleted rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions.tree import Column
from pyspark_delta.schema.types import LONG

NUM_RECORDS = Column(("numRecords",), LONG)


@dataclass(frozen=True, slots=True)
class RecordCount:
    """The rows of the files with statistics (C408), and the paths, as in the log, of files that must be opened.

    A version checksum cannot be used: it counts files and deleted rows, not rows.
    """

    known: int
    unknown: pa.ChunkedArray

    @property
    def total(self) -> int | None:
        """Return the number of rows of the version; None if a file must be opened to know it."""
        return None if len(self.unknown) else self.known


def count_records(batches: Iterable[pa.RecordBatch]) -> RecordCount:
    """Count the files of batches with the columns path, deletion_vector and numRecords, in this order."""
    known = 0
    unknown: list[pa.Array] = []
    for batch in batches:
        vectors, counts = batch.column(1), batch.column(2)
        if vectors.null_count < len(vectors):
            deleted = pc.struct_field(vectors, "cardinality")
            counts = pc.subtract(counts, pc.fill_null(deleted, 0))
        # An impossible number is treated as missing.
        usable = pc.fill_null(pc.greater_equal(counts, 0), False)
        known += pc.sum(counts.filter(usable)).as_py() or 0
        if usable.true_count < len(batch):
            unknown.append(batch.column(0).filter(pc.invert(usable)))
    return RecordCount(known, pa.chunked_array(unknown, pa.string()))
