"""Peers to test against: delta-spark in a virtual environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.interop.kept_tables import NEVER_KEPT, unpack
from tests.interop.unity_catalog_server import UnityCatalogServer, unity_catalog_jars
from tests.lengths import FULL

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class DeltaSpark:
    """The Python of delta-spark's PySpark, and delta-spark's JAR files."""

    python: Path
    jars: tuple[Path, ...]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its processes."""
        kept = {key: value for key, value in os.environ.items() if key not in ("SPARK_REMOTE", "PYTHONPATH")}
        return {**kept, "PYSPARK_PYTHON": str(self.python)}


class DeltaSparkServer:
    """One process of delta-spark that answers questions (`delta_spark_server.py`)."""

    def __init__(self, peer: DeltaSpark, folder: Path) -> None:
        script = Path(__file__).with_name("delta_spark_server.py")
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        self._folder, self._reads = folder, 0
        self._process = subprocess.Popen(
            [str(peer.python), str(script), *(str(jar) for jar in peer.jars)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=peer.environment,
            cwd=folder,
        )

    def ask(self, do: str, **question: Any) -> Any:
        """The answer to a question; the test fails on an error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **question}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("ANSWER "):
                reply = json.loads(line.removeprefix("ANSWER "))
                assert "error" not in reply, f"delta-spark: {reply['error']}"
                return reply["ok"]
        self._log.seek(0)
        raise AssertionError(f"delta-spark ended: {self._log.read()[-3000:]}")

    def read(self, path: Path, version: int | None = None, texts: Mapping[str, str] | None = None) -> pa.Table:
        """The rows of a table as delta-spark reads them; `texts` are expressions in place of columns."""
        self._reads += 1
        out = self._folder / f"read-{self._reads}.arrow"
        self.ask("read", path=str(path), version=version, texts=dict(texts or {}), out=str(out))
        with pa.memory_map(str(out)) as source:
            return pa.ipc.open_file(source).read_all()

    def query(self, select: str) -> pa.Table:
        """The rows of a query."""
        self._reads += 1
        out = self._folder / f"read-{self._reads}.arrow"
        self.ask("query", select=select, out=str(out))
        with pa.memory_map(str(out)) as source:
            return pa.ipc.open_file(source).read_all()

    def sql(self, *statements: str) -> None:
        """Run statements."""
        self.ask("sql", statements=statements)

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)
        self._log.close()


@pytest.fixture(scope="session")
def delta_spark_peer() -> DeltaSpark:
    """delta-spark, set up by `make test`; the test is skipped where it is absent."""
    python = Path(os.environ.get("PYSPARK_DELTA_PEER_PYTHON") or ROOT / ".venv-4.2" / "bin" / "python")
    folder = Path(os.environ.get("PYSPARK_DELTA_PEER_JARS") or ROOT / ".cache" / "jars")
    jars = tuple(sorted(folder.glob("*.jar")))
    if not python.exists() or not jars:
        pytest.skip("delta-spark is not set up; `make test` does it")
    return DeltaSpark(python, jars)


@pytest.fixture(scope="session")
def delta_spark_server(
    delta_spark_peer: DeltaSpark, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeltaSparkServer]:
    """delta-spark, running."""
    server = DeltaSparkServer(delta_spark_peer, tmp_path_factory.mktemp("delta-spark-server"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def delta_spark_tables(delta_spark_server: DeltaSparkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of tables that delta-spark made, with the rows it reads itself beside them."""
    out = tmp_path_factory.mktemp("delta-spark-tables")
    if not FULL:
        unpack(out)
    delta_spark_server.ask("tables", out=str(out), only=None if FULL else NEVER_KEPT)
    return out


@pytest.fixture(scope="session")
def unity_catalog_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityCatalogServer]:
    """Unity Catalog's own server, running; the test is skipped where it is not set up."""
    server = UnityCatalogServer(unity_catalog_jars(), tmp_path_factory.mktemp("unity-catalog"))
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def our_spark(delta_spark: SparkSession) -> SparkSession:
    """The session of this process that pyspark-delta is enabled in, as opposed to that of the peer."""
    return delta_spark
