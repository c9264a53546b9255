"""What one client can take from the others: connections, memory, threads, and files that are not its own."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.served import BASE, Listening, Served, create, first_version, stage

from pyspark_delta.catalog.contract import Proposal, StagingTable, TableName
from pyspark_delta.catalog.log_tail import published_path, staged_path
from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.catalog.unity.responses import commit_of_proposal, commit_to_json
from pyspark_delta.server.application import create_application
from pyspark_delta.server.served import ServerSettings

SECRET = "root:$6$secret:19000"
SECONDS = 20  # nothing here takes so long, unless the server hangs


def connected(served: Listening, sent: bytes) -> socket.socket:
    host, port = served.origin.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=SECONDS)
    connection.sendall(sent)
    return connection


def received(connection: socket.socket) -> bytes:
    """All that the server sends until it closes the connection."""
    content = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            content += chunk
    return content


def asked(served: Served) -> int:
    """The status of a request of somebody who may ask."""
    headers = {"Authorization": f"Bearer {served.token()}"}
    return httpx.get(f"{served.url}/catalogs", headers=headers, timeout=SECONDS).status_code


@pytest.fixture
def limited(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    """A server with the limits that the test gives."""
    with Served(tmp_path, settings=ServerSettings(**request.param)) as server:
        server.catalog.create_schema("main", "s")
        yield server


# ------------------------------------------------------------------------------------------------------ connections
HALF = b"GET /api/2.1/unity-catalog/catalogs HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize("limited", [{"max_connections": 50, "header_seconds": 600.0}], indirect=True)
@pytest.mark.parametrize("sent", [b"", HALF, HALF + b"X: " + b"y" * 1000])
def test_half_open_connections_do_not_keep_others_out(limited: Served, sent: bytes) -> None:
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(connected(limited, sent)) for _ in range(300)]
        assert asked(limited) == 200
        assert [received(one) for one in opened[:250]] == [b""] * 250  # those that waited longest were given up
        opened[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            opened[-1].recv(1)


@pytest.mark.parametrize("limited", [{"header_seconds": 0.2}], indirect=True)
def test_headers_that_do_not_come_end_the_connection(limited: Served) -> None:
    with connected(limited, HALF) as connection:
        assert received(connection) == b""
    assert asked(limited) == 200


@pytest.mark.parametrize("limited", [{"header_seconds": 0.2}], indirect=True)
def test_a_body_that_nobody_reads_ends_with_its_connection(limited: Served) -> None:
    """Without a token the answer comes at once, and whatever is sent after it does not keep the connection."""
    head = b"POST /api/2.1/unity-catalog/schemas HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    with connected(limited, head + b"{") as connection:
        assert received(connection).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("limited", [{"body_seconds": 0.2}], indirect=True)
def test_a_body_that_does_not_come_is_refused(limited: Served) -> None:
    head = f"POST {BASE}/schemas HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
    head += f"Authorization: Bearer {limited.token()}\r\n\r\n"
    with connected(limited, head.encode() + b"{") as connection:
        assert received(connection).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("limited", [{"request_seconds": 0.2}], indirect=True)
def test_a_request_that_never_ends_is_given_up(limited: Served) -> None:
    head = f"POST {BASE}/schemas HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
    head += f"Authorization: Bearer {limited.token()}\r\n\r\n"
    with connected(limited, head.encode()) as connection:
        assert received(connection) == b""


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 20_000,
        b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % number for number in range(3000)),
    ],
)
def test_headers_that_are_too_large_are_refused(served: Served, head: bytes) -> None:
    with connected(served, head) as connection:
        assert received(connection).startswith(b"HTTP/1.1 4")


# ----------------------------------------------------------------------------------------------------------- threads
@pytest.mark.parametrize("limited", [{"threads": 4, "wait_seconds": 0.2}], indirect=True)
def test_one_caller_cannot_hold_all_threads(limited: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage that does not answer holds the threads of the caller's requests; others are served."""
    begun, released = threading.Semaphore(0), threading.Event()
    original = type(limited.catalog).describe_table

    def slow(self: Any, name: TableName) -> Any:
        if name.name == "slow":
            begun.release()
            assert released.wait(SECONDS)
        return original(self, name)

    monkeypatch.setattr(type(limited.catalog), "describe_table", slow)
    headers = {"Authorization": f"Bearer {limited.token(principal='eve')}"}
    statuses: list[int] = []

    def ask(path: str) -> None:
        statuses.append(httpx.get(limited.url + path, headers=headers, timeout=SECONDS).status_code)

    threads = [threading.Thread(target=ask, args=("/tables/main.s.slow",)) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        assert all(begun.acquire(timeout=SECONDS) for _ in threads)
        ask("/catalogs")
        assert statuses == [429]
        assert asked(limited) == 200  # by ann
        assert httpx.get(f"{limited.url}/catalogs", timeout=SECONDS).status_code == 401
    finally:
        released.set()
        for thread in threads:
            thread.join(SECONDS)
    assert statuses == [429, 404, 404]


# --------------------------------------------------------------------------------------------- files of other people
@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that only the user of the server can read."""
    file = tmp_path / "shadow"
    file.write_text(SECRET)
    file.chmod(0o600)
    return file


def by_link(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def by_pipe(path: Path, secret: Path) -> None:
    os.mkfifo(path)


def by_linked_directory(path: Path, secret: Path) -> None:
    elsewhere = secret.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / path.name).write_text(SECRET)
    path.parent.rename(secret.parent / "moved")
    path.parent.symlink_to(elsewhere)


ATTACKS = [by_link, by_pipe, by_linked_directory]


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_first_commit_of_a_table_is_read_without_following(
    served: Served, secret: Path, attack: Callable[[Path, Path], None]
) -> None:
    token = served.token(Scope.WRITE, principal="eve")
    staging = served.client(token).create_staging_table(TableName("main", "s", f"t{uuid.uuid4().hex[:8]}"))
    path = Path(published_path(staging.location, 0))
    path.parent.mkdir(parents=True)
    attack(path, secret)
    answer = created(served, token, staging)
    assert answer.status_code in (400, 403)
    assert SECRET not in answer.text
    assert "root:" not in answer.text
    assert "regular file" in answer.text


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_staged_commit_is_looked_at_without_following(
    served: Served, secret: Path, attack: Callable[[Path, Path], None]
) -> None:
    token = served.token(Scope.WRITE, principal="eve")
    table = create(served.client(token), TableName("main", "s", f"t{uuid.uuid4().hex[:8]}"))
    proposal = stage(table, 1)
    assert proposal.file is not None
    path = Path(staged_path(table.location, proposal.file.name))
    path.unlink()
    attack(path, secret)
    answer = committed(served, token, table.name, table.table_id, proposal)
    assert answer.status_code in (400, 403)
    assert served.client(token).log_tail(table).latest_version == 0


def test_nothing_is_published_through_a_link(served: Served, secret: Path) -> None:
    """Inline commits are written by the server: not to where a link leads."""
    token = served.token(Scope.WRITE, principal="eve")
    table = create(served.client(token), TableName("main", "s", f"t{uuid.uuid4().hex[:8]}"))
    identity = str(uuid.uuid4())
    content = b'{"commitInfo":{"inCommitTimestamp":2000,"txnId":"%s"}}\n' % identity.encode()
    info = served.catalog.load_table(table.name)
    served.catalog.ratify(info, Proposal(version=1, timestamp=2000, transaction_id=identity, content=content))
    log, elsewhere = Path(published_path(table.location, 0)).parent, secret.parent / "elsewhere"
    elsewhere.mkdir()
    log.rename(secret.parent / "moved")
    log.symlink_to(elsewhere)
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{served.url}/tables/{table.name}", headers=headers, timeout=SECONDS)
    path = f"/delta/v1/catalogs/main/schemas/s/tables/{table.name.name}"
    assert answer.status_code in (200, 403)
    assert httpx.get(served.url + path, headers=headers, timeout=SECONDS).status_code == 403
    assert list(elsewhere.iterdir()) == []
    log.unlink()
    (secret.parent / "moved").rename(log)
    assert httpx.get(served.url + path, headers=headers, timeout=SECONDS).json()["latest-table-version"] == 1


def test_no_content_of_a_file_is_in_an_answer(served: Served) -> None:
    token = served.token(Scope.WRITE, principal="eve")
    staging = served.client(token).create_staging_table(TableName("main", "s", f"t{uuid.uuid4().hex[:8]}"))
    path = Path(published_path(staging.location, 0))
    path.parent.mkdir(parents=True)
    for content in (SECRET, f'{{"protocol":{{"minReaderVersion":"{SECRET}"}}}}', f'{{"metaData":{{"id":"{SECRET}"}}}}'):
        path.write_text(content)
        answer = created(served, token, staging)
        assert answer.status_code == 400
        assert "root:" not in answer.text


def created(served: Served, token: str, staging: StagingTable) -> httpx.Response:
    """The answer of the older endpoint, which reads the first commit of the table."""
    name = staging.name
    body = {
        "name": name.name,
        "catalog_name": name.catalog,
        "schema_name": name.schema,
        "table_type": "MANAGED",
        "data_source_format": "DELTA",
        "storage_location": f"file://{staging.location}",
        "columns": [],
        "properties": {"io.unitycatalog.tableId": staging.table_id},
    }
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{served.url}/tables", json=body, headers=headers, timeout=SECONDS)


def committed(served: Served, token: str, name: TableName, table_id: str, proposal: Proposal) -> httpx.Response:
    body = {
        "requirements": [{"type": "assert-table-uuid", "uuid": table_id}],
        "updates": [{"action": "add-commit", "commit": commit_to_json(commit_of_proposal(proposal), "-")}],
    }
    path = f"/delta/v1/catalogs/main/schemas/s/tables/{name.name}"
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.post(served.url + path, json=body, headers=headers, timeout=SECONDS)


def test_a_regular_table_is_served(served: Served) -> None:
    """What is refused above works with regular files, so that it is refused for the links alone."""
    token = served.token(Scope.WRITE, principal="eve")
    staging = served.client(token).create_staging_table(TableName("main", "s", f"t{uuid.uuid4().hex[:8]}"))
    first_version(staging)
    assert created(served, token, staging).status_code == 200


# ------------------------------------------------------------------------------------------------ pages in a browser
@pytest.fixture
def open_server(served: Served) -> Iterator[tuple[str, str]]:
    """A server without tokens, and its host with the port."""
    with Listening(create_application(served.catalog, None)) as server:
        yield server.origin + BASE, server.origin.removeprefix("http://")


def test_open_access_is_for_this_machine_alone(open_server: tuple[str, str]) -> None:
    url, host = open_server
    port = host.rpartition(":")[2]
    for headers, status in [
        ({}, 200),
        ({"Host": f"localhost:{port}"}, 200),
        ({"Origin": f"http://{host}"}, 200),
        ({"Host": f"evil.example:{port}"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "localhost@evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "[::1"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"}, 403),
    ]:
        answer = httpx.get(f"{url}/catalogs", headers=headers, timeout=SECONDS)
        assert answer.status_code == status, headers
        assert isinstance(answer.json(), dict)


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_that_is_not_json_is_refused(open_server: tuple[str, str], served: Served, kind: str | None) -> None:
    """A page can have a browser send such bodies to any server; JSON needs the server's consent."""
    url, _ = open_server
    headers = {} if kind is None else {"Content-Type": kind}
    before = served.state()
    body = b'{"name": "stolen", "catalog_name": "main"}'
    answer = httpx.post(f"{url}/schemas", content=body, headers=headers, timeout=SECONDS)
    assert (answer.status_code, served.state()) == (400, before)
