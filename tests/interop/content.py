"""Rows of Arrow tables as plain values that compare equal where engines differ only in Arrow's types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def content(rows: pa.Table) -> list[str]:
    """The rows as text, in no order of their own but sorted: equal lists are equal content."""
    names = sorted(rows.schema.names)
    columns = [_plain_column(rows.column(name)) for name in names]
    return sorted(repr(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True))


def _plain_column(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    """Maps, which are lists of pairs, in the order of their keys; structs in the order of their fields' names."""
    match value:
        case dict():
            return {key: _plain(value[key]) for key in sorted(value)}
        case [tuple(), *_]:
            return sorted((_plain(pair) for pair in value), key=repr)
        case list() | tuple():
            return [_plain(member) for member in value]
        case _:
            return value
