"""B32: the 22 queries of TPC-H in SQL, on tables by their names: Delta, and Parquet from the same files."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from benchmarks.model import FULL, OURS, Goal, Peer, Prepared, Scale, Variant, Workload, dataset
from benchmarks.tpch_queries import QUERIES, TABLES, query

_HERE = __name__
DELTA_SPARK, PARQUET = "delta-spark", "Spark's Parquet"


def workload(scale: Scale) -> Workload:
    """One variant for each query."""
    tables = dataset("tpch", scale=1.0 if scale == FULL else 0.02, files=8)
    return Workload(
        "B32",
        "TPC-H in SQL",
        (
            Peer(OURS, f"{_HERE}:ours", inner=3, session=True),
            Peer(PARQUET, f"{_HERE}:parquet", inner=3, session=True),
            Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", inner=3, session=True),
        ),
        tuple(
            Variant(f"query {number}", tables, {"number": number}, (Goal(PARQUET, 1 / 1.05), Goal(DELTA_SPARK, 1)))
            for number in QUERIES
        ),
    )


def ours(location: str, number: int) -> Prepared:
    return _prepared("ours", "delta", location, number)


def parquet(location: str, number: int) -> Prepared:
    return _prepared("parquet", "parquet", location, number)


def delta_spark(location: str, number: int) -> Prepared:
    return _prepared("delta-spark", "delta", location, number)


def _prepared(reader: str, source: str, location: str, number: int) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session(reader)
    text = query(number, {name: f"{source}.`{location}/{name}`" for name in TABLES})
    run: Callable[[], Any] = lambda: spark.sql(text).collect()  # noqa: E731
    return Prepared(run, lambda rows: [[_value(value) for value in row] for row in rows])


def _value(value: Any) -> Any:
    return round(float(value), 2) if isinstance(value, Decimal | float) else str(value)
