"""The command that removes a table feature."""

from __future__ import annotations

from typing import Annotated

import typer

from pyspark_delta.cli.options import JsonOption, PathArgument, StorageOption, open_table
from pyspark_delta.cli.outcome import print_plan_facts
from pyspark_delta.cli.output import print_text
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.writing import PlanOption


@reporting
def drop_feature(
    path: PathArgument,
    name: Annotated[str, typer.Argument(metavar="FEATURE", help="The table feature.")],
    truncate_history: Annotated[
        bool,
        typer.Option(
            "--truncate-history", help="Delete the versions that use the feature, instead of protecting them."
        ),
    ] = False,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Drop a table feature from the protocol.

    Rows stay as they are. An interrupted run is continued by the next one.
    """
    table = open_table(path, option=option)
    made = table.drop_feature(name, truncate_history=truncate_history, plan=True)
    if not plan:
        print_plan_facts(made.execute().facts(), as_json)
    elif as_json:
        print_plan_facts(made.facts(), as_json)
    else:
        print_text(str(made))
