"""The paths of the Parquet columns of a data file, and of those with bounds in the footer."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def parquet_columns(path: str, data_type: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the paths of the Parquet columns of a column, each with its Arrow type."""
    if pa.types.is_struct(data_type):
        for field in data_type:
            yield from parquet_columns(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(data_type):
        yield from parquet_columns(f"{path}.key_value.{data_type.key_field.name}", data_type.key_type)
        yield from parquet_columns(f"{path}.key_value.{data_type.item_field.name}", data_type.item_type)
    elif pa.types.is_list(data_type):
        yield from parquet_columns(f"{path}.list.element", data_type.value_type)
    else:
        yield path, data_type


def bounded_columns(schema: pa.Schema) -> list[str]:
    """Return the paths of the Parquet columns that get statistics in the footer: all but floating-point numbers.

    Arrow leaves NaN out of the bounds. In Spark NaN is the greatest number, so a filter `x > 9` would skip a row group
    that contains NaN and has the maximum 8 in the footer.
    """
    found = (column for field in schema for column in parquet_columns(field.name, field.type))
    return [path for path, data_type in found if not pa.types.is_floating(data_type)]
