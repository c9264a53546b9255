"""Convert file actions of a checkpoint to columns: `add` or `remove` structs to the fields of `actions.columns`."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import WIRE_NAMES
from pyspark_delta.errors import CorruptLogError
from pyspark_delta.log.arrays import conform_map
from pyspark_delta.log.parquet_part import ParquetPart


def leaf_columns(part: ParquetPart, action: str, fields: Sequence[pa.Field], row_group: int) -> list[str]:
    """Return the columns to read for the fields: those that exist in the file and have a value in the row group."""
    struct = part.schema.field(action).type
    if not pa.types.is_struct(struct):
        raise CorruptLogError(f"The column '{action}' of '{part.path}' is not a struct.", path=part.path)
    wanted = []
    for field in fields:
        name = WIRE_NAMES[field.name]
        if struct.get_field_index(name) < 0:
            continue
        leaf = f"{action}.{name}.storageType" if field.name == "deletion_vector" else f"{action}.{name}"
        if part.leaf(leaf) is None or not part.all_null(row_group, leaf):
            wanted.append(f"{action}.{name}")
    return wanted


def extract(struct: pa.StructArray, fields: Sequence[pa.Field], path: str) -> pa.RecordBatch:
    """Return the columns of `fields`, one row per checkpoint row; rows without the action have no path.

    Raises CorruptLogError if a column has another type.
    """
    children = {struct.type.field(i).name: i for i in range(struct.type.num_fields)}
    columns = []
    for wanted in fields:
        position = children.get(WIRE_NAMES[wanted.name])
        child = None if position is None else struct.field(position)
        if child is not None and wanted.name == "path" and struct.null_count > child.null_count:
            child = pc.struct_field(struct, [position])  # required fields always have a value
        columns.append(_conform(child, wanted, len(struct), path))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _conform(column: pa.Array | None, wanted: pa.Field, length: int, path: str) -> pa.Array:
    if column is None:
        return pa.nulls(length, wanted.type)
    if column.type == wanted.type:
        return column
    try:
        if pa.types.is_map(wanted.type) and pa.types.is_map(column.type):
            return conform_map(column, wanted.type)
        if pa.types.is_struct(wanted.type) and pa.types.is_struct(column.type):
            return _conform_struct(column, wanted, path)
        return column.cast(wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorruptLogError(
            f"The field '{WIRE_NAMES[wanted.name]}' in the checkpoint '{path}' has the type {column.type}: {error}. "
            "Restore the checkpoint, or delete it.",
            path=path,
        ) from None


def _conform_struct(column: pa.StructArray, wanted: pa.Field, path: str) -> pa.StructArray:
    children = {column.type.field(i).name: column.field(i) for i in range(column.type.num_fields)}
    columns = [_conform(children.get(WIRE_NAMES[f.name]), f, len(column), path) for f in wanted.type]
    # If there is no deletion vector, some writers write a struct of nulls, others one of empty strings and zeros.
    absent = pc.fill_null(pc.equal(columns[0], ""), True)
    mask = absent if pc.any(absent).as_py() else None
    return pa.StructArray.from_arrays(columns, fields=list(wanted.type), mask=mask)
