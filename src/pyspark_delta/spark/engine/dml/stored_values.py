"""Casts of the values of an INSERT or a stream to the types of the columns: more casts than `df.write` has.

A value that cannot be cast is an error when the rows are computed, whatever the session's ANSI setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyspark.sql.functions as sf
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.schema.store_assignment import differences
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.spark.conf.conditions import condition_of
from pyspark_delta.spark.engine.dml.store_assignment import assign_value
from pyspark_delta.spark.engine.write.alignment import frame_schema
from pyspark_delta.spark.frames.catalyst.proxies import java_exception
from pyspark_delta.spark.frames.plain_columns import column_at

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_MARK = "Store assignment: the value '"
_RAISED = "USER_RAISED_EXCEPTION"


@contextmanager
def naming_values() -> Iterator[None]:
    """Raise SchemaMismatchError if a job in the block finds a value that cannot be cast."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = _raised_text(error)
        if _MARK not in text:
            raise
        found = text[text.index(_MARK) :].partition(" SQLSTATE")[0]
        raise SchemaMismatchError(
            f"{found} Nothing was written. Correct the value, or use try_cast to write null in its place.",
            error_class="CAST_INVALID_INPUT",
            sqlstate="22018",
        ) from None


def _raised_text(error: Exception) -> str:
    """Return the text of what an expression has raised; "" for other errors. Spark 3.5 raises a RuntimeException."""
    if isinstance(error, PySparkException):
        return str(error) if condition_of(error) == _RAISED else ""
    java = java_exception(error)
    while java is not None and not str(java.getMessage()).startswith(_MARK):
        java = java.getCause()
    return "" if java is None else str(java.getMessage())


def stored(frame: DataFrame, table: StructType, *, evolves: bool = False) -> DataFrame:
    """Return a frame whose columns, matched by name, have types that can be written to a table.

    Columns that the writer casts itself stay as they are, and so do columns that the table does not have. With
    `evolves`, so do columns with new members of structs, which the writer adds. Raises SchemaMismatchError for types of
    another kind, and Spark's own errors about types that cannot be cast.
    """
    data = frame_schema(frame)
    unlike = {field.name for field in data if _needs_cast(field, table, evolves=evolves)}
    if not unlike:
        return frame
    return frame.select(
        *(
            _cast(field, table) if field.name in unlike else column_at(frame.sparkSession, quoted(field.name))
            for field in data
        )
    )


def _needs_cast(field: StructField, table: StructType, *, evolves: bool) -> bool:
    target = table.find(field.name)
    if target is None:
        return False
    found = list(differences(StructType((field,)), StructType((target,))))
    return bool(found) and not (evolves and any(one.table is None for one in found))


def _cast(field: StructField, table: StructType) -> Column:
    target = table.find(field.name)
    assert target is not None
    assigned = assign_value(sf.col(quoted(field.name)), field.type, target, fills=True)
    if assigned.unfit is None:
        return assigned.value.alias(field.name)
    message = sf.concat(
        sf.lit(_MARK),
        assigned.unfit,
        sf.lit(f"' does not fit into the column '{target.name}' of type {target.type}."),
    )
    return sf.when(assigned.unfit.isNull(), assigned.value).otherwise(sf.raise_error(message)).alias(field.name)
