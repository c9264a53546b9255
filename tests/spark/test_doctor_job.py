"""doctor with a real Spark job on real workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark_delta

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(pyspark_delta.__file__).parents[1]),
    "PYSPARK_PYTHON": sys.executable,
}


def doctor_of_spark(**environment: str) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit code of doctor and its checks by name."""
    done = subprocess.run(
        [sys.executable, "-m", "pyspark_delta.cli", "doctor", "--json", "--master", "local[2]"],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, **environment},
        check=False,
    )
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)}


def test_workers_report_their_versions() -> None:
    code, checks = doctor_of_spark()
    assert code == 0, checks
    assert checks["Spark job"]["status"] == "ok"
    assert checks["format('delta')"]["found"] == "delta"
    (worker,) = [check for name, check in checks.items() if name.endswith(": pyspark_delta")]
    assert worker["found"] == pyspark_delta.__version__


def test_workers_without_the_package_are_found(tmp_path: Path) -> None:
    """A Python for workers that sees neither this package nor pyarrow, as a fresh virtual environment does."""
    worker = tmp_path / "python"
    worker.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$(echo "$PYTHONPATH" | tr ":" "\\n" | grep pyspark | paste -sd:)"\n'
        f'exec {Path(sys.base_prefix) / "bin" / "python3"} "$@"\n'
    )
    worker.chmod(0o755)
    code, checks = doctor_of_spark(PYSPARK_PYTHON=str(worker), PYSPARK_DRIVER_PYTHON=sys.executable)
    assert code == 1
    failures = {name: check for name, check in checks.items() if check["status"] == "failed"}
    assert any("PYSPARK_PYTHON" in check["remedy"] for check in failures.values())
