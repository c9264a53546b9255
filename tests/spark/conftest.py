"""The S3 server of the contract tests, cost models that can be set, statements as text, and a Python for workers."""

import sys
from pathlib import Path

import py4j
import pyspark
import pytest
from tests.by_text import by_text
from tests.contracts.conftest import s3_endpoint, s3_options
from tests.costs import cost

__all__ = ["by_text", "cost", "s3_endpoint", "s3_options"]


@pytest.fixture
def other_python(tmp_path: Path) -> Path:
    """A `python3` alone in its directory that sees PySpark, but neither this package nor pyarrow."""
    python, seen = tmp_path / "bin" / "python3", tmp_path / "seen"
    for folder in (python.parent, seen):
        folder.mkdir()
    for package in (pyspark, py4j):
        (seen / package.__name__).symlink_to(Path(package.__file__).parent)
    python.write_text(f'#!/bin/sh\nexport PYTHONPATH="{seen}"\nexec {Path(sys.base_prefix) / "bin" / "python3"} "$@"\n')
    python.chmod(0o755)
    return python
