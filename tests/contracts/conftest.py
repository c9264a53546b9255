"""Object stores to test against: real HTTP servers on this machine, started once."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import importlib
import json
import logging
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.catalog.sql import SqlCatalog

pytest.register_assert_rewrite("pyspark_delta.testing.store_contract")
for _module in ("contract", "cases", "literal_names", "repairs", "tables"):
    pytest.register_assert_rewrite(f"pyspark_delta.testing.catalog_{_module}")

AZURITE_VERSION = "3.35.0"
START_SECONDS = 300
# Published with the emulator, the same in every installation.
EMULATOR_ACCOUNT = "devstoreaccount1"
EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture
def sql_catalog() -> Iterator[Callable[..., SqlCatalog]]:
    """`SqlCatalog.connect`; the connections are closed when the test ends."""
    made: list[SqlCatalog] = []

    def connect(url: str, storage_root: str | None = None, **more: Any) -> SqlCatalog:
        made.append(SqlCatalog.connect(url, storage_root, **more))
        return made[-1]

    yield connect
    for catalog in made:
        catalog.close()


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of an S3 server with the bucket `contract`."""
    pytest.importorskip("obstore", reason="needs the extra `cloud`")
    server_module = pytest.importorskip("moto.server", reason="needs moto[server]")
    _make_puts_atomic()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/contract", method="PUT")).close()
    yield endpoint
    server.stop()


def _make_puts_atomic() -> None:
    """Let the server look for an object and put it in one step, as S3 does.

    It answers requests by threads, and between its look and its put another thread may put the same object. Then two
    writers are told that they made it.
    """
    responses = importlib.import_module("moto.s3.responses").S3Response
    if getattr(responses.put_object, "is_atomic", False):
        return
    put, lock = responses.put_object, threading.Lock()

    def put_object(self: Any) -> Any:
        with lock:
            return put(self)

    put_object.is_atomic = True  # type: ignore[attr-defined]
    responses.put_object = put_object


@pytest.fixture(scope="session")
def s3_options(s3_endpoint: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3_endpoint,
    }


# S3's server takes a signature as it is, and refuses requests without one.
_ANY_SIGNATURE = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


class _SpokenAsCloudStorage:
    """Lets an application that speaks S3's interface answer to Google Cloud Storage's XML interface.

    Both have the same requests and documents. What differs are names of headers, and the condition of a put: a
    generation of 0 there is an object that does not exist.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        environ["HTTP_AUTHORIZATION"] = _ANY_SIGNATURE
        generation = environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None)
        if generation is not None:
            assert generation == "0", f"Only new objects are put on a condition, not those of generation {generation}."
            environ["HTTP_IF_NONE_MATCH"] = "*"
        source = environ.pop("HTTP_X_GOOG_COPY_SOURCE", None)
        if source is not None:
            environ["HTTP_X_AMZ_COPY_SOURCE"] = source
        return self._application(environ, start_response)


@pytest.fixture(scope="session")
def gcs_options() -> Iterator[dict[str, str]]:
    """Options for a server with Google Cloud Storage's XML interface and the bucket `contract`."""
    pytest.importorskip("obstore", reason="needs the extra `cloud`")
    applications = pytest.importorskip("moto.moto_server.werkzeug_app", reason="needs moto[server]")
    serving = importlib.import_module("werkzeug.serving")
    _make_puts_atomic()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = applications.DomainDispatcherApplication(applications.create_backend_app)
    server = serving.make_server("127.0.0.1", 0, _SpokenAsCloudStorage(application), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/contract", method="PUT")).close()
    account = {"gcs_base_url": endpoint, "disable_oauth": True, "client_email": "", "private_key": ""}
    yield {"google_service_account_key": json.dumps({**account, "private_key_id": ""}), "allow_http": "true"}
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def azure_options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Options for an Azure emulator with the container `contract`."""
    pytest.importorskip("obstore", reason="needs the extra `cloud`")
    port = _free_port()
    command = ["node", str(_azurite_script()), "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    folder = tmp_path_factory.mktemp("azurite")
    log = tmp_path_factory.mktemp("azurite-log") / "output"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*command, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        ) as emulator,
    ):
        try:
            _wait_for(port, emulator, log)
            _create_container(port, "contract")
            yield {
                "azure_storage_account_name": EMULATOR_ACCOUNT,
                "azure_storage_account_key": EMULATOR_KEY,
                "azure_storage_endpoint": f"http://127.0.0.1:{port}/{EMULATOR_ACCOUNT}",
            }
        finally:
            emulator.terminate()


def _azurite_script() -> Path:
    """Azurite, installed once into a cache folder (`PYSPARK_DELTA_TEST_CACHE`)."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("the Azure emulator needs node and npm")
    cache = Path(os.environ.get("PYSPARK_DELTA_TEST_CACHE") or Path.home() / ".cache" / "pyspark-delta-tests")
    folder = cache / f"azurite-{AZURITE_VERSION}"
    script = folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    if not script.exists():
        building = cache / f"building-{uuid.uuid4().hex}"  # renamed when whole: test processes run side by side
        building.mkdir(parents=True)
        install = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", f"azurite@{AZURITE_VERSION}"],
            cwd=building,
            capture_output=True,
            text=True,
        )
        if install.returncode != 0:
            shutil.rmtree(building)
            pytest.skip(f"npm could not install the Azure emulator: {install.stderr.strip()[-300:]}")
        try:
            building.rename(folder)
        except OSError:
            shutil.rmtree(building)
    return script


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server accepts connections. A busy machine may take minutes to start it."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                pytest.fail(f"the Azure emulator did not start within {START_SECONDS} s:\n{_end_of(log)}")
        with contextlib.suppress(subprocess.TimeoutExpired):
            pytest.fail(f"the Azure emulator ended with exit code {process.wait(timeout=0.05)}:\n{_end_of(log)}")


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


def _create_container(port: int, name: str) -> None:
    """A request signed with the shared key; obstore has no operation on containers."""
    date = formatdate(usegmt=True)
    headers = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
    resource = f"/{EMULATOR_ACCOUNT}/{EMULATOR_ACCOUNT}/{name}\nrestype:container"
    text = "PUT" + "\n" * 12 + "".join(f"{key}:{value}\n" for key, value in headers.items()) + resource
    digest = hmac.digest(base64.b64decode(EMULATOR_KEY), text.encode(), hashlib.sha256)
    headers["Authorization"] = f"SharedKey {EMULATOR_ACCOUNT}:{base64.b64encode(digest).decode()}"
    url = f"http://127.0.0.1:{port}/{EMULATOR_ACCOUNT}/{name}?restype=container"
    urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)).close()
