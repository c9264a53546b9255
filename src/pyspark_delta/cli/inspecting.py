"""The commands that look inside a table: show its metadata tables, and the differences between two versions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

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
    names_of,
    open_table,
)
from pyspark_delta.cli.output import print_facts, print_json, print_json_lines, print_rows
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.rows import first_rows
from pyspark_delta.cli.sizes import human_size
from pyspark_delta.errors import InvalidOptionError


class Name(StrEnum):
    """The metadata tables."""

    FILES = "files"
    PARTITIONS = "partitions"
    STATISTICS = "statistics"
    ROW_GROUPS = "row_groups"
    TOMBSTONES = "tombstones"
    HISTORY = "history"
    PROTOCOL = "protocol"
    DOMAINS = "domains"


@reporting
def show(
    path: PathArgument,
    name: Annotated[Name, typer.Argument(help="The metadata table.")],
    columns: ColumnsOption = None,
    limit: LimitOption = None,
    vertical: VerticalOption = False,
    full: FullOption = False,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a metadata table, such as files or partitions.

    The output is as that of cat. Sizes are bytes.
    """
    found = open_table(path, version, timestamp, option).inspect(name.value)
    chosen = names_of(columns) or list(found.schema.names)
    unknown = [one for one in chosen if one not in found.schema.names]
    if unknown:
        raise InvalidOptionError(
            f"The metadata table '{name}' has no column '{unknown[0]}'. Its columns are "
            f"{', '.join(found.schema.names)}.",
            option="columns",
        )
    batches = (batch.select(chosen) for batch in found.to_batches())
    if as_json:
        print_json_lines(first_rows(batches, limit))
        return
    view = View(limit, full, vertical)
    rows = (list(row.values()) for row in first_rows(batches, view.needed))
    print_listing(chosen, rows, view, remedy="--columns, --vertical")


@reporting
def diff(
    path: PathArgument,
    before: Annotated[int, typer.Argument(metavar="VERSION", min=0, help="The version to compare.")],
    after: Annotated[
        int | None, typer.Argument(metavar="[VERSION]", min=0, help="With this version; default: the latest.")
    ] = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what differs between two versions of a table.

    With --json, sizes are numbers of bytes, and unknown numbers of rows are null.
    """
    found = open_table(path, None, None, option).diff(before, after)
    facts, changes = found.facts(), found.changes.to_pylist()
    if as_json:
        print_json({**facts, "changes": changes})
        return
    print_facts({name.replace("_", " "): _readable(name, value) for name, value in facts.items()})
    if changes:
        print_rows(("kind", "name", "before", "after"), (list(change.values()) for change in changes))


def _readable(name: str, value: object) -> object:
    if value is None:
        return "unknown"
    return human_size(value) if name.startswith("bytes_") and isinstance(value, int) else value
