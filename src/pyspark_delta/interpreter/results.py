"""Results of statements as Arrow tables, with the columns that delta-spark and Spark give them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

NOTHING = pa.table({})
COLUMNS = pa.schema({"col_name": pa.string(), "data_type": pa.string(), "comment": pa.string()})
TABLES = pa.schema({"namespace": pa.string(), "tableName": pa.string(), "isTemporary": pa.bool_()})


def texts(**columns: Iterable[str | None]) -> pa.Table:
    """Return columns of texts."""
    return pa.table({name: pa.array(list(values), pa.string()) for name, values in columns.items()})


def counts(**numbers: int) -> pa.Table:
    """Return one row of numbers."""
    return pa.table({name: pa.array([number], pa.int64()) for name, number in numbers.items()})
