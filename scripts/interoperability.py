"""Writes docs/interoperability.md: which peers read tables with each feature; `--check` compares only.

The page shows what tests/interop/feature_tables.py declares, and tests/interop/test_feature_matrix.py holds it to.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "interoperability.md"
sys.path.insert(0, str(ROOT))

from tests.interop.feature_tables import FEATURES, PEERS  # noqa: E402

INTRODUCTION = """# Interoperability

Which engines read tables that this package writes, by table feature. For each feature the test suite writes a small
table, with two appends, and has every engine read it: "reads" means equal content, "refuses" an error that names the
feature, or one that it needs. The engines are delta-spark, deltalake and polars, in the versions that `make test`
installs.

The last column is the other direction: rows are appended to a table that delta-spark made with the feature, and
delta-spark reads it again. `make interoperability` writes this page from `tests/interop/feature_tables.py`.

"""
CLOSING = """
"has none": delta-spark does not know the feature, so it makes no such table. As these features ask nothing of readers,
it reads ours.

PyIceberg is not among the engines: the Iceberg compatibility features prepare a table for a converter, and Iceberg
metadata is written by that converter.
"""


def main() -> int:
    """Write the page, or with `--check` say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when the page is out of date")
    page = render()
    if not parser.parse_args().check:
        PAGE.write_text(page)
    elif not PAGE.is_file() or PAGE.read_text() != page:
        sys.stderr.write(f"docs/{PAGE.name} is out of date: run `make interoperability` and commit it.\n")
        return 1
    return 0


def render() -> str:
    """The page."""
    lines = [
        f"| Feature | {' | '.join(PEERS)} | Appended to delta-spark's |",
        f"|---|{'---|' * len(PEERS)}---|",
    ]
    for name, table in FEATURES.items():
        feature, _, variety = name.partition(", ")
        shown = f"`{feature}`" + (f", {variety}" if variety else "")
        answers = [table.expected(peer) for peer in PEERS]
        lines.append(f"| {shown} | {' | '.join(answers)} | {'reads' if table.theirs else 'has none'} |")
    return INTRODUCTION + "\n".join(lines) + "\n" + CLOSING


if __name__ == "__main__":
    sys.exit(main())
