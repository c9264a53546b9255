"""The commands that look after a table: restore, undo, vacuum. Each can print its plan instead."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pyspark_delta.cli.options import JsonOption, PathArgument, StorageOption, open_table
from pyspark_delta.cli.outcome import print_plan_facts, print_result
from pyspark_delta.cli.output import print_facts, print_json
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.sizes import human_size
from pyspark_delta.cli.writing import PlanOption, UserMetadataOption


class Mode(StrEnum):
    """How a vacuum finds files."""

    AUTO = "auto"
    FULL = "full"
    LITE = "lite"


@reporting
def restore(
    path: PathArgument,
    version: Annotated[int | None, typer.Option("--version", min=0, metavar="N", help="The version.")] = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", metavar="TIME", help="Or the newest version not after this time.")
    ] = None,
    ignore_missing_files: Annotated[
        bool, typer.Option("--ignore-missing-files", help="Leave out files that are gone, with their rows.")
    ] = False,
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Commit an earlier version as the newest one.

    Nothing is deleted: newer versions stay readable.
    """
    if (version is None) == (timestamp is None):
        raise typer.BadParameter("give either --version or --timestamp.", param_hint="--version")
    table = open_table(path, option=option)
    if plan:
        made = table.restore(version, timestamp, ignore_missing_files=ignore_missing_files, plan=True)
        print_plan_facts(made.facts(), as_json)
        return
    result = table.restore(version, timestamp, ignore_missing_files=ignore_missing_files, commit_info=user_metadata)
    print_result(result, as_json)


@reporting
def undo(
    path: PathArgument,
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Revert the newest change of rows, schema or properties.

    Undoing twice brings the change back.
    """
    table = open_table(path, option=option)
    if plan:
        print_plan_facts(table.undo(plan=True).facts(), as_json)
    else:
        print_result(table.undo(commit_info=user_metadata), as_json)


@reporting
def vacuum(
    path: PathArgument,
    retention_hours: Annotated[
        float | None,
        typer.Option("--retention-hours", metavar="N", help="How long removed files stay; default: by the table."),
    ] = None,
    mode: Annotated[Mode, typer.Option("--mode", help="List all files, read only the log, or choose.")] = Mode.AUTO,
    keep_version: Annotated[
        list[int] | None, typer.Option("--keep-version", metavar="N", help="Keep the files of a version; repeatable.")
    ] = None,
    protect: Annotated[
        list[str] | None,
        typer.Option("--protect", metavar="TABLE", help="Keep files that another table uses; repeatable."),
    ] = None,
    allow_short_retention: Annotated[
        bool, typer.Option("--allow-short-retention", help="Allow less than the retention of the table.")
    ] = False,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete files that no retained version needs.

    Files that failed writers left are deleted too, once they are old enough.
    """
    table = open_table(path, option=option)
    made = table.vacuum(
        retention_hours,
        mode=mode.value,
        keep_versions=keep_version or (),
        protect=protect or (),
        enforce_retention_duration=not allow_short_retention,
        plan=True,
    )
    if plan:
        facts = made.facts()
        print_plan_facts(facts if as_json else {**facts, "bytes": human_size(made.size_in_bytes)}, as_json)
        return
    result = made.execute()
    facts = {
        "version": result.version,
        "files_deleted": result.num_deleted_files,
        "bytes_deleted": result.size_of_deleted_files,
        "directories_deleted": result.num_vacuumed_directories,
        "oldest_readable_version": result.oldest_readable_version,
    }
    if as_json:
        print_json(facts)
    else:
        shown = {**facts, "bytes_deleted": human_size(result.size_of_deleted_files)}
        print_facts({name.replace("_", " "): value for name, value in shown.items()})
