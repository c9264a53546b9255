"""Planning a read: which files can hold rows for a predicate. Cold opens the table too; loaded has it open and warm."""

from __future__ import annotations

import re

from benchmarks.model import OURS, Peer, Prepared
from benchmarks.workloads.answers import column, names

_HERE = __name__
COLD = (OURS, "deltalake", "polars")
PEERS = (
    Peer(OURS, f"{_HERE}:ours"),
    Peer("deltalake", f"{_HERE}:deltalake"),
    Peer("polars", f"{_HERE}:polars"),
)
LOADED = (f"{OURS}, loaded", "deltalake, loaded")
LOADED_PEERS = (
    Peer(LOADED[0], f"{_HERE}:ours_loaded", inner=9),
    Peer(LOADED[1], f"{_HERE}:deltalake_loaded", inner=5, against=LOADED[0]),
)


def ours(location: str, where: str) -> Prepared:
    from pyspark_delta.table import Table

    return Prepared(lambda: Table.open(location).scan(where=where).files(), lambda t: names(column(t, "path")))


def ours_loaded(location: str, where: str) -> Prepared:
    from pyspark_delta.table import Table

    table = Table.open(location)
    return Prepared(lambda: table.scan(where=where).files(), lambda t: names(column(t, "path")))


def deltalake(location: str, where: str) -> Prepared:
    from deltalake import DeltaTable

    return Prepared(lambda: DeltaTable(location).file_uris(file_pruning_predicate=where), names)


def deltalake_loaded(location: str, where: str) -> Prepared:
    from deltalake import DeltaTable

    table = DeltaTable(location)
    return Prepared(lambda: table.file_uris(file_pruning_predicate=where), names)


def polars(location: str, where: str) -> Prepared:
    """Polars opens the table with deltalake when it optimises a query. Its plan tells only how many files it reads."""
    import polars as pl

    def timed() -> str:
        return pl.SQLContext(t=pl.scan_delta(location)).execute(f"select * from t where {where}").explain()

    return Prepared(timed, lambda plan: [files_in_plan(plan), None])


def files_in_plan(plan: str) -> int:
    """How many files a plan of polars reads."""
    shown = re.search(r"Parquet SCAN \[(.*?)\]\n", plan, re.DOTALL)
    if shown is None:
        return 0
    others = re.search(r"\.\.\. (\d+) other", shown[1])
    return shown[1].count(".parquet") + (int(others[1]) if others else 0)
