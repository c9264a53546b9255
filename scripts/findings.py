"""Writes docs/findings.md: all findings of a check and all repairs, from their catalogues; `--check` compares only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark_delta.maintenance.checking.catalogue import CHECKS
from pyspark_delta.maintenance.checking.repair_catalogue import (
    AUTOMATIC,
    NAMED,
    OF_WRONG_CHECKPOINTS,
    TITLES,
    WRONG_CHECKPOINTS,
)

PAGE = Path(__file__).parents[1] / "docs" / "findings.md"

INTRODUCTION = """# Findings and repairs

What a [check](check.md) of a table may find, and what `repair` does about it. The severity is the usual one; a finding
may be less severe where it does less harm. The level is the least one that runs the check. The rule is that of the
[conformance list](conformance.md). `make findings` writes this page from the catalogue of checks.

"""


def render() -> str:
    """Return the page."""
    return INTRODUCTION + "\n".join((*_findings(), "", *_repairs())) + "\n"


def _findings() -> Iterator[str]:
    yield "| Id | Checks | Severity | Level | Rule | What to do | Repair |"
    yield "|---|---|---|---|---|---|---|"
    for check in CHECKS.values():
        repair = f"`{check.repair}`" if check.repair else ""
        cells = (check.id, check.title, check.severity.value, check.level, check.rule, check.advice, repair)
        yield f"| {' | '.join(cells)} |"


def _repairs() -> Iterator[str]:
    findings: dict[str, list[str]] = {}
    for check in CHECKS.values():
        findings.setdefault(check.repair, []).append(check.id)
    yield "## Repairs"
    yield ""
    yield "A repair does not apply to every finding of a check; each finding names its own. `required-features` also"
    yield "repairs P02 for types of the schema, and P13 for metadata domains without their feature."
    yield ""
    yield "| Repair | What it does | Findings | `allow` must name it |"
    yield "|---|---|---|---|"
    for name in (*AUTOMATIC, *NAMED):
        ids = ", ".join(OF_WRONG_CHECKPOINTS if name == WRONG_CHECKPOINTS else findings[name])
        yield f"| `{name}` | {TITLES[name]} | {ids} | {'yes' if name in NAMED else 'no'} |"


def main() -> int:
    """Write the page, or compare it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="do not write, fail if the page differs")
    wanted = render()
    if not parser.parse_args().check:
        PAGE.write_text(wanted)
        return 0
    if PAGE.read_text() == wanted:
        return 0
    sys.stdout.write(f"{PAGE.name} is not up to date: run `make findings`.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
