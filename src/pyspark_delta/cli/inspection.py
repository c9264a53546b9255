"""The commands that describe a table and the environment: info, schema, protocol, history, log, explain, doctor."""

from __future__ import annotations

from typing import Annotated

import typer

from pyspark_delta.cli import doctor as environment
from pyspark_delta.cli.catalog_options import resolved
from pyspark_delta.cli.commits import actions_of, describe_action
from pyspark_delta.cli.doctor.store import check_store
from pyspark_delta.cli.history_lines import FIXED, NAMES, commit_line, metrics_line
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
    WhereOption,
    names_of,
    open_table,
    storage_options,
)
from pyspark_delta.cli.output import print_facts, print_json, print_json_lines, print_rows, print_text, terminal
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.schema_tree import schema_rows
from pyspark_delta.cli.sizes import human_size
from pyspark_delta.schema.json import type_to_json
from pyspark_delta.storage import normalize_location

_COMMIT_FACTS = (
    "version",
    "timestamp",
    "operation",
    "operationParameters",
    "operationMetrics",
    "engineInfo",
    "userMetadata",
)


@reporting
def info(
    path: PathArgument,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show rows, size, partitioning, properties and features.

    The number of rows is read from statistics and deletion vectors. If files have no statistics, it is unknown: null
    with --json. With --json, sizes are numbers of bytes.
    """
    table = open_table(path, version, timestamp, option)
    count, commits = table.snapshot.record_count, table.history(1)
    detail = {
        "version": table.version,
        "numRows": count.total,
        **table.detail(),
        "lastCommit": next(iter(commits), None),
    }
    if as_json:
        print_json(detail)
        return
    if count.total is None:
        without = f"{len(count.unknown):,} files have no statistics"
        detail["numRows"] = f"unknown: {without}, the others have {count.known:,} rows"
    size = detail["sizeInBytes"]
    detail["sizeInBytes"] = f"{size} ({human_size(size)})" if size >= 1024 else size
    detail["properties"] = [f"{name}={value}" for name, value in sorted(detail["properties"].items())]
    detail["tableFeatures"] = ", ".join(detail["tableFeatures"])
    if commits:
        line = commit_line(commits[0])
        detail["lastCommit"] = " ".join(str(part) for part in (line[1], *line[2:]) if part)
    print_facts(detail)


@reporting
def schema(
    path: PathArgument,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the columns, with nested fields indented.

    --json prints the schema of the log.
    """
    table = open_table(path, version, timestamp, option)
    if as_json:
        print_json(type_to_json(table.schema))
    else:
        print_rows(("column", "type", "nullable", "comment"), schema_rows(table.schema, table.partition_columns))


@reporting
def protocol(
    path: PathArgument,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the protocol versions and the table features."""
    found = open_table(path, version, timestamp, option).protocol
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


@reporting
def history(
    path: PathArgument,
    limit: LimitOption = None,
    metrics: Annotated[bool, typer.Option("--metrics", help="Also print the metrics of each commit.")] = False,
    full: FullOption = False,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the commits, newest first.

    On a terminal, a commit is one line: rows and files are those that were added (+), updated (~) and removed (-);
    details are the parameters of the operation and the user metadata. In a pipe and with --json, commits are complete.
    """
    table = open_table(path, version, timestamp, option)
    if as_json:
        print_json(table.history(limit))
        return
    view = View(limit, full)
    commits = table.history(view.needed)
    if terminal() is None:
        print_rows(_COMMIT_FACTS, ([commit.get(name) for name in _COMMIT_FACTS] for commit in commits))
        return
    below = (lambda index: metrics_line(commits[index])) if metrics else None
    print_listing(NAMES, map(commit_line, commits), view, fixed=FIXED, remedy="a wider terminal", below=below)


@reporting
def log(
    path: PathArgument,
    commit: Annotated[int | None, typer.Argument(metavar="[VERSION]", min=0, help="Default: the latest.")] = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the actions of one commit in order.

    --json prints one action a line, unchanged.
    """
    found = resolved(path)
    if commit is None:
        commit = open_table(path, None, None, option).version
    if found is None:
        actions = actions_of(normalize_location(path), commit, storage_options(option))
    else:
        actions = actions_of(found.location, commit, found.storage_options, found.catalog_table)
    if as_json:
        print_json_lines(actions)
    else:
        print_rows(("action", "content"), (describe_action(action) for action in actions))


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
    """Show how many files each stage of skipping keeps."""
    table = open_table(path, version, timestamp, option)
    scan = table.scan(columns=names_of(columns), where=where)
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


@reporting
def doctor(
    spark: Annotated[
        bool,
        typer.Option("--session/--no-session", "--spark/--no-spark", help="Also use a session of Spark."),
    ] = True,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="The master of that session; default: as configured.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help="Also check a place for tables: a folder or URI."),
    ] = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check Python, Java, PySpark and packages, and print remedies.

    Driver and workers are compared. The exit code is 1 if a check fails.
    """
    checks = list(environment.examine(spark=spark, master=master))
    if store is not None:
        checks += check_store(store, storage_options(option) or {})
    if as_json:
        print_json([check.as_dict() for check in checks])
    else:
        print_rows(("", "check", "found", "what to do"), (check.as_row() for check in checks))
    if any(check.status == "failed" for check in checks):
        raise typer.Exit(1)
