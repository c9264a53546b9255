"""The commands that rewrite files without changing rows: optimize and purge. Each can print its plan instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyspark_delta.cli.options import JsonOption, PathArgument, StorageOption, names_of, open_table
from pyspark_delta.cli.outcome import print_plan_facts
from pyspark_delta.cli.output import print_facts, print_json
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.sizes import human_size
from pyspark_delta.cli.writing import PlanOption, UserMetadataOption

if TYPE_CHECKING:
    from pyspark_delta.maintenance.budget import Budget

_SIZES = ("bytes_read", "bytes_written", "bytes_added", "bytes_removed", "target_size", "memory")

WhereOption = Annotated[
    str | None, typer.Option("--where", metavar="CONDITION", help="Partitions, by a condition on partition columns.")
]
TargetOption = Annotated[
    str | None, typer.Option("--target-size", metavar="SIZE", help="The size of new files, such as 256MB.")
]
BytesOption = Annotated[
    str | None,
    typer.Option("--budget-bytes", metavar="SIZE", help="Read files of at most so many bytes, such as 50GB."),
]
SecondsOption = Annotated[
    float | None, typer.Option("--budget-seconds", metavar="N", help="Begin no more files after so many seconds.")
]
CommitsOption = Annotated[
    int | None, typer.Option("--budget-commits", min=1, metavar="N", help="Make at most so many commits.")
]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, metavar="N", help="Groups of files that are rewritten at once.")
]
MemoryOption = Annotated[
    str, typer.Option("--memory", metavar="SIZE", help="About how much memory may be used, such as 1GB.")
]


@reporting
def optimize(
    path: PathArgument,
    where: WhereOption = None,
    zorder_by: Annotated[
        str | None, typer.Option("--zorder-by", metavar="COLUMNS", help="Cluster the rows by columns.")
    ] = None,
    sort_by: Annotated[str | None, typer.Option("--sort-by", metavar="COLUMNS", help="Sort the rows.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Of a clustered table, also cluster what was clustered by other columns.")
    ] = False,
    target_size: TargetOption = None,
    min_size: Annotated[
        str | None, typer.Option("--min-size", metavar="SIZE", help="Leave larger files; default: 3/4 of the target.")
    ] = None,
    budget_bytes: BytesOption = None,
    budget_seconds: SecondsOption = None,
    budget_commits: CommitsOption = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = "512MB",
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Combine small files, and remove deleted rows.

    Rows do not change, and concurrent writers do not conflict. A clustered table is clustered.
    """
    from pyspark_delta.maintenance.layout.layouts import Sort

    table, sorting = open_table(path, option=option), names_of(sort_by)
    made = table.optimize(
        where,
        zorder_by=names_of(zorder_by) or (),
        layout=None if sorting is None else Sort(*sorting),
        full=full,
        target_size=target_size,
        min_size=min_size,
        budget=_budget(budget_bytes, budget_seconds, budget_commits),
        threads=threads,
        memory=memory,
        plan=True,
    )
    _run(made, user_metadata, plan, as_json)


@reporting
def purge(
    path: PathArgument,
    where: WhereOption = None,
    target_size: TargetOption = None,
    budget_bytes: BytesOption = None,
    budget_seconds: SecondsOption = None,
    budget_commits: CommitsOption = None,
    threads: ThreadsOption = None,
    memory: MemoryOption = "512MB",
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rewrite files that hold deleted rows or dropped columns.

    A vacuum then deletes the old files.
    """
    table = open_table(path, option=option)
    made = table.purge(
        where,
        target_size=target_size,
        budget=_budget(budget_bytes, budget_seconds, budget_commits),
        threads=threads,
        memory=memory,
        plan=True,
    )
    _run(made, user_metadata, plan, as_json)


def _budget(size: str | None, seconds: float | None, commits: int | None) -> Budget:
    from pyspark_delta.maintenance.budget import Budget

    return Budget(bytes=size, seconds=seconds, commits=commits)


def _run(made: Any, user_metadata: str | None, plan: bool, as_json: bool) -> None:
    from pyspark_delta.progress import operation

    if plan:
        facts = made.facts()
        print_plan_facts(facts if as_json else _readable(facts), as_json)
        return
    with operation(False if as_json else None):
        facts = made.execute(user_metadata=user_metadata).facts()
    if as_json:
        print_json(facts)
    else:
        print_facts({name.replace("_", " "): value for name, value in _readable(facts).items()})


def _readable(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        name: "none" if value is None else human_size(value) if name in _SIZES else value
        for name, value in facts.items()
    }
