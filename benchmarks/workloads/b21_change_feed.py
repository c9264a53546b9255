"""B21: read the change data feed of many commits, and of the last ten: sums by kind of change.

Spark on plain Parquet reads the files that hold the changed rows, given their names: a lower bound.
"""

from __future__ import annotations

from typing import Any

from benchmarks.model import ARROW, OURS, Dataset, Goal, Growth, Peer, Prepared, Scale, Variant, Workload, dataset, size

_HERE = __name__
_INNER, _PROCESSES, _LAST = 3, 2, 10
_DELTA_SPARK, _PARQUET, _DELTALAKE = "delta-spark", "Spark on plain Parquet", "deltalake"
_PEERS = (
    Peer(OURS, f"{_HERE}:ours", inner=_INNER, processes=_PROCESSES, session=True),
    Peer(_PARQUET, f"{_HERE}:parquet", inner=_INNER, processes=_PROCESSES, session=True, checked=False),
    Peer(_DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", _INNER, _PROCESSES, session=True),
    Peer(ARROW, f"{_HERE}:arrow", inner=_INNER, processes=_PROCESSES),
    Peer(_DELTALAKE, f"{_HERE}:deltalake", inner=_INNER, processes=_PROCESSES, against=ARROW),
)
_COLUMNS = ["id", "amount", "_change_type"]


def workload(scale: Scale) -> Workload:
    """Whole files, change data files, and deletion vectors."""
    commits, changes = scale.commits[0], scale.rows // 2

    def made(kind: str, commits: int = commits) -> Dataset:
        return dataset("changes", kind=kind, commits=commits, changes=changes)

    def variant(name: str, of: Dataset, start: int, *more: Growth) -> Variant:
        goals = (Goal(_PARQUET, 1 / 1.25), Goal(_DELTA_SPARK, 1), *more)
        return Variant(name, of, {**dict(of.arguments), "start": start}, goals)

    rewrites = f"{size(commits)} commits with change data files"
    last = f"the last {_LAST} of {rewrites}"
    marking = max(commits // 10, _LAST)
    return Workload(
        "B21",
        "Change data feed",
        _PEERS,
        (
            variant(f"{size(commits)} appends", made("appends"), 1),
            variant(rewrites, made("rewrites"), 1),
            variant(last, made("rewrites"), commits - _LAST + 1, Growth(rewrites, 0.5)),
            variant(f"{size(marking)} commits with deletion vectors", made("vectors", marking), 1),
        ),
    )


def ours(location: str, start: int, **made_of: Any) -> Prepared:
    """By pyspark-delta on Spark."""
    return _on_spark("ours", location, start)


def delta_spark(location: str, start: int, **made_of: Any) -> Prepared:
    """By delta-spark."""
    return _on_spark("delta-spark", location, start)


def parquet(location: str, start: int, **made_of: Any) -> Prepared:
    """The rows of the files, with nothing known about them."""
    from benchmarks.change_tables import ChangeTable, changed_files
    from benchmarks.spark_sessions import session

    spark = session("parquet")
    paths = [f"{location}/{name}" for name in changed_files(ChangeTable(**made_of), start)]
    return Prepared(lambda: spark.read.parquet(*paths).selectExpr("count(*)", "sum(id)", "sum(amount)").collect(), len)


def arrow(location: str, start: int, **made_of: Any) -> Prepared:
    """By pyspark-delta without Spark."""
    from pyspark_delta.table import Table

    return Prepared(lambda: _summed(Table.open(location).changes(start, columns=_COLUMNS).to_arrow()))


def deltalake(location: str, start: int, **made_of: Any) -> Prepared:
    """By deltalake."""
    import pyarrow as pa
    from deltalake import DeltaTable

    return Prepared(
        lambda: _summed(pa.table(DeltaTable(location).load_cdf(starting_version=start, columns=_COLUMNS).read_all()))
    )


def _on_spark(reader: str, location: str, start: int) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session(reader)

    def timed() -> list[list[Any]]:
        options = {"readChangeFeed": "true", "startingVersion": str(start)}
        changes = spark.read.format("delta").options(**options).load(location)
        sums = changes.groupBy("_change_type").agg({"*": "count", "id": "sum", "amount": "sum"})
        rows = sums.select("_change_type", "count(1)", "sum(id)", "sum(amount)").collect()
        return sorted(list(row) for row in rows)

    return Prepared(timed)


def _summed(changes: Any) -> list[list[Any]]:
    sums = changes.group_by("_change_type").aggregate([([], "count_all"), ("id", "sum"), ("amount", "sum")])
    columns = ("_change_type", "count_all", "id_sum", "amount_sum")
    return sorted(list(row) for row in zip(*(sums[name].to_pylist() for name in columns), strict=True))
