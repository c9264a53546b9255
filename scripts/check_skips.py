"""Fails when a test was skipped, or expected to fail, that tests/allowed_skips.txt does not list with its reason.

Reads the reports that scripts/run_tests.py leaves. Each line of the list is `TEST | REASON | WHY IT IS RIGHT`; the
first two are patterns with `*`, compared with `module::test[parameters]` and the reason that pytest gives.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = ROOT / "tests" / "allowed_skips.txt"
REPORTS = ROOT / "build" / "test-reports"


@dataclass(frozen=True)
class Rule:
    """One line of the list."""

    test: str
    reason: str

    def allows(self, test: str, reason: str) -> bool:
        """Whether both patterns match; brackets in test names are no patterns."""
        return fnmatchcase(test, _literal(self.test)) and fnmatchcase(reason, _literal(self.reason))


def main() -> int:
    """Compare reports and list; 0 when every skip is allowed and there is a report."""
    reports = sorted(REPORTS.glob("*.xml"))
    if not reports:
        sys.stderr.write(f"No test reports in {REPORTS}: run `make test` first.\n")
        return 1
    rules = read_rules(ALLOWED.read_text())
    skipped = [found for report in reports for found in skips(report)]
    unexpected = [(test, reason) for test, reason in skipped if not any(rule.allows(test, reason) for rule in rules)]
    for test, reason in unexpected:
        sys.stderr.write(f"Skipped without leave: {test}: {reason}\n")
    for rule in rules:
        if not any(rule.allows(test, reason) for test, reason in skipped):
            sys.stdout.write(f"No longer skipped, the line may go: {rule.test} | {rule.reason}\n")
    sys.stdout.write(f"{len(skipped)} skips in {len(reports)} reports, {len(unexpected)} of them not allowed.\n")
    return 1 if unexpected else 0


def read_rules(text: str) -> list[Rule]:
    """The rules of the list. Raises ValueError for a line without its three parts."""
    rules = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"Line {number} of {ALLOWED.name} is not `TEST | REASON | WHY IT IS RIGHT`: {line}")
        rules.append(Rule(parts[0], parts[1]))
    return rules


def skips(report: Path) -> Iterator[tuple[str, str]]:
    """The skipped tests of a JUnit report, and those expected to fail, each with its reason."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        for skipped in case.iter("skipped"):
            yield f"{case.get('classname')}::{case.get('name')}", skipped.get("message") or ""


def _literal(pattern: str) -> str:
    return pattern.replace("[", "[[]").replace("?", "[?]")


if __name__ == "__main__":
    sys.exit(main())
