"""Pads the texts of char(n) columns with spaces, as Spark does for its own tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as sf

from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.text_lengths import padded_length, padded_text
from pyspark_delta.schema.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_READ_SIDE_PADDING = "spark.sql.readSideCharPadding"
_AS_STRING = "spark.sql.legacy.charVarcharAsString"


def pads_texts(spark: SparkSession, schema: StructType) -> bool:
    """Return True if a table of this schema has char(n) columns, and the session pads their texts when it reads."""
    if all(padded_length(field) is None for field in schema):
        return False
    padding, as_string = (str(spark.conf.get(key, None)).lower() for key in (_READ_SIDE_PADDING, _AS_STRING))
    return padding != "false" and as_string != "true"


def padded_column(name: str, length: int) -> Column:
    """Return the text in a column of a frame, padded as by `padded_text`."""
    return sf.expr(padded_text(quoted(name), length))
