"""Which columns of a data file are worth a dictionary.

Parquet writers begin every column with a dictionary and give it up once it is larger than a page. Until then each value
is hashed, and what was written so far stays in the file: a column of distinct values is slower to write and larger.
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
    """The paths of the Parquet columns that get a dictionary, by a sample of the rows: those whose values repeat.

    Nested columns, and those of which the sample tells too little, are left to the writer.
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
    """Rows from all over the table."""
    if rows.num_rows <= _SAMPLE:
        return rows
    dice = np.random.default_rng(0)  # equal steps would take one row of each run of equal values
    found = []
    for batch in rows.to_batches():
        share = max(1, _SAMPLE * batch.num_rows // rows.num_rows)
        found.append(batch.take(pa.array(np.unique(dice.integers(0, batch.num_rows, share)))))
    return pa.Table.from_batches(found, rows.schema)


def _is_worth_it(sample: pa.ChunkedArray, rows: int) -> bool:
    """Whether values occur several times, and the distinct ones fit a page.

    Of a column in which each value occurs `m` times, two rows are equal with the probability (m - 1) / (rows - 1).
    """
    known = sample.drop_null()
    if len(known) < 2:
        return True
    equal = len(known) - pc.count_distinct(known).as_py()
    pairs = len(known) * (len(known) - 1) / 2
    # Where most rows of the sample repeat, pairs say little; the distinct values have then mostly been seen.
    repeated = 1 + equal * (rows - 1) / pairs if equal < len(known) / 2 else rows / (len(known) - equal)
    size = known.nbytes / len(known)
    return bool(repeated >= _LEAST_REPEATED and rows / repeated * size <= _LARGEST)
