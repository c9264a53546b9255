"""The commands that check, repair and measure a table: check, repair, health."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from pyspark_delta.cli.catalog_options import resolved
from pyspark_delta.cli.options import JsonOption, PathArgument, StorageOption, names_of, open_table, storage_options
from pyspark_delta.cli.outcome import print_plan_facts
from pyspark_delta.cli.output import print_facts, print_json, print_rows, print_text
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.sizes import human_size
from pyspark_delta.cli.writing import PlanOption

FOUND_ERRORS = 3
"""The exit code of `check` if the table has errors."""


class Level(StrEnum):
    """How much a check reads."""

    LOG = "log"
    LIST = "list"
    FOOTER = "footer"
    DATA = "data"


LevelOption = Annotated[
    Level, typer.Option("--level", help="Read the log, list files too, open files too, or read all rows too.")
]


@reporting
def check(
    path: PathArgument,
    level: LevelOption = Level.LIST,
    only: Annotated[
        str | None, typer.Option("--only", metavar="IDS", help="Checks such as L01, or L for all of a kind.")
    ] = None,
    ignore: Annotated[str | None, typer.Option("--ignore", metavar="IDS", help="Checks to leave out.")] = None,
    since: Annotated[
        int | None, typer.Option("--since", min=0, metavar="N", help="Check only commits after this version.")
    ] = None,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a table against the protocol.

    Nothing is changed. A table that is too damaged to be opened is checked, too. The exit code is 3 if it has errors.
    """
    from pyspark_delta.maintenance.checking import CheckRequest, check_table

    request = CheckRequest(level.value, tuple(names_of(only) or ()), tuple(names_of(ignore) or ()), since)
    result = check_table(request=request, **_place(path, option))
    if as_json:
        findings = [finding.as_dict() for finding in result.findings]
        print_json({**result.facts(), "findings": findings, "skipped": list(result.skipped)})
    else:
        print_text(str(result).partition("\n")[0])
        if result.findings:
            rows = ((f.id, f.severity.value, f.version, f.message, f.advice) for f in result.findings)
            print_rows(("id", "severity", "version", "finding", "what to do"), rows)
        for id_, number in sorted(result.omitted.items()):
            print_text(f"{id_}: and {number:,} more")
        for reason in result.skipped:
            print_text(f"Not checked: {reason}")
    if result.errors:
        raise typer.Exit(FOUND_ERRORS)


@reporting
def repair(
    path: PathArgument,
    allow: Annotated[
        str | None,
        typer.Option(
            "--allow", metavar="NAMES", help="Repairs that remove something: features, missing-files, ..., by commas."
        ),
    ] = None,
    level: LevelOption = Level.LIST,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Repair what a check finds.

    Repairs that lose something are made only if --allow names them: features, wrong-checkpoints, checkpoint-parts,
    unpublished-checkpoints, unknown-files, missing-files, corrupt-files, duplicate-files, file-sizes, drop-vector.
    """
    from pyspark_delta.maintenance.checking import CheckRequest
    from pyspark_delta.maintenance.checking.repair import plan_repair

    made = plan_repair(allow=names_of(allow) or (), request=CheckRequest(level.value), **_place(path, option))
    if plan:
        print_plan_facts(made.facts(), as_json)
        return
    result = made.execute()
    facts = {"version": result.version, "repairs": list(result.repairs), "unrepaired": len(result.unrepaired)}
    if as_json:
        print_json({**facts, "unrepaired": [finding.as_dict() for finding in result.unrepaired]})
    else:
        print_facts(facts)


@reporting
def health(path: PathArgument, option: StorageOption = None, as_json: JsonOption = False) -> None:
    """Show what makes reading a table slow.

    What needs to be done is said with each topic. Only the log is read.
    """
    report = open_table(path, option=option).health()
    if as_json:
        print_json(report.facts())
        return
    print_rows(
        ("topic", "figure", "value"),
        (
            (t.name, name.replace("_", " "), _readable(name, value))
            for t in report.topics
            for name, value in t.figures.items()
        ),
    )
    for topic in report.topics:
        if topic.advice:
            print_text(f"{topic.name}: {topic.advice}")


def _place(path: str, option: list[str] | None) -> dict[str, Any]:
    """Return where the table is that a command names, without opening it."""
    from pyspark_delta.storage import normalize_location

    found = resolved(path)
    if found is None:
        return {"location": normalize_location(path), "storage_options": storage_options(option)}
    return {
        "location": found.location,
        "storage_options": found.storage_options,
        "catalog_table": found.catalog_table,
    }


def _readable(name: str, value: object) -> object:
    return human_size(value) if name.endswith("bytes") and isinstance(value, int) else value
