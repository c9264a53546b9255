"""Peers to test against: delta-spark in a virtual environment of its own."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class DeltaSpark:
    """The Python of delta-spark's PySpark, and delta-spark's JAR files."""

    python: Path
    jars: tuple[Path, ...]

    def run(self, script: Path, *arguments: str, timeout: int = 900) -> str:
        """Run a script with the arguments and the JARs; its output."""
        command = [str(self.python), str(script), *arguments, *(str(jar) for jar in self.jars)]
        environment = {**os.environ, "PYSPARK_PYTHON": str(self.python)}
        environment.pop("SPARK_REMOTE", None)
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=environment)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@pytest.fixture(scope="session")
def delta_spark_peer() -> DeltaSpark:
    """delta-spark, set up by `make peers`; the test is skipped where it is absent."""
    python = Path(os.environ.get("PYSPARK_DELTA_PEER_PYTHON") or ROOT / ".venv-4.2" / "bin" / "python")
    folder = Path(os.environ.get("PYSPARK_DELTA_PEER_JARS") or ROOT / ".cache" / "jars")
    jars = tuple(sorted(folder.glob("*.jar")))
    if not python.exists() or not jars:
        pytest.skip("delta-spark is not set up; run `make peers`")
    return DeltaSpark(python, jars)


@pytest.fixture(scope="session")
def delta_spark_tables(delta_spark_peer: DeltaSpark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of tables that delta-spark made for this run, with the rows it reads itself beside them."""
    out = tmp_path_factory.mktemp("delta-spark-tables")
    delta_spark_peer.run(Path(__file__).with_name("delta_spark_tables.py"), str(out))
    return out
