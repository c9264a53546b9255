"""Marks tests by the Spark session they ask for, so that each stage of the suite can select its own.

A fixture whose name holds `connect` makes a test `connect`, one that ends with `_cluster` makes it `cluster`, and one
whose name holds `spark` makes it `spark`. Tests that choose their fixture by a parameter are in a folder of the stage's
name, as are those that need an environment without PySpark (`bare`).

A class that repeats tests of another, as on another kind of session, may name in `USUAL` those that always run; the
others run at the full length (`tests/lengths.py`).

A test marked `since` a release of PySpark is left out on older ones, and one marked `until` a release from that one on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version

import pytest
from hypothesis import settings
from tests.lengths import FULL

# Time limits per example only tell how busy the machine is; CI repeats the same examples.
settings.register_profile("suite", deadline=None)
settings.register_profile("suite-ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("suite-ci" if os.environ.get("CI") else "suite")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the marks before `-m` selects by them; leave the tests that are for the full length to it."""
    long = [] if FULL else [item for item in items if _is_long(item)]
    if long:
        items[:] = [item for item in items if not _is_long(item)]
        config.hook.pytest_deselected(items=long)
    others = [item for item in items if not _is_for_this_pyspark(item)]
    if others:
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)
    for item in items:
        mark = stage_of(getattr(item, "fixturenames", ()), item.path.parts)
        if mark is not None:
            item.add_marker(mark)


def stage_of(fixtures: Sequence[str], path: Sequence[str]) -> str | None:
    """The mark of a test with these fixtures, in a file with these folders; None for one without a session."""
    if any("connect" in name for name in fixtures):
        return "connect"
    # Tests of clustering need no cluster.
    if any(name.endswith("_cluster") for name in fixtures) or "cluster" in path:
        return "cluster"
    if any("spark" in name for name in fixtures):
        return "spark"
    return "bare" if "bare" in path else None


def _is_for_this_pyspark(item: pytest.Item) -> bool:
    """Whether a test is for this release of PySpark: from the one it is marked `since`, before the one of `until`."""
    since, until = ([_release(mark.args[0]) for mark in item.iter_markers(name)] for name in ("since", "until"))
    if not since and not until:
        return True
    here = _release(version("pyspark"))
    return all(release <= here for release in since) and all(here < release for release in until)


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def _is_long(item: pytest.Item) -> bool:
    """Whether a class of tests leaves a test to the full length: its `USUAL` names those that always run."""
    usual = getattr(getattr(item, "cls", None), "USUAL", None)
    return usual is not None and getattr(item, "originalname", item.name) not in usual
