"""Convert structs of one type to another: children by name, values cast, matching children without a copy."""

from __future__ import annotations

import pyarrow as pa


def cast_struct(column: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    """Return the column as the wanted type; None if it lacks a field, or a field cannot be cast."""
    return _convert(column, wanted, lenient=False)


def cast_struct_or_null(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the column as the wanted type, null if that is not possible."""
    found = _convert(column, wanted, lenient=True)
    return pa.nulls(len(column), wanted) if found is None else found


def _convert(column: pa.Array, wanted: pa.DataType, *, lenient: bool) -> pa.Array | None:
    if column.type == wanted:
        return column
    if pa.types.is_struct(wanted) != pa.types.is_struct(column.type):
        return None
    if not pa.types.is_struct(wanted):
        return _cast(column, wanted)
    given = column.flatten()
    children = []
    for field in wanted:
        position = _position(column.type, field.name)
        child = None if position < 0 else _convert(given[position], field.type, lenient=lenient)
        if child is None:
            if not lenient:
                return None
            child = pa.nulls(len(column), field.type)
        children.append(child)
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)


def _position(struct: pa.StructType, name: str) -> int:
    position: int = struct.get_field_index(name)
    if position < 0 and name == "nullCount":
        position = struct.get_field_index("nullCounts")  # as the specification's sample spells it (C057)
    return position


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    if pa.types.is_string(column.type) != pa.types.is_string(wanted):
        return None
    try:
        if pa.types.is_timestamp(wanted) and pa.types.is_timestamp(column.type):
            return column.cast(pa.timestamp("us", column.type.tz)).cast(wanted)
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
