"""Rows that deletion vectors mark, dropped inside Spark's generated code.

Catalyst scan: the vector of a file rides with it as a hidden constant, one bit per row, and the bit of each row is
tested where the row is produced.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.spark.scan.jvm import Jvm


def is_kept(jvm: Jvm, deleted_rows: str, row_index: str) -> Column:
    """True for a row whose bit in the binary column `deleted_rows` of its file is not set.

    Bit `i & 7` of byte `i >> 3` stands for row `i`; rows beyond the last byte are kept.
    """
    vector, position = F.col(deleted_rows), F.col(row_index)
    place = F.shiftright(position, 3).cast("int")
    bit = F.call_function("shiftright", _byte_at(jvm, vector, place), position.bitwiseAND(7).cast("int")).bitwiseAND(1)
    return F.when(place < F.octet_length(vector), bit == 0).otherwise(True)


def _byte_at(jvm: Jvm, content: Column, place: Column) -> Column:
    """One byte of a binary value: SQL has no function for it that makes no copy, so the generated code calls Java."""
    root = jvm.root
    expressions, to_expression = root.org.apache.spark.sql.catalyst.expressions, root.org.apache.spark.sql.classic.ExpressionUtils.expression
    arguments = jvm.seq([to_expression(content._jc), to_expression(place._jc)])  # type: ignore[attr-defined]
    call = expressions.objects.StaticInvoke(
        jvm.load_class("java.lang.reflect.Array"),
        root.org.apache.spark.sql.types.DataType.fromJson('"byte"'),
        "getByte",
        arguments,
        jvm.nil,
        True,
        False,
        True,
        jvm.none,
    )
    return Column(root.org.apache.spark.sql.classic.ExpressionUtils.column(call)).cast("int")
