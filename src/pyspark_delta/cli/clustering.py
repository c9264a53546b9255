"""The command about the layout of files: clustering."""

from __future__ import annotations

from pyspark_delta.cli.options import (
    ColumnsOption,
    JsonOption,
    PathArgument,
    StorageOption,
    TimestampOption,
    VersionOption,
    names_of,
    open_table,
)
from pyspark_delta.cli.output import print_json, print_rows
from pyspark_delta.cli.reporting import reporting


@reporting
def clustering(
    path: PathArgument,
    columns: ColumnsOption = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how many files queries by the clustering columns read.

    --columns names other columns. Only the statistics of files are read. A query is for one value, for a range that
    has a share of the rows, or for a box of such ranges; beside the number of files is that of the best layout.
    """
    found = open_table(path, version, timestamp, option).clustering_quality(names_of(columns))
    if as_json:
        print_json(found.facts())
        return
    rows = [
        (row["query"], row["columns"], row["share"], f"{row['files']:.1f}", f"{row['best_files']:.1f}", found.num_files)
        for row in found.to_arrow().to_pylist()
    ]
    print_rows(("query", "columns", "share", "files read", "best", "all"), rows)
