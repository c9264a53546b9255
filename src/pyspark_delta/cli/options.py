"""The options that commands share, and the table that they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_delta.cli.catalog_options import open_named
from pyspark_delta.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark_delta.table import Table

PathArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A folder, a URI such as s3://bucket/table, or a name in the catalog at $PYSPARK_DELTA_CATALOG_URL.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
VersionOption = Annotated[
    int | None, typer.Option("--version", min=0, metavar="N", help="The version to open; default: latest.")
]
TimestampOption = Annotated[
    str | None,
    typer.Option(
        "--timestamp", metavar="TIME", help="Open the newest version not after this time (UTC if it has no zone)."
    ),
]
StorageOption = Annotated[
    list[str] | None, typer.Option("-o", "--option", metavar="KEY=VALUE", help="A storage option; repeatable.")
]
WhereOption = Annotated[str | None, typer.Option("--where", metavar="SQL", help="A predicate in Spark's SQL.")]
ColumnsOption = Annotated[
    str | None, typer.Option("--columns", metavar="NAMES", help="Column names, separated by commas.")
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit", min=0, metavar="N", help="The largest number of rows to print; default: 20 on a terminal, else all."
    ),
]
VerticalOption = Annotated[bool, typer.Option("--vertical", help="Print one field a line.")]
FullOption = Annotated[bool, typer.Option("--full", help="On a terminal, cut no value and leave no column out.")]


def open_table(
    path: str, version: int | None = None, timestamp: str | None = None, option: list[str] | None = None
) -> Table:
    """Open the table that a command names, by path or by name in the catalog of the environment. Raises DeltaError."""
    # Imported here, so that doctor and --help start fast, and work if packages are missing.
    from pyspark_delta.table import Table

    named = open_named(path, version, timestamp)
    if named is not None:
        return named
    return Table.open(path, version=version, timestamp=timestamp, storage_options=storage_options(option))


def storage_options(pairs: list[str] | None) -> Mapping[str, str]:
    """Return the storage options. Raises InvalidOptionError for text that is not `key=value`."""
    options = {}
    for pair in pairs or ():
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise InvalidOptionError(f"A storage option has the form -o key=value, found '{pair}'.")
        options[key] = value
    return options


def names_of(text: str | None) -> list[str] | None:
    """Return names that commas separate; None for no text."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
