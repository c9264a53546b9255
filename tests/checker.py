"""The checker as an oracle: after a test has passed, every table that it wrote is checked against the protocol.

A conftest that imports `written_tables_are_sound` turns it on for the tests beside it. A test whose tables must have a
finding names it: `@pytest.mark.findings("L01")`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.maintenance.checking import CheckLevel, CheckRequest, check_table

_NOT_CHECKED = ("F11", "F14", "L09")  # many tests are about failed writers and small files, and edit commits


def problems(path: Path, allowed: Collection[str] = (), level: CheckLevel = "list") -> list[str]:
    """The errors and warnings of a table, without those with allowed ids."""
    result = check_table(str(path), CheckRequest(level, ignore=_NOT_CHECKED))
    return [str(finding) for finding in (*result.errors, *result.warnings) if finding.id not in allowed]


def tables_below(path: Path) -> list[Path]:
    """The tables in a folder, those inside of other tables too."""
    return sorted(log.parent for log in path.rglob("_delta_log") if log.is_dir() and any(log.iterdir()))


@pytest.fixture(autouse=True)
def written_tables_are_sound(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check what the test left in its folder. Findings that a mark of the test names are allowed."""
    uses_folder = "tmp_path" in request.fixturenames
    folder: Path | None = request.getfixturevalue("tmp_path") if uses_folder else None
    yield
    if folder is None or not _has_passed(request.node):
        return
    allowed = {id_ for mark in request.node.iter_markers("findings") for id_ in mark.args}
    if "all" in allowed:
        return
    found = [f"{path}: {problem}" for path in tables_below(folder) for problem in problems(path, allowed)]
    if found:
        pytest.fail("The checker found:\n" + "\n".join(found), pytrace=False)


def _has_passed(node: Any) -> bool:
    return bool(node.stash.get(PASSED, False))


PASSED: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Remember whether the test itself has passed."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report
