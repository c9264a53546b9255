"""Builds the documentation site, with warnings as errors: `site.py [--pages-only]`; the result is build/site.

The pages are those of docs/, with the README and others from above it, and pages of the API that name public classes
for mkdocstrings. Links to files that the site does not have, such as modules, become plain text.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath

import pyspark_delta

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "site-pages"
# Files outside of docs/, and the page of each.
OUTSIDE = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
API = {
    "api/tables.md": ("Tables without Spark", ["Table", "Snapshot", "Progress", "sql"]),
    "api/spark.md": (
        "Spark",
        [
            *("enable", "disable", "configure_spark_with_delta_pip", "install_as_delta", "DeltaTable"),
            *("DeltaTableBuilder", "IdentityGenerator", "streaming_batch"),
        ],
    ),
    "api/catalogs.md": ("Catalogs", ["connect_catalog", "DeltaCatalog", "attach_catalog", "disconnect_catalog"]),
    "api/maintenance.md": ("Maintenance", ["Budget", "Cluster", "Sort", "MaintenancePolicy"]),
    "api/transactions.md": ("Transactions", ["Transaction"]),
}
# Public names that other pages describe: the errors, and what Spark itself looks up.
ELSEWHERE = {"DefaultSource", "__version__", "errors"}
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_INTRODUCTION = "<!-- not run: [^\n]*-->\n"


def main(arguments: list[str]) -> int:
    """Assemble the pages and build; the exit code of mkdocs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages-only", action="store_true", help="assemble the pages only")
    options = parser.parse_args(arguments)
    assemble(PAGES)
    if options.pages_only:
        return 0
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def assemble(target: Path) -> None:
    """Write all pages into a folder, which is emptied first."""
    shutil.rmtree(target, ignore_errors=True)
    pages = dict(sources())
    for name, text in pages.items():
        page = target / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")


def sources() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every page."""
    docs = {f"docs/{path.relative_to(ROOT / 'docs').as_posix()}" for path in (ROOT / "docs").rglob("*.md")}
    places = {source: source.removeprefix("docs/") for source in docs} | OUTSIDE
    for source, page in places.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        yield page, relinked(re.sub(_INTRODUCTION, "", text), source, places)
    yield "flights.md", flights()
    for page, (title, names) in API.items():
        yield page, f"# {title}\n\n" + "\n".join(f"::: pyspark_delta.{name}" for name in names) + "\n"


def relinked(text: str, source: str, places: dict[str, str]) -> str:
    """Return a page whose links lead to pages of the site; a link to another file becomes its text."""
    page = PurePosixPath(places[source])

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        file = normpath(str(PurePosixPath(source).parent / target))
        if file not in places:
            if not (ROOT / file).exists():
                raise FileNotFoundError(f"{source} has a link to {target}, which does not exist")
            return found["text"]
        up = "../" * (len(page.parts) - 1)
        return f"[{found['text']}]({up}{places[file]}{found['anchor'] or ''})"

    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in _FENCE.split(text))


def flights() -> str:
    """Return the tutorial: the demo of the repository, with its docstring as the introduction."""
    code = (ROOT / "examples" / "flights.py").read_text(encoding="utf-8")
    _, introduction, body = code.split('"""', 2)
    return f"# Flights of New York, step by step\n\n{introduction.strip()}\n\n```python\n{body.strip()}\n```\n"


def missing_names() -> set[str]:
    """The public names that no page of the API has."""
    described = {name for _, names in API.values() for name in names}
    errors = {name for name in pyspark_delta.__all__ if name.endswith(("Error", "Exception", "Warning"))}
    return set(pyspark_delta.__all__) - described - errors - ELSEWHERE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
