"""The S3 server of the contract tests serves here too, and cost models can be set; and a Python for workers."""

import sys
from pathlib import Path

import pytest
from tests.contracts.conftest import s3_endpoint, s3_options
from tests.costs import cost

__all__ = ["cost", "s3_endpoint", "s3_options"]


@pytest.fixture
def other_python(tmp_path: Path) -> Path:
    """A `python3` alone in its directory that sees neither this package nor pyarrow, as the system's Python does."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$(echo "$PYTHONPATH" | tr ":" "\\n" | grep pyspark | paste -sd:)"\n'
        f'exec {Path(sys.base_prefix) / "bin" / "python3"} "$@"\n'
    )
    python.chmod(0o755)
    return python
