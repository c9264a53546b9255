"""Unity Catalog's own server, running on this machine with an empty database in memory."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
API = "/api/2.1/unity-catalog"
START_SECONDS = 120

_PROPERTIES = """server.env=test
server.authorization=disable
server.managed-table.enabled=true
storage-root.tables=file://{tables}
"""
_LOGGING = """rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c %m%n%ex
"""


class UnityCatalogServer:
    """The server, with a catalog `unity`. Ends with its context."""

    def __init__(self, jars: Path, folder: Path) -> None:
        configuration = folder / "etc" / "conf"
        configuration.mkdir(parents=True)
        (folder / "tables").mkdir()
        (configuration / "server.properties").write_text(_PROPERTIES.format(tables=folder / "tables"))
        (configuration / "server.log4j2.properties").write_text(_LOGGING)
        self.port = _two_free_ports()
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        options = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        main = ("io.unitycatalog.server.UnityCatalogServer", "-p", str(self.port))
        self._process = subprocess.Popen(
            ["java", *options, "-cp", f"{jars}/*", *main],
            cwd=folder,  # where it looks for its configuration
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self.url = f"http://127.0.0.1:{self.port}{API}"

    def start(self) -> None:
        """Wait until it answers, and make the catalog."""
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline:
                pytest.fail(f"Unity Catalog did not start within {START_SECONDS} s: {self.output()}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(timeout=0.2)
                pytest.fail(f"Unity Catalog ended with exit code {code}: {self.output()}")
        httpx.post(f"{self.url}/catalogs", json={"name": "unity"}, timeout=30).raise_for_status()

    def output(self) -> str:
        """The end of what it wrote."""
        self._log.seek(0)
        return self._log.read()[-3000:]

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(timeout=30)
        self._log.close()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/catalogs", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


def unity_catalog_jars() -> Path:
    """Where `make test` puts the server; the test is skipped where it is absent."""
    folder = Path(os.environ.get("PYSPARK_DELTA_UNITY_JARS") or ROOT / ".cache" / "unity-catalog")
    if not any(folder.glob("unitycatalog-server-*.jar")):
        pytest.skip("Unity Catalog's server is not set up; `make test` does it where Maven has it")
    return folder


def _two_free_ports() -> int:
    """The server listens on a port and on the one after it."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port: int = first.getsockname()[1]
            with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port + 1)):
                return port
