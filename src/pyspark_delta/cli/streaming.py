"""The commands for streams: follow a table, and look into the checkpoints of Spark's queries."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyspark_delta.cli.listing import View, print_listing
from pyspark_delta.cli.options import (
    ColumnsOption,
    JsonOption,
    PathArgument,
    StorageOption,
    WhereOption,
    names_of,
    open_table,
    storage_options,
)
from pyspark_delta.cli.output import cell, print_facts, print_json, print_json_lines, print_text, rows_of
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.storage import normalize_location
from pyspark_delta.streaming.options import NewRows

if TYPE_CHECKING:
    from pyspark_delta.streaming.checkpoint import QueryCheckpoint
    from pyspark_delta.streaming.offset import Offset
    from pyspark_delta.table import Table

CheckpointArgument = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="The option checkpointLocation of a Spark query.")
]
SourceOption = Annotated[
    str | None, typer.Option("--source", metavar="N", help="The number of the source; default: the only one.")
]
stream_app = typer.Typer(
    help="The offsets in the checkpoint of a Spark query.", no_args_is_help=True, rich_markup_mode=None
)


@reporting
def follow(
    path: PathArgument,
    offset_file: Annotated[
        Path | None,
        typer.Option("--offset-file", metavar="FILE", help="Continue after the offset in this file, and update it."),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="START", help="The first version, 'latest', or a time (UTC).")
    ] = None,
    changes: Annotated[bool, typer.Option("--changes", help="Print the change data feed.")] = False,
    new_rows: Annotated[
        NewRows | None,
        typer.Option("--new-rows", help="Of versions that change rows, print those inserted, or updated too."),
    ] = None,
    skip_changes: Annotated[
        bool, typer.Option("--skip-change-commits", help="Skip versions that delete or update rows.")
    ] = False,
    ignore_deletes: Annotated[
        bool, typer.Option("--ignore-deletes", help="Ignore versions that only delete whole files.")
    ] = False,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    max_files: Annotated[
        int | None, typer.Option("--max-files", min=1, metavar="N", help="The most files of a batch; default: 1000.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing is new.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", help="How long to wait before looking again.")
    ] = 1.0,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the rows of the table, and new rows as they arrive.

    Rows are one a line, with tabs between the values. --json prints one row a line as JSON. The offset file is updated
    when all rows of a batch are printed.
    """
    table = open_table(path, None, None, option)
    stream = table.stream(
        _saved_offset(offset_file),
        **_start(start),
        max_files=max_files,
        columns=names_of(columns),
        where=where,
        changes=changes if new_rows is None else new_rows.value,
        skip_change_commits=skip_changes,
        ignore_deletes=ignore_deletes,
    )
    if not as_json:
        print("\t".join(map(cell, stream.schema.names)))
    for batch in stream if once else stream.follow(interval):
        rows = (row for found in batch.to_batches() for row in rows_of(found))
        if as_json:
            print_json_lines(rows)
        else:
            for row in rows:
                print("\t".join(map(cell, row.values())))
        sys.stdout.flush()
        if offset_file is not None:
            _save_offset(offset_file, batch.offset)


def _start(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    if text.isdecimal():
        return {"starting_version": int(text)}
    return {"starting_version": text} if text == "latest" else {"starting_timestamp": text}


def _saved_offset(file: Path | None) -> str | None:
    if file is None or not file.exists():
        return None
    return file.read_text().strip() or None


def _save_offset(file: Path, offset: str) -> None:
    """Replace the file at once, so that it is never half written."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(f"{offset}\n")
    os.replace(new, file)


# ------------------------------------------------------------------------------------------- checkpoints of Spark
@stream_app.command()
@reporting
def offsets(checkpoint: CheckpointArgument, option: StorageOption = None, as_json: JsonOption = False) -> None:
    """List the batches in a checkpoint, with the offsets of the sources that read Delta tables."""
    found = _checkpoint(checkpoint, option)
    names = ("batch", "state", "source", "version", "index", "initial snapshot", "table id")
    rows = [
        (
            batch.number,
            "complete" if batch.is_complete else "planned",
            source,
            offset.version,
            offset.index if offset.index >= 0 else None,
            offset.initial,
            offset.table_id,
        )
        for batch in found.batches
        for source, offset in batch.offsets.items()
    ]
    if as_json:
        print_json_lines(dict(zip([name.replace(" ", "_") for name in names], row, strict=True)) for row in rows)
    else:
        print_listing(names, rows, View(full=True))


@stream_app.command()
@reporting
def explain(
    checkpoint: CheckpointArgument,
    path: PathArgument,
    source: SourceOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say where a query is in a table, and what it has not read yet."""
    found = _checkpoint(checkpoint, option)
    table = open_table(path, None, None, option)
    offset = _offset_of(found, source)
    facts: dict[str, Any] = {"query_id": found.query_id, "batch": found.latest.number, **_facts(table, offset)}
    if as_json:
        print_json(facts)
    else:
        print_facts({name.replace("_", " "): value for name, value in facts.items()})


@stream_app.command()
@reporting
def reset(
    checkpoint: CheckpointArgument,
    path: PathArgument,
    version: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="VERSION",
            help="The version with which the next batch begins, 'latest' for later versions only, or 'same' to keep "
            "the position, in a table that was copied.",
        ),
    ],
    source: SourceOption = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a query that is stopped go on from another version of a table, or in a copy of its table.

    State of the query, such as aggregates, does not change. The old file of offsets is kept.
    """
    from pyspark_delta.streaming.checkpoint import chosen_source, reset_offset

    found = _checkpoint(checkpoint, option)
    table = open_table(path, None, None, option)
    offset = _reset_to(table, _offset_of(found, source), version)
    saved = reset_offset(found, chosen_source(found, source), offset, storage_options(option))
    if as_json:
        print_json({"batch": found.latest.number, "offset": offset.to_json(), "saved": saved})
    else:
        print_text(f"The query goes on after {offset.to_json()}. The old offsets are in '{saved}'.")


def _checkpoint(location: str, option: list[str] | None) -> QueryCheckpoint:
    from pyspark_delta.streaming.checkpoint import read_checkpoint

    return read_checkpoint(normalize_location(location), storage_options(option))


def _offset_of(found: QueryCheckpoint, source: str | None) -> Offset:
    from pyspark_delta.streaming.checkpoint import chosen_source

    return found.latest.offsets[chosen_source(found, source)]


def _facts(table: Table, offset: Offset) -> dict[str, Any]:
    from pyspark_delta.streaming.offset import check_table

    check_table(offset, table.snapshot.metadata.id, table.snapshot.location)
    within = f"after file {offset.index} of" if offset.index >= 0 else "before"
    snapshot = "the initial snapshot, version" if offset.initial else "version"
    behind = max(0, table.version + 1 - offset.version)
    stream = table.stream(offset.to_json(), ignore_changes=True, on_data_loss="skip")
    files, size = 0, 0
    for batch in stream:
        files += batch.num_files
        size += batch.size_in_bytes
    return {
        "position": f"{within} {snapshot} {offset.version}",
        "latest_version": table.version,
        "versions_behind": behind,
        "files_outstanding": files,
        "bytes_outstanding": size,
    }


def _reset_to(table: Table, offset: Offset, version: str) -> Offset:
    from pyspark_delta.streaming.offset import Offset

    table_id = table.snapshot.metadata.id
    if version == "same":
        return Offset(table_id, offset.version, offset.index, offset.initial)
    if version == "latest":
        return Offset(table_id, table.version + 1)
    if not version.isdecimal() or int(version) > table.version + 1:
        raise InvalidOptionError(
            f"--to is a version up to {table.version + 1}, 'latest' or 'same', found '{version}'. The latest version "
            f"of '{table.snapshot.location}' is {table.version}."
        )
    return Offset(table_id, int(version))
