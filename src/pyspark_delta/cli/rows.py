"""The commands that print rows: of a table, of its change data feed, and of its list of data files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyspark_delta.cli.listing import View, print_listing
from pyspark_delta.cli.options import (
    ColumnsOption,
    FullOption,
    JsonOption,
    LimitOption,
    PathArgument,
    StorageOption,
    TimestampOption,
    VersionOption,
    VerticalOption,
    WhereOption,
    names_of,
    open_table,
)
from pyspark_delta.cli.output import print_json_lines, rows_of, terminal
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.sizes import human_size
from pyspark_delta.schema.timestamps import utc_datetime

if TYPE_CHECKING:
    import pyarrow as pa

FromOption = Annotated[
    str, typer.Option("--from", metavar="START", help="The first version, or a time such as 2024-01-31 (UTC).")
]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="END", help="The last version or time; default: the latest version.")
]
_FILE_FACTS = ("path", "size", "modification_time", "partition_values", "deletion_vector")


@reporting
def cat(
    path: PathArgument,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    limit: LimitOption = None,
    vertical: VerticalOption = False,
    full: FullOption = False,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the rows.

    On a terminal, values are cut to its width and at most 20 rows are shown. In a pipe, rows are complete, one a line,
    with tabs between the values. --json prints one row a line.
    """
    table = open_table(path, version, timestamp, option)
    scan = table.scan(columns=names_of(columns), where=where)
    if as_json:
        print_json_lines(first_rows(scan.to_batches(), limit))
        return
    view = View(limit, full, vertical)
    rows = (list(row.values()) for row in first_rows(scan.to_batches(), view.needed))
    total = (lambda: table.snapshot.record_count.total) if where is None else (lambda: None)
    print_listing(scan.schema.names, rows, view, remedy="--columns, --vertical", total=total)


@reporting
def changes(
    path: PathArgument,
    start: FromOption,
    end: ToOption = None,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    limit: LimitOption = None,
    vertical: VerticalOption = False,
    full: FullOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the rows that changed (the change data feed).

    The output is as that of cat; on a terminal, the columns that say what happened come first.
    """
    ends = {**_version_or_time("starting", start), **_version_or_time("ending", end)}
    found = open_table(path, None, None, option).changes(**ends, columns=names_of(columns), where=where)
    if as_json:
        print_json_lines(first_rows(found.to_batches(), limit))
        return
    view, names = View(limit, full, vertical), list(found.schema.names)
    if columns is None and terminal() is not None:
        names.sort(key=lambda name: name not in ("_change_type", "_commit_version", "_commit_timestamp"))
    rows = ([row[name] for name in names] for row in first_rows(found.to_batches(), view.needed))
    print_listing(names, rows, view, fixed=("_change_type",), remedy="--columns, --vertical")


@reporting
def files(
    path: PathArgument,
    where: WhereOption = None,
    limit: LimitOption = None,
    vertical: VerticalOption = False,
    full: FullOption = False,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the data files, or those that --where cannot rule out.

    --json prints one file a line, with its statistics.
    """
    table = open_table(path, version, timestamp, option)
    found = table.files() if where is None else table.scan(where=where).files()
    if as_json:
        print_json_lines(first_rows(found.to_batches(), limit))
        return
    view = View(limit, full, vertical)
    names = [name for name in _FILE_FACTS if name in found.column_names]
    rows = first_rows(found.select(names).to_batches(), view.needed)
    if terminal() is None or vertical:
        print_listing(names, ([row[name] for name in names] for row in rows), view, total=lambda: found.num_rows)
    else:
        shown = ("size", "modified (UTC)", "deleted", "path")
        print_listing(shown, map(_file_line, rows), view, fixed=shown[:3], total=lambda: found.num_rows)


def _file_line(row: dict[str, Any]) -> Sequence[Any]:
    """Return size, time, number of deleted rows, and path of a file; the path shows the partition."""
    vector = row.get("deletion_vector")
    time = utc_datetime(row["modification_time"])
    seconds = "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"
    return human_size(row["size"]), seconds, 0 if vector is None else vector["cardinality"], row["path"]


def _version_or_time(end: str, text: str | None) -> dict[str, Any]:
    """Return the arguments of `Table.changes` for one end of a range."""
    if text is None:
        return {}
    # Four digits alone would be parsed as a year; here a number is a version.
    return {f"{end}_version": int(text)} if text.isdecimal() else {f"{end}_timestamp": text}


def first_rows(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the first rows of batches; no batch is read after the last of them."""
    left = limit
    if left == 0:
        return
    for batch in batches:
        if left is None:
            yield from rows_of(batch)
            continue
        yield from rows_of(batch.slice(0, left))
        left -= batch.num_rows
        if left <= 0:
            return
