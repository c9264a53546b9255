"""The types of generated columns in a new table, for expressions whose type only Spark knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from pyspark_delta.errors import InvalidPredicateError
from pyspark_delta.protocol.expressions import check_generated_type, check_safe
from pyspark_delta.protocol.rows import ComputedColumn, ComputedKind
from pyspark_delta.schema.declaration_keys import GENERATION_EXPRESSION
from pyspark_delta.schema.types import DataType, StructType
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.frames.schemas import empty_frame, from_spark, to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check_generated_types(spark: SparkSession, schema: StructType) -> None:
    """Check that the expressions of generated columns have the types of their columns.

    Spark sees no text that is not allowed (`check_safe`). Other faults of an expression are left to the definition of
    the table. Raises InvalidOperationError.
    """
    key = GENERATION_EXPRESSION
    generated = {field.name: str(field.metadata[key]) for field in schema if key in field.metadata}
    generated = {name: text for name, text in generated.items() if _is_sql(name, text, schema)}
    if not generated:
        return
    with probing():
        rows = empty_frame(spark, to_spark(schema))
        types = {name: _type(rows, text) for name, text in generated.items()}
    for name, found in types.items():
        check_generated_type(name, found, schema)


def _is_sql(name: str, text: str, schema: StructType) -> bool:
    try:
        check_safe(ComputedColumn(name, ComputedKind.GENERATED, text), schema)
    except InvalidPredicateError:
        return False
    return True


def _type(rows: DataFrame, text: str) -> DataType | None:
    try:
        return from_spark(lambda: rows.select(sf.expr(text).alias("value")).schema).fields[0].type
    except AnalysisException:
        return None
