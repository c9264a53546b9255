"""B20: count the rows of a table from its statistics. The table has no data files, so reading them would fail."""

from __future__ import annotations

from benchmarks.model import ARROW, OURS, Goal, Peer, Prepared, Scale, Variant, Workload, size
from benchmarks.workloads.logs import log

_HERE = __name__


def workload(scale: Scale) -> Workload:
    """Cold without Spark; on Spark in a warm session."""
    large = scale.files[2]
    cold, on_spark = (ARROW, "deltalake"), (OURS, "delta-spark")
    return Workload(
        "B20",
        "Count rows",
        (
            Peer(OURS, f"{_HERE}:on_spark", inner=3, processes=2, session=True),
            Peer("delta-spark", f"{_HERE}:delta_spark", "delta-spark", 3, 2, session=True),
            Peer(ARROW, f"{_HERE}:ours"),
            Peer("deltalake", f"{_HERE}:deltalake", against=ARROW),
        ),
        (
            Variant(f"{size(large)} files", log(large), goals=(Goal("deltalake", 5),), repetitions=3, peers=cold),
            Variant(
                f"{size(large)} files, struct statistics",
                log(large, struct_stats=True),
                goals=(Goal("deltalake", 5),),
                repetitions=3,
                peers=cold,
            ),
            Variant(f"{size(large)} files, on Spark", log(large), goals=(Goal("delta-spark", 1),), peers=on_spark),
        ),
    )


def ours(location: str) -> Prepared:
    from pyspark_delta.table import Table

    return Prepared(lambda: Table.open(location).count())


def deltalake(location: str) -> Prepared:
    from deltalake import DeltaTable

    return Prepared(lambda: DeltaTable(location).count())


def on_spark(location: str) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session("ours")
    return Prepared(lambda: spark.read.format("delta").load(location).count())


def delta_spark(location: str) -> Prepared:
    from benchmarks.spark_sessions import session

    spark = session("delta-spark")
    return Prepared(lambda: spark.read.format("delta").load(location).count())
