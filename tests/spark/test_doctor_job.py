"""doctor with a real Spark job on real workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyspark_delta
from pyspark_delta.cli.doctor.workers import judge
from pyspark_delta.spark.probe import report

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(pyspark_delta.__file__).parents[1]),
    "PYSPARK_PYTHON": sys.executable,
}


def test_workers_report_their_versions() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pyspark_delta", "doctor", "--json", "--master", "local[2]"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == 0, checks
    assert checks["Spark job"]["status"] == "ok"
    assert checks["format('delta')"]["found"] == "delta"
    assert checks["small table"]["found"] == "800 rows read"
    (worker,) = [check for name, check in checks.items() if name.endswith(": pyspark_delta")]
    assert worker["found"] == pyspark_delta.__version__


def test_workers_without_the_package_are_found(
    spark: SparkSession, other_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(other_python))
    failures = [check for check in judge(report(spark)) if check.status == "failed"]
    assert any("PYSPARK_PYTHON" in check.remedy for check in failures)
