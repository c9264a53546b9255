"""Conversion of Arrow batches to the columns of a table: matched by name, nulls for missing ones, lossless casts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.encodings import decoded, decoded_type
from pyspark_delta.data.lists import list_parts
from pyspark_delta.data.offsets import with_offsets
from pyspark_delta.errors import ConstraintViolationError, SchemaMismatchError
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.store_assignment import ALL_INTEGERS, Cast, cast_of, matched_members
from pyspark_delta.schema.types import VOID, ArrayType, DataType, MapType, StructType

Values = TypeVar("Values", pa.Array, pa.ChunkedArray)
_UNFIT = (pa.ArrowInvalid, pa.ArrowNotImplementedError)


def conform(batch: pa.RecordBatch, data: StructType, table: StructType) -> pa.RecordBatch:
    """Return a batch with exactly the columns of `table`. The columns of `batch` are those of `data`, by position.

    `store_assignment.check_storable` must have accepted the types. Raises ConstraintViolationError for a value that
    does not fit.
    """
    columns = []
    for target, place in matched_members(data, table):
        if place is None:
            columns.append(pa.nulls(batch.num_rows, to_arrow(target.type)))
        else:
            columns.append(cast_column(batch.column(place), data.fields[place].type, target.type, target.name))
    return with_offsets(pa.RecordBatch.from_arrays(columns, names=list(table.names)))


def require_columns(
    batches: Iterable[pa.RecordBatch], stored: StructType, table: StructType
) -> Iterator[pa.RecordBatch]:
    """Yield the batches with the `stored` columns of a table. Void columns are dropped, because no file stores them.

    Raises SchemaMismatchError for a batch with other columns.
    """
    void = {field.name for field in table if field.type == VOID}
    for batch in batches:
        columns = enumerate(batch.schema.names)
        kept = [i for i, name in columns if name not in void or batch.column(i).null_count < batch.num_rows]
        names = [batch.schema.names[i] for i in kept]
        if sorted(names) != sorted(stored.names):
            raise SchemaMismatchError(
                f"The rows to write have the columns {', '.join(names)}, and the table has {', '.join(stored.names)}. "
                "Pass exactly these columns, with the same names."
            )
        yield batch.select(kept)


def cast_column(values: pa.Array, data: DataType, table: DataType, name: str) -> pa.Array:
    """Return the values of a column, or of a part of one, cast from the type `data` to the type `table` part by part.

    Raises as `conform`.
    """
    if cast_of(data, table) is Cast.NULL:
        return pa.nulls(len(values), to_arrow(table))
    values = decoded(values)
    match data, table:
        case StructType(), StructType():
            return _cast_struct(values, data, table, name)
        case ArrayType(source), ArrayType(target):
            offsets, elements = list_parts(values)
            items = cast_column(elements, source, target, f"{name}.element")
            return pa.ListArray.from_arrays(offsets, items, mask=values.is_null() if values.null_count else None)
        case MapType(), MapType():
            offsets, entries = list_parts(values)
            keys = cast_column(entries.field(0), data.key_type, table.key_type, f"{name}.key")
            items = cast_column(entries.field(1), data.value_type, table.value_type, f"{name}.value")
            return pa.MapArray.from_arrays(offsets, keys, items, mask=values.is_null() if values.null_count else None)
        case _:
            return cast_values(values, to_arrow(table), name)


def _cast_struct(values: pa.StructArray, data: StructType, table: StructType, name: str) -> pa.Array:
    members = []
    for target, place in matched_members(data, table):
        if place is None:
            members.append(pa.nulls(len(values), to_arrow(target.type)))
        else:
            inner = pc.struct_field(values, [place])
            members.append(cast_column(inner, data.fields[place].type, target.type, f"{name}.{target.name}"))
    fields = [pa.field(target.name, member.type) for target, member in zip(table, members, strict=True)]
    return pa.StructArray.from_arrays(members, fields=fields, mask=values.is_null() if values.null_count else None)


def cast_values(values: Values, target: pa.DataType, name: str) -> Values:
    """Return the values of a column in the type of the table.

    Raises ConstraintViolationError for a value that does not fit.
    """
    if values.type == target:
        return values
    try:
        return _cast_exactly(values, target)
    except _UNFIT as error:
        raise ConstraintViolationError(
            f"The value {_first_unfit(values, target)} does not fit the type {target} of the column '{name}': "
            f"{error}. Nothing was committed. Cast or filter the rows.",
            error_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
            sqlstate="22003",
            column=name,
        ) from None


def _cast_exactly(values: Values, target: pa.DataType) -> Values:
    if isinstance(values, pa.ChunkedArray):
        values = pa.chunked_array([decoded(chunk) for chunk in values.chunks], decoded_type(values.type))
    else:
        values = decoded(values)
    if pa.types.is_integer(values.type) and pa.types.is_decimal(target):
        values = values.cast(to_arrow(ALL_INTEGERS))  # Arrow refuses decimals that do not hold all integers
    return values.cast(target)


def _first_unfit(values: pa.Array | pa.ChunkedArray, target: pa.DataType) -> object:
    """Return the first value that does not fit; one of them does not."""
    while len(values) > 1:
        first, rest = values.slice(0, len(values) // 2), values.slice(len(values) // 2)
        try:
            _cast_exactly(first, target)
        except _UNFIT:
            values = first
        else:
            values = rest
    try:
        return values[0].as_py()
    except (ValueError, OverflowError):  # a time that Python does not have
        return values[0].value
