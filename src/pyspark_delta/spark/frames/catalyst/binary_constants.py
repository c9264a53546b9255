"""Reads numbers in binary constants of files inside Spark's generated code, without a copy.

SQL has no function for it. The generated code calls a method that every Parquet reader has on its class path; it is as
fast as reading the row index alone.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.spark.frames.catalyst.jvm import Jvm

WORD_BYTES, WORD_BITS = 4, 32
_LOW_WORD = 0xFFFFFFFF


def word_at(jvm: Jvm, content: Column, place: Column) -> Column:
    """Return four bytes of a binary value as a little-endian number.

    The value must not be null and must have that many bytes at the position.
    """
    utils = jvm.type("org.apache.spark.sql.classic.ExpressionUtils")
    arguments = [utils.expression(column._jc) for column in (content, place)]
    call = jvm.type("org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke")(
        jvm.load_class("org.apache.parquet.bytes.BytesUtils"),
        jvm.data_type('"integer"'),
        "readIntLittleEndian",
        jvm.seq(arguments),
        jvm.nil,
        False,  # propagates null: Catalyst would conclude that the constant is not null, and filter by that
        False,  # may return null
        True,  # deterministic
        jvm.none,
    )
    return Column(utils.column(call))


def long_at(jvm: Jvm, content: Column, place: Column) -> Column:
    """Return eight bytes of a binary value as a little-endian number."""
    low, high = (word_at(jvm, content, place + offset).cast("long") for offset in (0, WORD_BYTES))
    return F.shiftleft(high, WORD_BITS).bitwiseOR(low.bitwiseAND(F.lit(_LOW_WORD)))


def number_at(jvm: Jvm, content: Column, position: Column, width: int) -> Column:
    """Return the number at a position among numbers of `width` bits, a power of 2; the lowest bits of a byte first.

    The value must consist of whole words and end with a word of zeros, which stands for all numbers beyond. From a
    condition on the number, Catalyst concludes nothing about the constant alone.
    """
    per_word = WORD_BITS // width
    place = F.shiftright(position, per_word.bit_length() - 1) * WORD_BYTES
    within = F.least(place, F.octet_length(content).cast("long") - WORD_BYTES).cast("int")
    shift = (position.bitwiseAND(per_word - 1) * width).cast("int")
    return F.call_function("shiftright", word_at(jvm, content, within), shift).bitwiseAND(2**width - 1)
