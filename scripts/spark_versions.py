"""Writes docs/spark-versions.md: what works on which PySpark; `--check` compares only.

The page shows the tests of tests/spark/versions, which run on every release: their docstrings, and the release
that a test is marked `since`. Tests marked `until` a release show what older ones refuse; the closing text names it.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "spark-versions.md"
TESTS = ROOT / "tests" / "spark" / "versions"
AREAS = ("reading", "writing", "row_changes", "sql", "maintenance", "streams")
RELEASES = ("3.5", "4.0", "4.1", "4.2", "4.3")

INTRODUCTION = """# Versions of Spark

What works on which PySpark, in classic sessions with `enable`. Each row is a test that runs on all of these releases.
On 4.3 the whole test suite runs. `make test-long` runs all its tests of classic sessions on the others too, except
those marked `since` a newer release. `make versions-page` writes this page from `tests/spark/versions`.

"""
CLOSING = """
What Spark lacks is refused with an error that names it:

- **PySpark 3.5** has no Python Data Source, so Delta tables need `enable`. It has no type VARIANT and no SQL
  scripts. Its parser does not know identity columns and `CLUSTER BY`, so use `DeltaTable.create`. `enable`
  refuses Spark Connect. Its Parquet reader does not widen types: tasks read such tables by Arrow, and streams of them
  are refused.
- **PySpark 4.0 and 4.1** read streams with `enable` in classic sessions only: their Python Data Source cannot limit a
  batch. 4.0 also writes streams with `enable` only.
- **PySpark 4.0** runs SQL scripts only if `spark.sql.scripting.enabled` is true. Its Parquet reader does not read
  shredded variants: tasks read tables with the feature `variantShredding` by Arrow, and streams of them are refused.
- **Before 4.1**, parameters (`args` of `spark.sql`, USING of EXECUTE IMMEDIATE) work in queries, but not in statements
  that change Delta tables. Spark reads `'it''s'` as "its" there, and so do statements; defaults, generated columns and
  constraints of tables mean "it's" on every release.
- **Before 4.2**, `IDENTIFIER(:name)` takes names of tables, but not paths, and SQL does not find the hidden column
  `_metadata`; `spark.read` does.
- **PySpark 4.2.0**: a Python UDF on columns that Spark reads from Parquet may never end, of plain Parquet files too.
  Set `spark.sql.execution.pythonUDF.arrow.enabled` to `false`. 4.3 does not need it.

Plans are the same on all releases: Spark's own Parquet scan reads the files. PySpark 3.5 is tested with numpy 1
(`pip install 'numpy<2' 'pyarrow<22'`).

Tables with many features change hands with delta-spark 3.3.2 on Spark 3.5, 4.0.1 on 4.0, and 4.4.0 on 4.1 and 4.2
(`tests/interop`).
"""


def main() -> int:
    """Write the page, or with `--check` say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail when the page is out of date")
    page = render("".join((TESTS / f"test_versions_{area}.py").read_text() for area in AREAS))
    if not parser.parse_args().check:
        PAGE.write_text(page)
    elif not PAGE.is_file() or PAGE.read_text() != page:
        sys.stderr.write(f"docs/{PAGE.name} is out of date: run `make versions-page` and commit it.\n")
        return 1
    return 0


def render(tests: str) -> str:
    """The page for the text of the modules of tests, one after the other."""
    lines = [f"| Area | What | {' | '.join(RELEASES)} |", f"|---|---|{'---|' * len(RELEASES)}"]
    for text, since in rows(tests):
        area, _, what = text.partition(": ")
        answers = ["yes" if _number(release) >= _number(since) else "no" for release in RELEASES]
        lines.append(f"| {area} | {what[0].upper()}{what[1:]} | {' | '.join(answers)} |")
    return INTRODUCTION + "\n".join(lines) + "\n" + CLOSING


def rows(tests: str) -> Iterator[tuple[str, str]]:
    """The first line of each test's docstring, and the release that the test needs."""
    for node in ast.parse(tests).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            if any(_release_of("until", one) for one in node.decorator_list):
                continue
            text = ast.get_docstring(node)
            assert text is not None, f"{node.name} has no docstring"
            since = [_release_of("since", one) for one in node.decorator_list]
            yield text.splitlines()[0], next(filter(None, since), RELEASES[0])


def _release_of(mark: str, decorator: ast.expr) -> str | None:
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == f"pytest.mark.{mark}":
        return str(ast.literal_eval(decorator.args[0]))
    return None


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


if __name__ == "__main__":
    raise SystemExit(main())
