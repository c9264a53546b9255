"""What doctor finds, and what it says to do."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.cli import doctor
from pyspark_delta.cli.doctor import Check, examine, java_major, judge, parse_version


def failed(checks: list[Check]) -> dict[str, Check]:
    """The failures by name."""
    return {check.name: check for check in checks if check.status == "failed"}


@pytest.mark.parametrize(
    ("text", "version"),
    [("4.3.0", (4, 3, 0)), ("4.3.0.dev1", (4, 3, 0)), ("26", (26,)), ("1.2rc1", (1, 2)), ("unknown", ())],
)
def test_versions_are_compared_by_their_numbers(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25-ea" 2025', 25),
        ("no java here", None),
    ],
)
def test_the_major_version_of_java(text: str, major: int | None) -> None:
    assert java_major(text) == major


def java_home(path: Path, says: str) -> Path:
    """A JAVA_HOME whose java answers with that text."""
    java = path / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return path


def test_an_old_java_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, 'openjdk version "11.0.2"')))
    found = failed(list(examine(spark=False)))
    assert found["Java"].found.startswith("11 ")
    assert "Java 17" in found["Java"].remedy


def test_a_java_home_without_java_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert str(tmp_path) in failed(list(examine(spark=False)))["Java"].found


def test_the_spark_job_is_not_tried_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "not run" in failed(list(examine()))["Spark job"].found


def test_every_failure_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.metadata, "version", lambda name: "0.1")
    found = failed(list(examine(spark=False)))
    assert set(found) >= {"pyarrow", "numpy", "orjson", "pyroaring", "sqlglot", "pyspark"}
    assert all(check.remedy for check in found.values())
    assert "older than 18" in found["pyarrow"].found


def test_a_missing_pyspark_is_told_with_the_command(tmp_path: Path) -> None:
    """In an environment where pyspark is not installed, doctor still runs, and exits with 1."""
    hidden = "pyspark_delta.cli.doctor.metadata"
    code = (
        f"import {hidden.rpartition('.')[0]} as d\n"
        "real = d.metadata.version\n"
        "def version(name):\n"
        "    if name == 'pyspark':\n"
        "        raise d.metadata.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "d.metadata.version = version\n"
        "import sys; sys.modules['pyspark'] = None\n"
        "sys.argv = ['pyspark-delta', 'doctor', '--json']\n"
        "from pyspark_delta.cli import main; main()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1, done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert checks["pyspark"]["status"] == "failed"
    assert checks["pyspark"]["remedy"] == "pip install 'pyspark-delta[spark]'"


# ------------------------------------------------------------------------------------------------- the Spark job
DRIVER = {"python": "3.11.7", "host": "a", "pyspark": "4.3.0", "pyarrow": "26.0.1", "pyspark_delta": "0.1.0"}


def report(worker: dict[str, Any], **others: Any) -> dict[str, Any]:
    """What the probe says with one worker."""
    return {"driver": DRIVER, "workers": [{**DRIVER, **worker}], "source": "delta", "error": None, **others}


def test_a_healthy_cluster_has_no_failure() -> None:
    assert failed(list(judge(report({})))) == {}


@pytest.mark.parametrize(
    ("worker", "name", "says"),
    [
        ({"python": "3.12.1"}, "worker on a: Python", "PYSPARK_PYTHON"),
        ({"pyarrow": None}, "worker on a: pyarrow", "pip install pyarrow"),
        ({"pyarrow": "18.0.0"}, "worker on a: pyarrow", "same version"),
        ({"pyspark_delta": None}, "worker on a: pyspark_delta", "pip install pyspark-delta"),
    ],
)
def test_a_worker_that_differs_fails(worker: dict[str, Any], name: str, says: str) -> None:
    assert says in failed(list(judge(report(worker))))[name].remedy


def test_a_job_that_fails_is_told_in_its_own_words() -> None:
    given = {**report({}, error="ModuleNotFoundError: No module named 'pyarrow'", source=None), "workers": []}
    found = failed(list(judge(given)))
    assert list(found) == ["Spark job"]
    assert "pyarrow" in found["Spark job"].found


def test_a_source_that_spark_does_not_find_fails() -> None:
    given = report({}, source=None, source_error="DATA_SOURCE_NOT_FOUND: delta")
    assert "DATA_SOURCE_NOT_FOUND" in failed(list(judge(given)))["format('delta')"].found
