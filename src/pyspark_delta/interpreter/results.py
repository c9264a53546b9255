"""Results of statements as Arrow tables, with the columns that delta-spark and Spark give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

NOTHING = pa.table({})
COLUMNS = pa.schema({"col_name": pa.string(), "data_type": pa.string(), "comment": pa.string()})
TABLES = pa.schema({"namespace": pa.string(), "tableName": pa.string(), "isTemporary": pa.bool_()})


def texts(**columns: Iterable[str | None]) -> pa.Table:
    """Return columns of texts."""
    return pa.table({name: pa.array(list(values), pa.string()) for name, values in columns.items()})


def properties(declared: Mapping[str, str], key: str | None, table: str) -> pa.Table:
    """Return properties as rows, or the value of one key; a sentence if the table has no such key, as in Spark."""
    if key is not None:
        declared = {key: declared.get(key, f"Table {table} does not have property: {key}")}
    return texts(key=list(declared), value=list(declared.values()))


def counts(**numbers: int) -> pa.Table:
    """Return one row of numbers."""
    return pa.table({name: pa.array([number], pa.int64()) for name, number in numbers.items()})
