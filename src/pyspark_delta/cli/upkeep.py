"""The command that does what maintenance is worth it: maintain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_delta.cli.options import JsonOption, PathArgument, StorageOption, open_table
from pyspark_delta.cli.output import print_json, print_rows, print_text
from pyspark_delta.cli.rearranging import BytesOption, CommitsOption, MemoryOption, SecondsOption, ThreadsOption
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.writing import PlanOption

if TYPE_CHECKING:
    from pyspark_delta.maintenance.policy import MaintenanceReport


@reporting
def maintain(
    path: PathArgument,
    saved_files: Annotated[
        int, typer.Option("--saved-files", min=1, metavar="N", help="How many files a compaction has to save.")
    ] = 10,
    vacuum_days: Annotated[
        float, typer.Option("--vacuum-days", min=0, metavar="N", help="The days from one vacuum to the next.")
    ] = 7,
    no_vacuum: Annotated[bool, typer.Option("--no-vacuum", help="Never delete files.")] = False,
    no_statistics: Annotated[bool, typer.Option("--no-statistics", help="Add no statistics.")] = False,
    drop_feature: Annotated[
        list[str] | None,
        typer.Option("--drop-feature", metavar="NAME", help="Drop a feature when it may be."),
    ] = None,
    budget_bytes: BytesOption = None,
    budget_seconds: SecondsOption = None,
    budget_commits: CommitsOption = None,
    memory: MemoryOption = "512MB",
    threads: ThreadsOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Do the maintenance that is worth it, and say why.

    These are compaction or clustering, a purge of deletion vectors, missing statistics, features to drop, a vacuum, and
    a checkpoint.
    """
    from pyspark_delta.maintenance.budget import Budget
    from pyspark_delta.maintenance.policy import MaintenancePolicy

    policy = MaintenancePolicy(
        saved_files=saved_files,
        vacuum_days=None if no_vacuum else vacuum_days,
        statistics=not no_statistics,
        drop_features=tuple(drop_feature or ()),
    )
    budget = Budget(bytes=budget_bytes, seconds=budget_seconds, commits=budget_commits)
    table = open_table(path, option=option)
    if plan:
        _print(table.maintain(policy, budget=budget, plan=True), as_json)
        return
    report = table.maintain(policy, budget=budget, threads=threads, memory=memory, progress=False if as_json else None)
    _print(report, as_json)


def _print(report: MaintenanceReport, as_json: bool) -> None:
    if as_json:
        print_json({"location": report.location, "version": report.version, "tasks": report.facts()})
        return
    print_text(f"Maintenance of '{report.location}' at version {report.version}:")
    print_rows(
        ("task", "due", "why", "result"),
        ((task.name, "yes" if task.due else "no", task.why, task.result) for task in report.tasks),
    )
