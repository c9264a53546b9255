"""The choice of columns of a data file that get a dictionary.

Parquet writers begin every column with a dictionary and drop it once it is larger than a page. Until then each value is
hashed, and the pages written so far stay in the file: a column of distinct values is slower to write, and larger.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.parquet_columns import parquet_columns

_SAMPLE = 2048  # rows
_LARGEST = 1 << 20  # bytes; larger dictionaries are dropped by the writer
_LEAST_REPEATED = 2.0


def dictionary_columns(rows: pa.Table) -> list[str]:
    """Return the paths of the Parquet columns that get a dictionary: their values repeat in a sample of the rows.

    Nested columns, and columns with fewer than two values in the sample, get one too; the writer may drop it.
    """
    sample = _sample(rows)
    paths: list[str] = []
    for place, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            paths += (path for path, _ in parquet_columns(field.name, field.type))
        elif _is_worth_it(sample.column(place), rows.num_rows):
            paths.append(field.name)
    return paths


def _sample(rows: pa.Table) -> pa.Table:
    """Return a random sample of rows from all batches of the table."""
    if rows.num_rows <= _SAMPLE:
        return rows
    dice = np.random.default_rng(0)  # equal steps could take one row of each run of equal values
    found = []
    for batch in rows.to_batches():
        share = max(1, _SAMPLE * batch.num_rows // rows.num_rows)
        found.append(batch.take(pa.array(np.unique(dice.integers(0, batch.num_rows, share)))))
    return pa.Table.from_batches(found, rows.schema)


def _is_worth_it(sample: pa.ChunkedArray, rows: int) -> bool:
    """Return True if values occur several times, and the distinct ones fit a dictionary.

    If each value of a column occurs `m` times, two rows are equal with the probability (m - 1) / (rows - 1).
    """
    known = sample.drop_null()
    if len(known) < 2:
        return True
    equal = len(known) - pc.count_distinct(known).as_py()
    pairs = len(known) * (len(known) - 1) / 2
    # If most rows of the sample are repetitions, this estimate fails; but then the sample has most distinct values.
    repeated = 1 + equal * (rows - 1) / pairs if equal < len(known) / 2 else rows / (len(known) - equal)
    size = known.nbytes / len(known)
    return bool(repeated >= _LEAST_REPEATED and rows / repeated * size <= _LARGEST)
