"""Delta types as Arrow types and back (Primitive Types; PQT C436-C443).

    byte short integer long   int8 int16 int32 int64          float double      float32 float64
    boolean string binary     bool string binary              decimal(p,s)      decimal128(p, s)
    date                      date32                          void              null
    timestamp                 timestamp[us, UTC]              timestamp_ntz     timestamp[us]
    interval year to month    int32, months                   interval day to second   duration[us]
    array map struct          list map struct                 variant           struct<value, metadata>

A variant is a struct of its two binaries; the Arrow field `metadata` has the field metadata `variant=true`, as in
PySpark. Arrow has a type for months, but neither Parquet nor PySpark accepts it: so it is an int32.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.schema.column_mapping import field_id, nested_ids
from pyspark_delta.schema.json import MAX_DEPTH
from pyspark_delta.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    YEAR_MONTH_INTERVAL,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

ARROW_VARIANT = "arrow.parquet.variant"
"""The name of Arrow's extension type for variants."""

_VARIANT_MARK = {b"variant": b"true"}

VARIANT_STORAGE = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata=_VARIANT_MARK),
    ]
)

_PRIMITIVES: dict[PrimitiveType, pa.DataType] = {
    STRING: pa.string(),
    LONG: pa.int64(),
    INTEGER: pa.int32(),
    SHORT: pa.int16(),
    BYTE: pa.int8(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    BOOLEAN: pa.bool_(),
    BINARY: pa.binary(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
    VOID: pa.null(),
    VARIANT: VARIANT_STORAGE,
    YEAR_MONTH_INTERVAL: pa.int32(),
    DAY_TIME_INTERVAL: pa.duration("us"),
}


def to_arrow(data_type: DataType, *, all_nullable: bool = False) -> pa.DataType:
    """Return the Arrow type of a Delta type. With `all_nullable`, everything below it except map keys is nullable."""
    match data_type:
        case PrimitiveType():
            return _PRIMITIVES[data_type]
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element, contains_null):
            item = to_arrow(element, all_nullable=all_nullable)
            return pa.list_(pa.field("element", item, nullable=all_nullable or contains_null))
        case MapType(key, value, value_contains_null):
            return pa.map_(
                pa.field("key", to_arrow(key, all_nullable=all_nullable), nullable=False),
                pa.field(
                    "value", to_arrow(value, all_nullable=all_nullable), nullable=all_nullable or value_contains_null
                ),
            )
        case StructType(fields):
            return pa.struct([field_to_arrow(f, all_nullable=all_nullable) for f in fields])


def field_to_arrow(field: StructField, *, all_nullable: bool = False) -> pa.Field:
    """Return the Arrow field of a column, without the metadata of the column."""
    arrow_type = to_arrow(field.type, all_nullable=all_nullable)
    return pa.field(field.name, arrow_type, nullable=all_nullable or field.nullable)


def schema_to_arrow(schema: StructType, *, all_nullable: bool = False) -> pa.Schema:
    """Return the Arrow schema of a table's schema. Scans read with `all_nullable`: NOT NULL binds writers only."""
    return pa.schema([field_to_arrow(f, all_nullable=all_nullable) for f in schema])


def schema_to_parquet(schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which files are written: everything nullable, with the field ids of columns.

    List elements, map keys and map values have ids too if the metadata of the field above contains them (C241, C293).
    """
    return pa.schema([_field_to_parquet(f) for f in schema])


def _field_to_parquet(field: StructField) -> pa.Field:
    data_type = _type_to_parquet(field.type, nested_ids(field), "")
    return pa.field(field.name, data_type, metadata=_id_metadata(field_id(field)))


def _type_to_parquet(data_type: DataType, ids: Mapping[str, int], path: str) -> pa.DataType:
    match data_type:
        case StructType(fields):
            return pa.struct([_field_to_parquet(f) for f in fields])
        case ArrayType(element):
            here = f"{path}element"
            item = _type_to_parquet(element, ids, f"{here}.")
            return pa.list_(pa.field("element", item, metadata=_id_metadata(ids.get(here))))
        case MapType(key, value):
            keys, values = f"{path}key", f"{path}value"
            key_type, value_type = _type_to_parquet(key, ids, f"{keys}."), _type_to_parquet(value, ids, f"{values}.")
            return pa.map_(
                pa.field("key", key_type, nullable=False, metadata=_id_metadata(ids.get(keys))),
                pa.field("value", value_type, metadata=_id_metadata(ids.get(values))),
            )
        case _:
            return to_arrow(data_type, all_nullable=True)


def _id_metadata(column_id: int | None) -> dict[bytes, bytes] | None:
    return None if column_id is None else {b"PARQUET:field_id": str(column_id).encode()}


def from_arrow(arrow_type: pa.DataType, *, where: str = "column", depth: int = 0) -> DataType:
    """Return the narrowest Delta type that holds every value of an Arrow type.

    Raises SchemaMismatchError, naming `where`, for types without such a Delta type (times, for example), and for types
    that are nested too deeply for a schema.
    """
    if depth > MAX_DEPTH:
        raise SchemaMismatchError(f"The type of {where} is nested more than {MAX_DEPTH} levels deep.", column=where)
    if found := _LEAVES.get(arrow_type):
        return found
    types = pa.types
    if isinstance(arrow_type, pa.BaseExtensionType):
        if "variant" in arrow_type.extension_name:
            return VARIANT
        return from_arrow(arrow_type.storage_type, where=where, depth=depth + 1)
    if types.is_dictionary(arrow_type) or types.is_run_end_encoded(arrow_type):
        return from_arrow(arrow_type.value_type, where=where, depth=depth + 1)
    if types.is_timestamp(arrow_type):
        return TIMESTAMP_NTZ if arrow_type.tz is None else TIMESTAMP
    if types.is_decimal(arrow_type) and arrow_type.precision <= 38 and 0 <= arrow_type.scale <= arrow_type.precision:
        return DecimalType(arrow_type.precision, arrow_type.scale)
    if types.is_fixed_size_binary(arrow_type):
        return BINARY
    if types.is_duration(arrow_type):
        return DAY_TIME_INTERVAL
    if types.is_map(arrow_type):
        return MapType(
            from_arrow(arrow_type.key_type, where=f"{where}.key", depth=depth + 1),
            from_arrow(arrow_type.item_type, where=f"{where}.value", depth=depth + 1),
            arrow_type.item_field.nullable,
        )
    if types.is_struct(arrow_type):
        return VARIANT if is_variant_storage(arrow_type) else StructType(_struct_fields(arrow_type, where, depth + 1))
    if is_list_like(arrow_type):
        element = arrow_type.value_field
        return ArrayType(from_arrow(element.type, where=f"{where}.element", depth=depth + 1), element.nullable)
    raise SchemaMismatchError(
        f"The Arrow type {arrow_type} of {where} has no Delta type. Cast it{_advice(arrow_type)}.", column=where
    )


def _advice(arrow_type: pa.DataType) -> str:
    """Return the types to which values of a type without Delta type can be cast."""
    types = pa.types
    if types.is_time(arrow_type):
        return " to a string, or to a number such as the microseconds since midnight"
    if types.is_interval(arrow_type):
        return " to a string, or to a number of months or microseconds"
    if types.is_decimal(arrow_type):
        return " to a decimal of at most 38 digits with a scale from 0 on"
    if types.is_union(arrow_type):
        return " to a struct with a member for each type"
    return " before writing"


def schema_from_arrow(schema: pa.Schema) -> StructType:
    """Return the Delta schema of Arrow data. Raises SchemaMismatchError for a column without a Delta type."""
    return StructType(
        tuple(StructField(f.name, from_arrow(f.type, where=f"column '{f.name}'"), f.nullable) for f in schema)
    )


def is_list_like(arrow_type: pa.DataType) -> bool:
    """True if the type is any of Arrow's lists: plain, large, of a fixed size, or a view."""
    types = pa.types
    return bool(
        types.is_list(arrow_type)
        or types.is_large_list(arrow_type)
        or types.is_fixed_size_list(arrow_type)
        or types.is_list_view(arrow_type)
        or types.is_large_list_view(arrow_type)
    )


def is_variant_storage(arrow_type: pa.DataType) -> bool:
    """True if a struct is a variant: two binaries `value` and `metadata`, the latter with `variant=true`."""
    if not pa.types.is_struct(arrow_type) or {f.name for f in arrow_type} != {"value", "metadata"}:
        return False
    metadata = arrow_type.field("metadata")
    return (
        arrow_type.num_fields == 2
        and metadata.type == pa.binary()
        and (metadata.metadata or {}).get(b"variant") == b"true"
    )


def _struct_fields(arrow_type: pa.StructType, where: str, depth: int) -> tuple[StructField, ...]:
    return tuple(
        StructField(f.name, from_arrow(f.type, where=f"{where}.{f.name}", depth=depth), f.nullable) for f in arrow_type
    )


_LEAVES: dict[pa.DataType, PrimitiveType | DecimalType] = {
    **{arrow: delta for delta, arrow in _PRIMITIVES.items() if delta not in (VARIANT, YEAR_MONTH_INTERVAL)},
    pa.uint8(): SHORT,
    pa.uint16(): INTEGER,
    pa.uint32(): LONG,
    pa.uint64(): DecimalType(20, 0),
    pa.float16(): FLOAT,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    pa.date64(): DATE,
}
