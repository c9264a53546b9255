"""Writes docs/conformance.md: the tests and source files of each row of the checklist; `--check` compares only.

A test shows the rows that its name holds: `test_c144_c215_...` shows C144 and C215. A source file follows the rows that
its text names: `C144`, or `C144-C147` for each of these rows. The rows are read from the
checklist at PYSPARK_DELTA_SPEC, by default beside the clone; without it the page is left as it is.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "conformance.md"
SPEC = Path(os.environ.get("PYSPARK_DELTA_SPEC") or ROOT.parent / "shared" / "spec")
LEVELS = {
    "must": "must",
    "should": "should",
    "may": "may",
    "def": "definition",
    "ex": "worked example",
}
WHO = {"R": "reader", "W": "writer", "M": "maintenance", "RW": "reader and writer"}

# Rows that cannot be shown by a test of this package, and why.
NOT_APPLICABLE = {
    "C040": "multi-part checkpoints are read and never written",
    "C467": "catalogs may serve files besides commits; none that there is does",
}
NAMES_ALL_RULES = "maintenance/checking/catalogue.py"  # for messages: the checks themselves name what they follow

_ROW = re.compile(r"^\|\s*(C\d{3})\s*\|\s*(RW|R|W|M)\s*\|\s*(must|should|may|def|ex)\s*\|")
_AREA = re.compile(r"^## [A-Z0-9]{2,3} — (?P<title>.+)$")
_RANGE = re.compile(r"(?<![A-Za-z0-9])C(\d{3})(?:-C?(\d{3}))?(?!\d)")
_ID = re.compile(r"(?<![a-z0-9])c(\d{3})(?!\d)")

INTRODUCTION = """# Conformance

Which tests show the rules of the Delta protocol, and which source files follow them. The rows are those of the
project's conformance checklist, C001 to {last}. Tests have the row numbers in their names, source files in their text;
files are named below `src/pyspark_delta`. `make conformance` writes this page from them.

| Who | Rows | Tested | Not yet | Not applicable |
|---|---:|---:|---:|---:|
"""


@dataclass(frozen=True)
class Row:
    """A row of the checklist, without its rule."""

    id: str
    area: str
    who: str
    level: str


def main() -> int:
    """Write the page, or with `--check` say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when the page is out of date")
    check = parser.parse_args().check
    checklist = SPEC / "conformance.md"
    if not checklist.is_file():
        sys.stdout.write(f"No checklist at {checklist}; {PAGE.name} is left as it is.\n")
        return 0
    rows = read_rows(checklist.read_text())
    tests, sources = named_tests(ROOT / "tests"), named_sources(ROOT / "src" / "pyspark_delta")
    known = {row.id for row in rows}
    unknown = [f"{row} in {named[row][0]}" for named in (tests, sources) for row in sorted(set(named) - known)]
    if unknown:
        sys.stderr.write(f"These rows are named, and the checklist does not have them: {'; '.join(unknown)}\n")
        return 1
    page = render(rows, tests, sources)
    if not check:
        PAGE.write_text(page)
    elif not PAGE.is_file() or PAGE.read_text() != page:
        sys.stderr.write(f"docs/{PAGE.name} is out of date: run `make conformance` and commit it.\n")
        return 1
    missing = [r for r in rows if "R" in r.who and state(r, tests) == "not yet"]
    sys.stdout.write(f"{len(tests)} of {len(rows)} rows have tests; {len(missing)} rows for readers have none.\n")
    return 0


def read_rows(text: str) -> list[Row]:
    """The rows of the checklist in order."""
    rows, area = [], ""
    for line in text.splitlines():
        if heading := _AREA.match(line):
            area = heading["title"]
        elif row := _ROW.match(line):
            rows.append(Row(row[1], area, row[2], row[3]))
    return rows


def named_tests(folder: Path) -> dict[str, list[str]]:
    """The tests that name each row, as `path::test` below the folder."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for number in dict.fromkeys(_ID.findall(node.name.replace("_", " "))):
                    found[f"C{number}"].append(f"{path.relative_to(folder).as_posix()}::{node.name}")
    return {row: sorted(tests) for row, tests in found.items()}


def named_sources(folder: Path) -> dict[str, list[str]]:
    """The source files that name each row, by their paths below the folder."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        if path.match(NAMES_ALL_RULES):
            continue
        rows = {
            f"C{number:03}"
            for first, last in _RANGE.findall(path.read_text())
            for number in range(int(first), int(last or first) + 1)
        }
        for row in rows:
            found[row].append(path.relative_to(folder).as_posix())
    return dict(found)


def render(rows: list[Row], tests: dict[str, list[str]], sources: dict[str, list[str]]) -> str:
    """The page."""
    lines = [INTRODUCTION.format(last=rows[-1].id).rstrip("\n")]
    for who, title in (("R", "for readers"), ("W", "for writers"), ("M", "for maintenance")):
        concerned = [row for row in rows if who in row.who]
        states = [state(row, tests) for row in concerned]
        counts = [sum(s.startswith(kind) for s in states) for kind in ("tested", "not yet", "not applicable")]
        lines.append(f"| {title} | {len(concerned)} | {' | '.join(str(count) for count in counts)} |")
    area = ""
    for row in rows:
        if row.area != area:
            area = row.area
            lines += [
                "",
                f"## {area}",
                "",
                "| Row | For | Level | State | Tests | Source |",
                "|---|---|---|---|---|---|",
            ]
        shown, code = (_listed(named.get(row.id, [])) for named in (tests, sources))
        lines.append(f"| {row.id} | {WHO[row.who]} | {LEVELS[row.level]} | {state(row, tests)} | {shown} | {code} |")
    return "\n".join(lines) + "\n"


def _listed(names: list[str]) -> str:
    return "<br>".join(f"`{name}`" for name in names)


def state(row: Row, tests: dict[str, list[str]]) -> str:
    """Tested, not applicable, or not yet."""
    if row.id in tests:
        return "tested"
    if row.id in NOT_APPLICABLE:
        return f"not applicable: {NOT_APPLICABLE[row.id]}"
    return "not yet" if "R" in row.who else "not yet (writing)" if row.who == "W" else "not yet (maintenance)"


if __name__ == "__main__":
    sys.exit(main())
