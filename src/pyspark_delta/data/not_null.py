"""NOT NULL columns hold no null: checked on every batch before it is written (Schema Serialization, `nullable`)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.schema.types import StructType


def check_not_null(batch: pa.RecordBatch, schema: StructType) -> None:
    """Check the columns of `schema` that are not nullable, and those inside structs, which may themselves be null.

    Raises ConstraintViolationError naming the column.
    """
    for field in schema:
        column = batch.column(field.name)
        if not field.nullable and column.null_count:
            raise _violation((field.name,), column.null_count)
        if isinstance(field.type, StructType):
            _check_struct(column, field.type, (field.name,))


def _check_struct(values: Any, struct: StructType, path: tuple[str, ...]) -> None:
    for index, field in enumerate(struct):
        if field.nullable and not isinstance(field.type, StructType):
            continue
        child, here = pc.struct_field(values, [index]), (*path, field.name)
        if not field.nullable and child.null_count:
            missing = pc.sum(pc.and_(pc.is_null(child), pc.is_valid(values))).as_py()
            if missing:
                raise _violation(here, missing)
        if isinstance(field.type, StructType):
            _check_struct(child, field.type, here)


def _violation(path: tuple[str, ...], rows: int) -> ConstraintViolationError:
    column = ".".join(path)
    return ConstraintViolationError(
        f"The column '{column}' is NOT NULL, but {rows} of the rows to write have null in it. Nothing was committed. "
        "Fill or filter these rows.",
        error_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        column=column,
        rows=rows,
    )
