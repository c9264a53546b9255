"""The commands over a table: info, schema, protocol, history, files, log, cat, changes, explain; catalog; doctor."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from pyspark_delta._version import __version__
from pyspark_delta.cli import doctor as environment
from pyspark_delta.cli.catalog import catalog_app
from pyspark_delta.cli.catalog_options import open_named, resolved
from pyspark_delta.cli.commits import actions_of, describe_action
from pyspark_delta.cli.output import (
    discard,
    prepare_streams,
    print_facts,
    print_json,
    print_json_lines,
    print_problem,
    print_rows,
    print_text,
    rows_of,
)
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.schema_tree import schema_rows
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.schema.json import type_to_json
from pyspark_delta.storage import normalize_location

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_delta.table import Table

app = typer.Typer(
    name="pyspark-delta",
    help="Inspect Delta tables and the environment, without Spark.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=TyperGroup,
)

PathArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A folder, a URI such as s3://bucket/table, or a name in the catalog at $PYSPARK_DELTA_CATALOG_URL.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
VersionOption = Annotated[int | None, typer.Option("--version", min=0, help="The version to open; default: latest.")]
TimestampOption = Annotated[
    str | None, typer.Option("--timestamp", help="Open the newest version not after this time (UTC if it has no zone).")
]
StorageOption = Annotated[
    list[str] | None, typer.Option("-o", "--option", metavar="KEY=VALUE", help="A storage option; repeatable.")
]
WhereOption = Annotated[str | None, typer.Option("--where", help="A predicate in Spark's SQL.")]
ColumnsOption = Annotated[str | None, typer.Option("--columns", help="Column names, separated by commas.")]
FromOption = Annotated[str, typer.Option("--from", help="The first version, or a time such as 2024-01-31 (UTC).")]
LimitOption = Annotated[int | None, typer.Option("--limit", min=0, help="The largest number of lines to print.")]


def run(arguments: list[str]) -> int:
    """Run one command and return the exit code."""
    prepare_streams()
    try:
        code = app(arguments or ["--help"], prog_name="pyspark-delta", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        return 0
    except OSError as error:  # errors of tables are DeltaErrors
        discard(sys.stdout)
        print_problem(f"Error: The output cannot be written: {error.strerror or error}.")
        return 1
    except KeyboardInterrupt:
        return 130
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return 130
    except Exception as error:
        usage = getattr(error, "format_message", None)
        if usage is None:
            raise
        print_problem(f"Error: {usage().rstrip('.')}. See pyspark-delta --help.")
        return int(getattr(error, "exit_code", 2))
    return code if isinstance(code, int) else 0


def _show_version(wanted: bool) -> None:
    if wanted:
        print_text(f"pyspark-delta {__version__}")
        raise typer.Exit


app.add_typer(catalog_app, name="catalog")


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
@reporting
def info(
    path: PathArgument,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show id, location, size, partitioning, properties and protocol of the table."""
    table = _open(path, version, timestamp, option)
    detail = {"version": table.version, **table.detail()}
    if as_json:
        print_json(detail)
    else:
        print_facts({name: ", ".join(value) if isinstance(value, list) else value for name, value in detail.items()})


@app.command()
@reporting
def schema(
    path: PathArgument,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the columns, with nested fields indented; --json prints the schema of the log."""
    table = _open(path, version, timestamp, option)
    if as_json:
        print_json(type_to_json(table.schema))
    else:
        print_rows(("column", "type", "nullable", "comment"), schema_rows(table.schema, table.partition_columns))


@app.command()
@reporting
def protocol(
    path: PathArgument,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the protocol versions and the table features that readers and writers need."""
    found = _open(path, version, timestamp, option).protocol
    facts = {
        "minReaderVersion": found.min_reader_version,
        "minWriterVersion": found.min_writer_version,
        "readerFeatures": sorted(found.reader_features or ()),
        "writerFeatures": sorted(found.writer_features or ()),
    }
    if as_json:
        print_json(facts)
    else:
        print_facts({name: ", ".join(v) if isinstance(v, list) else v for name, v in facts.items()})


@app.command()
@reporting
def history(
    path: PathArgument,
    limit: LimitOption = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the commits, newest first."""
    commits = _open(path, version, timestamp, option).history(limit)
    if as_json:
        print_json(commits)
        return
    names = ("version", "timestamp", "operation", "operationParameters", "operationMetrics", "engineInfo")
    print_rows(names, ([commit.get(name) for name in names] for commit in commits))


@app.command()
@reporting
def files(
    path: PathArgument,
    where: WhereOption = None,
    limit: LimitOption = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the data files, or those that --where cannot rule out; --json prints one file a line."""
    table = _open(path, version, timestamp, option)
    found = table.files() if where is None else table.scan(where=where).files()
    shown = found.slice(0, limit) if limit is not None else found
    names = ("path", "size", "modification_time", "partition_values", "deletion_vector")
    present = [name for name in names if name in shown.column_names]
    if as_json:
        print_json_lines(_rows(shown.to_batches()))
    else:
        print_rows(present, ([row[name] for name in present] for row in _rows(shown.select(present).to_batches())))


@app.command()
@reporting
def log(
    path: PathArgument,
    commit: Annotated[int | None, typer.Argument(metavar="[VERSION]", min=0, help="Default: the latest.")] = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the actions of one commit in order; --json prints one action a line, unchanged."""
    found = resolved(path)
    if commit is None:
        commit = _open(path, None, None, option).version
    if found is None:
        actions = actions_of(normalize_location(path), commit, _storage_options(option))
    else:
        actions = actions_of(found.location, commit, found.storage_options, found.catalog_table)
    if as_json:
        print_json_lines(actions)
    else:
        print_rows(("action", "content"), (describe_action(action) for action in actions))


@app.command()
@reporting
def cat(
    path: PathArgument,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    limit: LimitOption = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the rows; --json prints one row a line."""
    table = _open(path, version, timestamp, option)
    names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    scan = table.scan(columns=names, where=where)
    rows = _rows(scan.to_batches())
    shown = rows if limit is None else islice(rows, limit)
    if as_json:
        print_json_lines(shown)
    else:
        print_rows(scan.schema.names, (list(row.values()) for row in shown))


@app.command()
@reporting
def changes(
    path: PathArgument,
    start: FromOption,
    end: Annotated[str | None, typer.Option("--to", help="The last version or time; default: latest.")] = None,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    limit: LimitOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the rows that changed (the change data feed); --json prints one row a line."""
    names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    ends = {**_version_or_time("starting", start), **_version_or_time("ending", end)}
    found = _open(path, None, None, option).changes(**ends, columns=names, where=where)
    rows = _rows(found.to_batches())
    shown = rows if limit is None else islice(rows, limit)
    if as_json:
        print_json_lines(shown)
    else:
        print_rows(found.schema.names, (list(row.values()) for row in shown))


@app.command()
@reporting
def explain(
    path: PathArgument,
    where: WhereOption = None,
    columns: ColumnsOption = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how many files each stage of skipping keeps for a predicate, and why."""
    table = _open(path, version, timestamp, option)
    names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    scan = table.scan(columns=names, where=where)
    if not as_json:
        print_text(scan.explain())
        return
    stages = [
        {
            "name": stage.name,
            "filesBefore": stage.files_before,
            "filesAfter": stage.files_after,
            "predicate": stage.predicate,
            "note": stage.note,
        }
        for stage in scan.stages()
    ]
    print_json({"version": table.version, "numFiles": scan.files().num_rows, "stages": stages})


@app.command()
@reporting
def doctor(
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Also run a small job on Spark's workers.")] = True,
    master: Annotated[str | None, typer.Option("--master", help="Where that job runs; default: as configured.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check Python, Java, PySpark and the packages on driver and workers, and print remedies; exit 1 on failure."""
    checks = list(environment.examine(spark=spark, master=master))
    if as_json:
        print_json([check.as_dict() for check in checks])
    else:
        print_rows(("", "check", "found", "what to do"), (check.as_row() for check in checks))
    if any(check.status == "failed" for check in checks):
        raise typer.Exit(1)


def _open(path: str, version: int | None, timestamp: str | None, option: list[str] | None) -> Table:
    # Imported here, so that doctor and --help start fast, and work if packages are missing.
    from pyspark_delta.table import Table

    named = open_named(path, version, timestamp)
    if named is not None:
        return named
    return Table.open(path, version=version, timestamp=timestamp, storage_options=_storage_options(option))


def _version_or_time(end: str, text: str | None) -> dict[str, Any]:
    """Return the arguments of `Table.changes` for one end of a range."""
    if text is None:
        return {}
    # Four digits alone would be parsed as a year; here a number is a version.
    return {f"{end}_version": int(text)} if text.isdecimal() else {f"{end}_timestamp": text}


def _storage_options(pairs: list[str] | None) -> Mapping[str, str]:
    options = {}
    for pair in pairs or ():
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise InvalidOptionError(f"A storage option has the form -o key=value, found '{pair}'.")
        options[key] = value
    return options


def _rows(batches: Iterator[pa.RecordBatch] | list[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from rows_of(batch)
