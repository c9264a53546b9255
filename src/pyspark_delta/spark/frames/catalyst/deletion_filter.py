"""Conditions that drop deleted rows in Spark's generated code, by the deletion vectors of their files.

In the Catalyst scan, the vector of a file is a hidden constant with one bit for each row. In the public scan, a join
adds the vector to each row of the file, as an array of words.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.spark.frames.catalyst.binary_constants import word_at
from pyspark_delta.spark.frames.catalyst.jvm import Jvm


def is_kept(jvm: Jvm, deleted_rows: str, row_index: str) -> Column:
    """Return a condition that is true for rows whose bit in the binary column `deleted_rows` is not set.

    Bit `i & 7` of byte `i >> 3` stands for row `i`. The value consists of whole 32-bit words; rows beyond them are
    kept.
    """
    kept: Column = jvm.once(("is kept", deleted_rows, row_index), lambda: _is_kept(jvm, deleted_rows, row_index))
    return kept


def _is_kept(jvm: Jvm, deleted_rows: str, row_index: str) -> Column:
    vector, position = F.col(deleted_rows), F.col(row_index)
    place = F.shiftleft(F.shiftright(position, 5).cast("int"), 2)
    word = word_at(jvm, vector, place)
    bit = F.call_function("shiftright", word, position.bitwiseAND(31).cast("int")).bitwiseAND(1)
    return F.when(place < F.octet_length(vector), bit == 0).otherwise(True)


def is_kept_by_words(words: str, row_index: str, selects: str) -> Column:
    """Return the condition of `is_kept` with public functions, for `words`, a column of arrays of 64-bit words.

    Bit `i & 63` of word `i >> 6` stands for row `i`. If the column `selects` is true, only rows whose bit is set are
    kept.
    """
    position = F.col(row_index)
    word = F.call_function("get", F.col(words), F.shiftright(position, 6).cast("int"))
    bit = F.call_function("shiftright", word, position.bitwiseAND(63).cast("int")).bitwiseAND(1)
    return F.coalesce(bit == 1, F.lit(False)) == F.col(selects)
