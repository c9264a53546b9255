"""The commands that copy and convert: clone, convert, generate, analyze. Each can print its plan instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from pyspark_delta.cli.definition import PROPERTY_FORM, PropertyOption, property_pairs
from pyspark_delta.cli.options import JsonOption, PathArgument, StorageOption, WhereOption, open_table, storage_options
from pyspark_delta.cli.outcome import print_plan_facts
from pyspark_delta.cli.output import print_facts, print_json
from pyspark_delta.cli.rearranging import BytesOption, CommitsOption, SecondsOption
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.sizes import human_size
from pyspark_delta.cli.writing import PlanOption, UserMetadataOption
from pyspark_delta.errors import InvalidOptionError


@reporting
def clone(
    path: PathArgument,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A new folder, a URI, or a name in the connected catalog.")
    ],
    deep: Annotated[
        bool, typer.Option("--deep", help="Copy the data files; default: name those of the table.")
    ] = False,
    merge_files: Annotated[
        bool, typer.Option("--merge-files", help="Combine small files on the way; only new deep clones.")
    ] = False,
    version: Annotated[int | None, typer.Option("--version", min=0, metavar="N", help="The version to clone.")] = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", metavar="TIME", help="Or the newest version not after this time.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Bring an earlier clone of the table up to date.")] = False,
    property_: PropertyOption = None,
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a table with the rows of another one.

    An interrupted deep clone is continued by the same command.
    """
    if version is not None and timestamp is not None:
        raise typer.BadParameter("give either --version or --timestamp, not both.", param_hint="--version")
    made = open_table(path, option=option).clone(
        target,
        shallow=not deep,
        version=version,
        timestamp=timestamp,
        replace=replace,
        merge_files=merge_files,
        properties=property_pairs(property_ or [], PROPERTY_FORM),
        plan=True,
    )
    if plan:
        _print_plan(made.facts(), as_json)
        return
    result = made.execute(user_metadata=user_metadata)
    _print({"version": result.version, "location": result.location, **result.as_row()}, as_json)


@reporting
def convert(
    path: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder with Parquet files, or its URI.")],
    partition_by: Annotated[
        str | None,
        typer.Option(
            "--partition-by",
            metavar="COLUMNS",
            help="The partition columns with types, as in 'day DATE'; default: from the names of the folders.",
        ),
    ] = None,
    where_delta_lies: Annotated[
        str | None,
        typer.Option(
            "--where-delta-lies", metavar="FOLDER", help="A new folder for the table; default: the folder itself."
        ),
    ] = None,
    no_statistics: Annotated[bool, typer.Option("--no-statistics", help="Do not collect statistics.")] = False,
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Leave out files that are not Parquet.")
    ] = False,
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a folder of Parquet files a Delta table.

    The files stay as they are.
    """
    from pyspark_delta.table import Table

    options = storage_options(option)
    if plan:
        made = Table.convert(
            path,
            where_delta_lies=where_delta_lies,
            partition_schema=partition_by,
            statistics=not no_statistics,
            skip_unreadable=skip_unreadable,
            storage_options=options,
            plan=True,
        )
        _print_plan(made.facts(), as_json)
        return
    table = Table.convert(
        path,
        where_delta_lies=where_delta_lies,
        partition_schema=partition_by,
        statistics=not no_statistics,
        skip_unreadable=skip_unreadable,
        storage_options=options,
        commit_info=user_metadata,
    )
    _print({"version": table.version, "files": table.snapshot.num_files()}, as_json)


@reporting
def generate(
    path: PathArgument,
    mode: Annotated[str, typer.Option("--mode", metavar="MODE", help="The kind of files.")] = "symlink_format_manifest",
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write manifests that list the data files.

    Engines that do not read the log of a table need them.
    """
    made = open_table(path, option=option).generate(mode, plan=True)
    if plan:
        _print_plan(made.facts(), as_json)
    else:
        _print(vars(made.execute()), as_json)


@reporting
def analyze(
    path: PathArgument,
    where: WhereOption = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="NAMES", help="Only these columns, separated by commas.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure files too that have statistics.")] = False,
    budget_bytes: BytesOption = None,
    budget_seconds: SecondsOption = None,
    budget_commits: CommitsOption = None,
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute statistics for data files that lack them."""
    from pyspark_delta.maintenance.budget import Budget

    names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    if names == []:
        raise InvalidOptionError("--columns names no column.", option="columns")
    made = open_table(path, option=option).compute_statistics(
        where,
        columns=names,
        only_missing=not again,
        budget=Budget(bytes=budget_bytes, seconds=budget_seconds, commits=budget_commits),
        plan=True,
    )
    if plan:
        _print_plan(made.facts(), as_json)
    else:
        result = made.execute(user_metadata=user_metadata)
        done = {"version": result.version, "files": result.num_files, "files_left": result.num_files_left}
        _print(done, as_json)


def _print_plan(facts: Mapping[str, object], as_json: bool) -> None:
    print_plan_facts(facts if as_json else _readable(facts), as_json)


def _print(facts: Mapping[str, object], as_json: bool) -> None:
    if as_json:
        print_json(facts)
    else:
        print_facts({name.replace("_", " "): value for name, value in _readable(facts).items() if value is not None})


def _readable(facts: Mapping[str, object]) -> dict[str, object]:
    """Return the facts with sizes for people."""
    return {
        name: human_size(value)
        if isinstance(value, int) and (name.startswith("bytes") or name.endswith("_size"))
        else value
        for name, value in facts.items()
    }
