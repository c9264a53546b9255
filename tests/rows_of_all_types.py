"""Rows of all types, and tables that hold them: for tests of copied row groups, with Spark and without."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark_delta.table import Table

COLUMNS = (
    "id BIGINT NOT NULL, s STRING, d DOUBLE, f FLOAT, l ARRAY<STRUCT<a: INT, b: STRING>>, "
    "m MAP<STRING, DECIMAL(20,2)>, "
    "t TIMESTAMP, n TIMESTAMP_NTZ, b BINARY, day DATE, x DECIMAL(5,1), y DECIMAL(30,3), flag BOOLEAN, small SMALLINT"
)


def rows(start: int, number: int) -> list[dict[str, Any]]:
    """Rows of all types, with nulls, NaN and empty lists."""
    day = datetime.date(1960, 1, 1)
    return [
        {
            "id": i,
            "s": None if i % 5 == 0 else f"name {i % 11}" * (i % 4),
            "d": float("nan") if i % 7 == 0 else i / 3,
            "f": None if i % 6 == 0 else float(i),
            "l": None if i % 9 == 0 else [{"a": j, "b": None if j else f"{i}"} for j in range(i % 3)],
            "m": {"k": Decimal(i), "": None} if i % 2 else {},
            "t": datetime.datetime(1990, 1, 1, 1, 2, 3, i, datetime.UTC),
            "n": datetime.datetime(2300, 1, 1, 1, 2, 3, i),
            "b": bytes([i % 256, 0]),
            "day": day + datetime.timedelta(i),
            "x": Decimal(i % 1000) / 10,
            "y": Decimal(-i) / 1000,
            "flag": i % 3 == 0,
            "small": i % 30_000,
        }
        for i in range(start, start + number)
    ]


def make(path: Path, *parts: list[dict[str, Any]], columns: str = COLUMNS, **properties: str) -> Table:
    table = Table.create(path, columns, properties=properties)
    for part in parts:
        table.append(part)
    return table.refresh()
