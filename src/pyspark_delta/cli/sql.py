"""The command sql: statements from options, a file or standard input, or a shell on a terminal."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pyspark_delta.cli.catalog_options import ChosenCatalog, RootOption, TokenOption, UrlOption
from pyspark_delta.cli.listing import View
from pyspark_delta.cli.options import (
    FullOption,
    JsonOption,
    LimitOption,
    StorageOption,
    VerticalOption,
    storage_options,
)
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.statements import Printer, run_statements
from pyspark_delta.errors import InvalidOptionError


class QueryEngine(StrEnum):
    """What runs queries."""

    DUCKDB = "duckdb"
    POLARS = "polars"


@reporting
def sql(
    execute: Annotated[
        list[str] | None, typer.Option("-e", "--execute", metavar="TEXT", help="Statements to run; repeatable.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", metavar="FILE", help="A file of statements; - is standard input.")
    ] = None,
    location: Annotated[
        str | None, typer.Option("--location", metavar="FOLDER", help="The folder in which names are tables.")
    ] = None,
    catalog: Annotated[
        str | None, typer.Option("--catalog", metavar="NAME", help="The catalog of short names; default: main.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option("--schema", metavar="NAME", help="The schema of names without one; default: default.")
    ] = None,
    engine: Annotated[QueryEngine | None, typer.Option("--engine", help="What runs queries.")] = None,
    url: UrlOption = None,
    token: TokenOption = None,
    storage_root: RootOption = None,
    limit: LimitOption = None,
    vertical: VerticalOption = False,
    full: FullOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run SQL statements, without Spark.

    Statements are separated by semicolons. They are those of -e, then those of -f; without both, those of standard
    input, and on a terminal a shell with history and completion. The first error ends a run; what was done before it
    stays. Tables are named delta.`/path`, or by names in --location or in the catalog at --url.
    """
    from pyspark_delta.interpreter.names import Namespace
    from pyspark_delta.interpreter.session import Session
    from pyspark_delta.storage import normalize_location

    if location is not None and (catalog is not None or schema is not None):
        raise InvalidOptionError("Give either --location or --catalog: each says where names are looked up.")
    names = Namespace(storage_options=storage_options(option))
    if location is not None:
        names.root = normalize_location(location)
    if url is not None:
        ChosenCatalog(url, catalog or "main", token, storage_root).connect()
    if location is None and (url is not None or catalog is not None):
        names.catalog, names.schema = catalog or "main", schema
    session = Session(names, None if engine is None else engine.value)
    printer = Printer(View(limit, full, vertical), as_json)
    if execute is None and file is None and sys.stdin.isatty():
        from pyspark_delta.cli.shell import run_shell

        run_shell(session, printer)
        return
    for text in _texts(execute, file):
        run_statements(text, session, printer)


def _texts(execute: list[str] | None, file: Path | None) -> list[str]:
    texts = list(execute or ())
    if file is not None and str(file) != "-":
        try:
            texts.append(file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidOptionError(f"The file '{file}' cannot be read: {error}.", option="file") from None
    elif file is not None or execute is None:
        texts.append(sys.stdin.read())
    return texts
