"""Runs programs as users do: in a process of their own, without the settings of the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark_delta

BEGIN = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
import pyspark_delta
builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
path = sys.argv[1]
"""


def run(code: str, python: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """Run a program with this Python. The first `python3` of the PATH is the one given, which may be another."""
    activated = Path(sys.executable).parent
    found = [place for place in os.environ["PATH"].split(os.pathsep) if Path(place) != activated]
    kept = {k: v for k, v in os.environ.items() if k not in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV")}
    kept |= {
        "PATH": os.pathsep.join([str(python.parent), *found]),
        "PYTHONPATH": str(Path(pyspark_delta.__file__).parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, "-c", BEGIN + code, str(path)],
        capture_output=True,
        text=True,
        env=kept,
        check=False,
    )


def answer_of(done: subprocess.CompletedProcess[str]) -> Any:
    """Return what a program has printed last, as JSON; it must have succeeded."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
