"""File actions of a checkpoint as columns: `add` or `remove` structs to the fields of `actions.columns`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import WIRE_NAMES
from pyspark_delta.errors import CorruptLogError
from pyspark_delta.log.parquet_part import ParquetPart

_STREAM_ROWS = 65536


def file_batches(
    part: ParquetPart,
    action: str,
    fields: Sequence[pa.Field],
    row_groups: Sequence[int] | None = None,
    *,
    rows: int = _STREAM_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The file actions of one file, `add` or `remove`; `fields` must hold the path. Raises CorruptLogError."""
    groups = part.row_groups_with(f"{action}.path") if row_groups is None else list(row_groups)
    if not groups:
        return
    wanted = leaf_columns(part, action, fields)
    for batch in part.batches(wanted, groups, rows=rows):
        yield extract(batch, action, fields, part.path)


def leaf_columns(part: ParquetPart, action: str, fields: Sequence[pa.Field]) -> list[str]:
    """The column names to read for the fields: those that the file has."""
    struct = part.schema.field(action).type
    if not pa.types.is_struct(struct):
        raise CorruptLogError(f"The column '{action}' of '{part.path}' is not a struct.", path=part.path)
    present = {struct.field(i).name for i in range(struct.num_fields)}
    return [f"{action}.{WIRE_NAMES[f.name]}" for f in fields if WIRE_NAMES[f.name] in present]


def extract(batch: pa.RecordBatch, action: str, fields: Sequence[pa.Field], path: str) -> pa.RecordBatch:
    """The rows of a batch of the checkpoint that hold the action, with the columns of `fields`."""
    struct = batch.column(action)
    children = {struct.type.field(i).name: struct.field(i) for i in range(struct.type.num_fields)}
    columns = []
    for wanted in fields:
        child = children.get(WIRE_NAMES[wanted.name])
        columns.append(_conform(child, wanted, len(batch), path))
    result = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
    paths = result.column("path")
    if paths.null_count:
        result = result.filter(pc.is_valid(paths))
    return result


def _conform(column: pa.Array | None, wanted: pa.Field, length: int, path: str) -> pa.Array:
    if column is None:
        return pa.nulls(length, wanted.type)
    if column.type == wanted.type:
        return column
    try:
        if pa.types.is_map(wanted.type) and pa.types.is_map(column.type):
            return _conform_map(column, wanted.type)
        if pa.types.is_struct(wanted.type) and pa.types.is_struct(column.type):
            return _conform_struct(column, wanted, path)
        return column.cast(wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorruptLogError(
            f"The field '{WIRE_NAMES[wanted.name]}' in the checkpoint '{path}' is {column.type}: {error}.", path=path
        ) from None


def _conform_map(column: pa.MapArray, wanted: pa.MapType) -> pa.MapArray:
    column = pa.concat_arrays([column])  # without an offset
    mask = column.is_null() if column.null_count else None
    keys, items = column.keys.cast(wanted.key_type), column.items.cast(wanted.item_type)
    return pa.MapArray.from_arrays(column.offsets, keys, items, mask=mask)


def _conform_struct(column: pa.StructArray, wanted: pa.Field, path: str) -> pa.StructArray:
    children = {column.type.field(i).name: column.field(i) for i in range(column.type.num_fields)}
    columns = [_conform(children.get(WIRE_NAMES[f.name]), f, len(column), path) for f in wanted.type]
    # Where there is no deletion vector, some writers leave a struct of nulls, others one of empty strings and zeros.
    absent = pc.fill_null(pc.equal(columns[0], ""), True)
    mask = absent if pc.any(absent).as_py() else None
    return pa.StructArray.from_arrays(columns, fields=list(wanted.type), mask=mask)
