"""B26: import the package, and the class of tables without Spark, in a fresh process."""

from __future__ import annotations

from importlib import import_module

from benchmarks.model import ARROW, OURS, Peer, Prepared, Scale, Variant, Workload, size
from benchmarks.workloads.logs import log

_HERE = __name__


def workload(scale: Scale) -> Workload:
    """The table is opened too where a class for it is imported, so that nothing is put off until then."""
    small = scale.files[0]
    return Workload(
        "B26",
        "Import",
        (
            Peer(OURS, f"{_HERE}:ours", checked=False),
            Peer(ARROW, f"{_HERE}:table"),
            Peer("deltalake", f"{_HERE}:deltalake", against=ARROW),
            Peer("numpy and pyarrow", f"{_HERE}:arrow", against=ARROW, checked=False),
        ),
        (
            Variant("the package", log(small), peers=(OURS,)),
            Variant(
                f"and open a table of {size(small)} files", log(small), peers=(ARROW, "deltalake", "numpy and pyarrow")
            ),
        ),
    )


def ours(location: str) -> Prepared:
    return Prepared(lambda: import_module("pyspark_delta").__name__)


def table(location: str) -> Prepared:
    return Prepared(lambda: import_module("pyspark_delta").Table.open(location).version)


def deltalake(location: str) -> Prepared:
    return Prepared(lambda: import_module("deltalake").DeltaTable(location, without_files=True).version())


def arrow(location: str) -> Prepared:
    modules = ("numpy", "pyarrow.compute", "pyarrow.parquet", "pyarrow.fs")
    return Prepared(lambda: [import_module(name).__name__ for name in modules])
