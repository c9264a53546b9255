"""Compacts and clusters TPC-H's lineitem at a larger scale, without Spark, and counts the files that queries read.

Run by hand: `python -m benchmarks.large_clustering --scale 5 --files 2000`. The queries are those of B19: a year and
few pieces, as of query 6, one day, and one number of pieces. Memory is counted as by `large_merge`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.large_merge import measured
from benchmarks.tpch import ROWS_AT_SCALE_1, Lineitem, write_lineitem
from benchmarks.workloads.b19_zorder import COLUMNS, queries
from pyspark_delta import Table


def show_files(table: Table) -> None:
    """Print how many files there are, and how many of them each kind of query reads on average."""
    read: dict[str, list[int]] = {"a year and few pieces": [], "one day": [], "one number of pieces": []}
    for where in queries():
        kind = next(iter(read)) if " < " in where else "one day" if "l_shipdate" in where else "one number of pieces"
        read[kind].append(table.scan(where=where).files().num_rows)
    means = ", ".join(f"{kind} {sum(found) / len(found):.1f}" for kind, found in read.items())
    print(f"  of {table.files().num_rows} files, queries read: {means}", flush=True)


def main() -> None:
    """Make the table, then compact it and cluster it by two columns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=5, help="the scale factor of TPC-H")
    parser.add_argument("--files", type=int, default=2000, help="in how many files the table is written")
    parser.add_argument("--target", default="16MB", help="the size of new files")
    parser.add_argument("--folder", help="where the table is made; it is removed at the end")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        write_lineitem(Path(folder), Lineitem(int(options.scale * ROWS_AT_SCALE_1), options.files))
        table = Table.open(folder)
        rows = table.count()
        show_files(table)
        measured("compaction", lambda: f"{len(table.optimize(target_size=options.target).versions)} commits")
        show_files(table)
        table.alter().cluster_by(*COLUMNS)
        measured("clustering", lambda: f"{len(table.optimize(target_size=options.target).versions)} commits")
        show_files(table)
        assert table.refresh().count() == rows


if __name__ == "__main__":
    main()
