"""Prepares a release: checks the tree, the version and the changelog, builds and tries the package, and sets the tag.

    release.py --check     what a release needs, without building and without a tag; for CI on a release branch
    release.py             also builds, tries the wheel, writes the bill of materials beside it, and sets the tag

The version is in src/pyspark_delta/_version.py. Nothing is uploaded, and the tag is not pushed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION_FILE = "src/pyspark_delta/_version.py"
_VERSION = re.compile(r'^__version__ = "(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)"$', re.MULTILINE)
_HEADING = re.compile(r"^## (?P<name>\S+)(?: - (?P<day>\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Check, build and tag; 1 with all problems if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="check only")
    options = parser.parse_args(arguments)
    version = version_in((ROOT / VERSION_FILE).read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    problems = [*tree_problems(git("status", "--porcelain"), git("tag").split(), version)]
    problems += changelog_problems(changes, version, date.today())
    if problems:
        sys.stderr.write("Not ready for a release:\n" + "".join(f"- {problem}\n" for problem in problems))
        return 1
    if not options.check:
        for command in (["scripts/package.py", "--every"], ["scripts/licences.py", "--sbom", "dist/sbom.cdx.json"]):
            if subprocess.run([sys.executable, *command], cwd=ROOT, check=False).returncode != 0:
                return 1
        git("tag", "--annotate", f"v{version}", "--message", f"Version {version}")
        sys.stdout.write(f"dist/ holds version {version}, and the tag v{version} is set. Push it, and upload dist/.\n")
    return 0


def version_in(text: str) -> str:
    """Return the version that a module states; an empty text if it is none for a release, such as `1.0.0.dev1`."""
    found = _VERSION.search(text)
    return found[1] if found else ""


def tree_problems(status: str, tags: list[str], version: str) -> Iterator[str]:
    """Yield what is wrong with the working tree and the version."""
    if status.strip():
        yield "files are changed or not tracked; commit them first"
    if not version:
        yield f"{VERSION_FILE} has no version of a release, such as 1.2.3 or 1.2.3rc1"
    elif f"v{version}" in tags:
        yield f"the tag v{version} exists; raise the version in {VERSION_FILE}"


def changelog_problems(text: str, version: str, today: date) -> Iterator[str]:
    """Yield what is wrong with the changelog: the newest heading is that version with a day, and has entries."""
    headings = list(_HEADING.finditer(text))
    names = [heading["name"] for heading in headings]
    if names[:1] == ["Unreleased"]:
        following = headings[1].start() if len(headings) > 1 else len(text)
        if text[headings[0].end() : following].strip():
            yield f"CHANGELOG.md has unreleased changes; give them the heading `## {version or 'VERSION'} - {today}`"
            return
        headings = headings[1:]
    if not headings or headings[0]["name"] != version:
        yield f"CHANGELOG.md has no changes of version {version or 'VERSION'} at its top"
        return
    if headings[0]["day"] is None or date.fromisoformat(headings[0]["day"]) > today:
        yield f"the heading of {version} in CHANGELOG.md has no day, or one to come"
    end = headings[1].start() if len(headings) > 1 else len(text)
    if "\n- " not in text[headings[0].end() : end]:
        yield f"CHANGELOG.md lists no change for {version}"


def git(*arguments: str) -> str:
    """Run git in the repository and return its output."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
