"""What commands that change a table print: the committed version and its metrics, or the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark_delta.cli.output import print_facts, print_json, print_text
from pyspark_delta.cli.sizes import human_size

if TYPE_CHECKING:
    from pyspark_delta.statements.plan import ChangePlan
    from pyspark_delta.table import ChangeResult


def print_result(result: ChangeResult, as_json: bool) -> None:
    """Print the version and the metrics of a change on one line, or as JSON."""
    if as_json:
        print_json({"version": result.version, "metrics": dict(result.metrics)})
        return
    facts = ", ".join(f"{name} {value}" for name, value in result.metrics.items() if value)
    if result.version is not None:
        print_text(f"Version {result.version}{': ' if facts else ''}{facts}")
    elif result.metrics:
        print_text("Nothing was committed: no row changes.")
    else:
        print_text("Nothing was committed: the table has this write of the application already.")


def print_plan(plan: ChangePlan[Any], as_json: bool) -> None:
    """Print what a change would do. Counts that are known only after rows are read are unknown, in JSON null."""
    facts = {name: None if value == -1 else value for name, value in plan.facts().items()}
    if as_json:
        print_json(facts)
        return
    print_facts({name.replace("_", " "): _readable(name, value) for name, value in facts.items() if value != ""})


def print_plan_facts(facts: Mapping[str, Any], as_json: bool) -> None:
    """Print what a change of the definition would do."""
    if as_json:
        print_json(facts)
    else:
        print_facts(
            {
                name.replace("_", " "): [f"{key}={item}" for key, item in value.items()]
                if isinstance(value, Mapping)
                else value
                for name, value in facts.items()
            }
        )


def _readable(name: str, value: str | int | None) -> str | int:
    if value is None:
        return "unknown"
    return human_size(value) if name.startswith("bytes_") and isinstance(value, int) else value
