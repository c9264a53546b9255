"""The stage `bare` runs where PySpark is not installed: what its tests show holds without it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from pyspark_delta import MissingDependencyError, Table


def test_pyspark_is_not_installed() -> None:
    assert [name for name in ("pyspark", "py4j") if find_spec(name) is not None] == []


def test_what_needs_spark_says_so() -> None:
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-delta\[spark\]'"):
        from pyspark_delta import enable  # noqa: F401


def test_the_command_line_reads_what_was_written(tmp_path: Path) -> None:
    Table.write(tmp_path, {"id": [1, 2]}).delete("id = 1")
    command = [sys.executable, "-m", "pyspark_delta.cli", "history", str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "DELETE" in said
