"""Rows that deletion vectors mark, dropped inside Spark's generated code.

Catalyst scan: the vector of a file rides with it as a hidden constant, one bit per row, and the bit of each row is
tested where the row is produced. DataFrame scan: the vectors are joined to the rows as arrays of words.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.spark.frames.catalyst.binary_constants import word_at
from pyspark_delta.spark.frames.catalyst.jvm import Jvm


def is_kept(jvm: Jvm, deleted_rows: str, row_index: str) -> Column:
    """True for a row whose bit in the binary column `deleted_rows` of its file is not set.

    Bit `i & 7` of byte `i >> 3` stands for row `i`, there are whole 32-bit words, and rows beyond them are kept.
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
    """The same with public functions: the column `words` is an array of 64-bit words, bit `i & 63` of word `i >> 6`.

    Where the column `selects` is true, the rows whose bit is set are kept, and no others.
    """
    position = F.col(row_index)
    word = F.call_function("get", F.col(words), F.shiftright(position, 6).cast("int"))
    bit = F.call_function("shiftright", word, position.bitwiseAND(63).cast("int")).bitwiseAND(1)
    return F.coalesce(bit == 1, F.lit(False)) == F.col(selects)
