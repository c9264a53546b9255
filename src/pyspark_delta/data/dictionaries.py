"""Which columns of a data file benefit from a dictionary.

Parquet writers begin every column with a dictionary and drop it once it is larger than a page. Until then each value is
hashed, and the pages so far stay in the file: a column of distinct values is slower to write and larger.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.parquet_columns import parquet_columns

_SAMPLE = 2048  # rows
_LARGEST = 1 << 20  # bytes of a dictionary that is kept
_LEAST_REPEATED = 2.0


def dictionary_columns(rows: pa.Table) -> list[str]:
    """Return the paths of the Parquet columns that get a dictionary: those whose values repeat in a sample of the rows.

    Nested columns, and those for which the sample is too small, are left to the writer.
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
    """Return rows from all parts of the table."""
    if rows.num_rows <= _SAMPLE:
        return rows
    dice = np.random.default_rng(0)  # equal steps would take one row of each run of equal values
    found = []
    for batch in rows.to_batches():
        share = max(1, _SAMPLE * batch.num_rows // rows.num_rows)
        found.append(batch.take(pa.array(np.unique(dice.integers(0, batch.num_rows, share)))))
    return pa.Table.from_batches(found, rows.schema)


def _is_worth_it(sample: pa.ChunkedArray, rows: int) -> bool:
    """True if values occur several times, and the distinct ones fit a page.

    In a column in which each value occurs `m` times, two rows are equal with the probability (m - 1) / (rows - 1).
    """
    known = sample.drop_null()
    if len(known) < 2:
        return True
    equal = len(known) - pc.count_distinct(known).as_py()
    pairs = len(known) * (len(known) - 1) / 2
    # If most rows of the sample repeat, pairs are not informative; but then most distinct values are in the sample.
    repeated = 1 + equal * (rows - 1) / pairs if equal < len(known) / 2 else rows / (len(known) - equal)
    size = known.nbytes / len(known)
    return bool(repeated >= _LEAST_REPEATED and rows / repeated * size <= _LARGEST)
