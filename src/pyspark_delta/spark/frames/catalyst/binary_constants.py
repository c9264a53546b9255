"""Expressions that read a number from a binary column, in Spark's generated code and without a copy.

The column holds a constant of a file. SQL has no such function, so the generated code calls a method of Parquet, which
is on the class path of every Parquet reader. A scan takes no longer than one that only reads the row index.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.spark.frames.catalyst.columns import column_of, expression_of
from pyspark_delta.spark.frames.catalyst.jvm import Jvm

WORD_BYTES, WORD_BITS = 4, 32
_LOW_WORD = 0xFFFFFFFF


def word_at(jvm: Jvm, content: Column, place: Column) -> Column:
    """Return an expression for the four bytes from `place` on, as a signed little-endian integer.

    The value of `content` must not be null and must have these bytes.
    """
    arguments = [expression_of(jvm, column) for column in (content, place)]
    call = jvm.make(
        "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke",
        jvm.load_class("org.apache.parquet.bytes.BytesUtils"),
        jvm.data_type('"integer"'),
        "readIntLittleEndian",
        jvm.seq(arguments),
        jvm.nil,
        False,  # propagateNull: if true, Catalyst would infer that the constant is not null, and filter by that
        False,  # returnNullable
        True,  # isDeterministic
        jvm.none,
    )
    return column_of(jvm, call)


def long_at(jvm: Jvm, content: Column, place: Column) -> Column:
    """Return an expression for the eight bytes from `place` on, as `word_at` does for four."""
    low, high = (word_at(jvm, content, place + offset).cast("long") for offset in (0, WORD_BYTES))
    return F.shiftleft(high, WORD_BITS).bitwiseOR(low.bitwiseAND(F.lit(_LOW_WORD)))


def number_at(jvm: Jvm, content: Column, position: Column, width: int) -> Column:
    """Return an expression for the number at a position in a binary value, which packs numbers of `width` bits.

    `width` is a power of 2. The first number of a byte is in its lowest bits. The value must consist of whole 32-bit
    words; its last word must be 0, because positions after the end read it. Catalyst cannot infer a filter on the
    constant from a condition on the number.
    """
    per_word = WORD_BITS // width
    place = F.shiftright(position, per_word.bit_length() - 1) * WORD_BYTES
    within = F.least(place, F.octet_length(content).cast("long") - WORD_BYTES).cast("int")
    shift = (position.bitwiseAND(per_word - 1) * width).cast("int")
    return F.call_function("shiftright", word_at(jvm, content, within), shift).bitwiseAND(2**width - 1)
