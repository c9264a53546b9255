"""Whoever may not do something is refused, this is logged, and nothing has changed."""

from __future__ import annotations

import io
import logging
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.served import BASE, UNUSED, Listening, Served, create, stage

from pyspark_delta.catalog.contract import Access, TableInfo, TableName
from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.catalog.unity.responses import commit_of_proposal, commit_to_json
from pyspark_delta.errors import InvalidOptionError, NotAuthorizedError
from pyspark_delta.server.access_log import OneLineFormatter
from pyspark_delta.server.application import OPERATIONS, create_application
from pyspark_delta.server.run import check_exposure, create_server
from pyspark_delta.server.served import ServerSettings

ACCESS_LOG = "pyspark_delta.server.access"


@dataclass
class Attack:
    """A server with a table `main.s.t`, and someone who sends requests to it."""

    served: Served
    table: TableInfo
    http: httpx.Client

    def send(self, method: str, path: str, token: str | None = None, **request: Any) -> httpx.Response:
        headers = request.pop("headers", {})
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if "content" in request:
            headers.setdefault("Content-Type", "application/json")
        return self.http.request(method, self.served.url + path, headers=headers, **request)

    @property
    def path(self) -> str:
        return f"/delta/v1/catalogs/main/schemas/s/tables/{self.table.name.name}"

    def commit(self, **changed: Any) -> dict[str, Any]:
        """A request to commit version 1, valid but for what is changed of the commit."""
        commit = {**commit_to_json(commit_of_proposal(stage(self.table, 1)), "-"), **changed}
        return {
            "requirements": [{"type": "assert-table-uuid", "uuid": self.table.table_id}],
            "updates": [{"action": "add-commit", "commit": commit}],
        }


@pytest.fixture
def attack(served: Served) -> Iterator[Attack]:
    table = create(served.client(), TableName("main", "s", f"t{uuid.uuid4().hex[:8]}"))
    with httpx.Client(timeout=20, verify=UNUSED) as http:
        yield Attack(served, table, http)


@pytest.fixture
def unchanged(served: Served, attack: Attack) -> Iterator[Callable[[], None]]:
    """What a test calls when all is prepared: from then on nothing may change."""
    states: list[str] = []
    yield lambda: states.append(served.state())
    assert states, "the test must say from when on nothing may change"
    assert served.state() == states[0]


# ---------------------------------------------------------------------------------------------------------- tokens
def fill(path: str, attack: Attack) -> str:
    values = {"catalog": "main", "schema": "s", "table": attack.table.name.name, "name": "main"}
    values |= {"table_id": attack.table.table_id, "full_name": str(attack.table.name)}
    return path.format(**values)


def test_without_a_valid_token_no_operation_does_anything(
    attack: Attack, unchanged: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    expired = attack.served.token(seconds=-1)
    revoked = attack.served.catalog.tokens.create("bob", [Scope.ADMIN])
    attack.served.catalog.tokens.revoke(revoked.token.token_id)
    body = attack.commit()
    unchanged()
    refused = 0
    with caplog.at_level(logging.INFO, ACCESS_LOG):
        for operation in OPERATIONS:
            for token in (None, "wrong", expired, revoked.secret):
                answer = attack.send(operation.method, fill(operation.path, attack), token, json=body)
                assert answer.status_code == 401, operation
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                refused += 1
    lines = [record for record in caplog.records if record.name == ACCESS_LOG]
    assert len(lines) == refused
    assert all(record.levelno == logging.WARNING and " 401 " in record.getMessage() for record in lines)
    assert not any(secret in caplog.text for secret in ("wrong", expired, revoked.secret))


@pytest.mark.parametrize("header", ["Basic YTpi", "Bearer", "Token x", "Bearer é".encode()])
def test_other_kinds_of_authorization_are_none(attack: Attack, unchanged: Callable[[], None], header: Any) -> None:
    unchanged()
    answer = attack.send("DELETE", attack.path, headers={"Authorization": header})
    assert answer.status_code == 401


def test_a_token_that_reads_cannot_write(
    attack: Attack, unchanged: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    token, body = attack.served.token(Scope.READ), attack.commit()
    unchanged()
    assert attack.send("GET", attack.path, token).status_code == 200
    with caplog.at_level(logging.INFO, ACCESS_LOG):
        for operation in OPERATIONS:
            if operation.scope in (Scope.WRITE, Scope.ADMIN):
                answer = attack.send(operation.method, fill(operation.path, attack), token, json=body)
                assert answer.status_code == 403, operation
    assert " 403 " in caplog.text
    assert "'write'" in caplog.text
    query = {"operation": "READ_WRITE"}
    assert attack.send("GET", f"{attack.path}/credentials", token, params=query).status_code == 403
    request = {"table_id": attack.table.table_id, "operation": "READ_WRITE"}
    assert attack.send("POST", "/temporary-table-credentials", token, json=request).status_code == 403
    reader = attack.served.client(token)
    with pytest.raises(NotAuthorizedError):
        reader.storage_options(attack.table, Access.READ_WRITE)


def test_a_token_that_writes_cannot_change_schemas(attack: Attack, unchanged: Callable[[], None]) -> None:
    token = attack.served.token(Scope.WRITE)
    location = f"file://{attack.served.folder}/tables"
    unchanged()
    for method, path, body in [
        ("POST", "/catalogs", {"name": "mine"}),
        ("DELETE", "/catalogs/main", None),
        ("POST", "/schemas", {"name": "mine", "catalog_name": "main"}),
        ("DELETE", "/schemas/main.other", None),
        (
            "POST",
            "/tables",
            {
                "name": "x",
                "catalog_name": "main",
                "schema_name": "s",
                "table_type": "EXTERNAL",
                "data_source_format": "DELTA",
                "storage_location": location,
            },
        ),
    ]:
        assert attack.send(method, path, token, json=body).status_code == 403, path


def test_the_tables_of_another_tenant_are_out_of_reach(attack: Attack, unchanged: Callable[[], None]) -> None:
    token = attack.served.token(schemas=[("main", "other")], principal="eve")
    body, name = attack.commit(), attack.table.name
    address = {"table_id": attack.table.table_id, "table_uri": f"file://{attack.table.location}"}
    staging = attack.served.client().create_staging_table(TableName("main", "s", "new"))
    unchanged()
    for operation in OPERATIONS:
        if "{table}" in operation.path or "{full_name}" in operation.path:
            answer = attack.send(
                operation.method, fill(operation.path, attack), token, json=body, params={"operation": "READ"}
            )
            assert answer.status_code in (403, 400 if operation.path == "/schemas/{full_name}" else 403), operation
    nobody = attack.path.replace(name.name, "nobody")
    assert attack.send("GET", nobody, token).status_code == 403  # the same as for a table that is there
    for method, path, request in [
        ("GET", "/delta/preview/commits", {**address, "start_version": 0}),
        ("POST", "/delta/preview/commits", {**address, "latest_backfilled_version": 0}),
        ("POST", "/temporary-table-credentials", {"table_id": attack.table.table_id, "operation": "READ"}),
        ("GET", f"/delta/v1/staging-tables/{staging.table_id}/credentials", None),
    ]:
        assert attack.send(method, path, token, json=request).status_code == 404, path
    query = {"catalog_name": "main", "schema_name": "s"}
    assert attack.send("GET", "/tables", token, params=query).status_code == 403
    listed = attack.send("GET", "/schemas", token, params={"catalog_name": "main"}).json()
    assert [schema["name"] for schema in listed["schemas"]] == ["other"]
    assert attack.send("POST", "/catalogs", token, json={"name": "mine"}).status_code == 403


def test_a_staging_table_is_its_makers_alone(attack: Attack, unchanged: Callable[[], None]) -> None:
    staging = attack.served.client().create_staging_table(TableName("main", "s", "new"))
    path = f"/delta/v1/staging-tables/{staging.table_id}/credentials"
    mine, others = attack.served.token(), attack.served.token(principal="eve")
    unchanged()
    assert attack.send("GET", path, mine).status_code == 200
    assert attack.send("GET", path, others).status_code == 404


# --------------------------------------------------------------------------------------------------------- contents
@pytest.mark.parametrize(
    "name",
    [
        "../../../../etc/passwd",
        "../00000000000000000001.json",
        "/etc/passwd",
        "a/00000000000000000001.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
        "..\\00000000000000000001.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
        "00000000000000000002.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",  # an attempt at another version
        "00000000000000000001.json",
        "00000000000000000001.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json\n",
        "00000000000000000001.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json\0",
        "",
        ".",
        "s3://bucket/x",
    ],
)
def test_c446_file_names_that_lead_elsewhere_are_refused(
    attack: Attack, unchanged: Callable[[], None], name: str
) -> None:
    body, token = attack.commit(**{"file-name": name}), attack.served.token()
    unchanged()
    answer = attack.send("POST", attack.path, token, json=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "InvalidParameterValueException")


def test_a_staged_file_that_is_not_there_is_refused(attack: Attack, unchanged: Callable[[], None]) -> None:
    name = f"{1:020d}.{uuid.uuid4()}.json"
    body, token = attack.commit(**{"file-name": name}), attack.served.token()
    unchanged()
    assert attack.send("POST", attack.path, token, json=body).status_code == 400


def test_bodies_that_are_too_large_are_refused(attack: Attack, unchanged: Callable[[], None]) -> None:
    """Whether the size is said beforehand, or the body comes in pieces."""
    token, limit = attack.served.token(), attack.served.settings.max_body_bytes
    unchanged()
    assert attack.send("POST", attack.path, token, content=b" " * (limit + 1)).status_code == 413
    pieces = (b" " * 100_000 for _ in range(limit // 100_000 + 2))
    assert attack.send("POST", attack.path, token, content=pieces).status_code == 413


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"1",
        b'"x"',
        b"[" * 100_000,
        b'{"requirements":' + b"[" * 900 + b"]" * 900 + b"}",
        b"\xff\xfe",
        b'{"requirements": NaN}',
        b'{"requirements": null, "updates": null}',
        b'{"requirements": [1], "updates": [[]]}',
        b'{"requirements": [{"type": []}], "updates": [{"action": {}}]}',
    ],
)
def test_bodies_that_are_no_request_are_refused(attack: Attack, unchanged: Callable[[], None], content: bytes) -> None:
    token = attack.served.token()
    unchanged()
    for operation in OPERATIONS:
        if operation.takes is not None:
            answer = attack.send(operation.method, fill(operation.path, attack), token, content=content)
            assert answer.status_code == 400, (operation, answer.text)


@pytest.mark.parametrize("value", [b"[" * 400 + b"]" * 400, b"1" + b"0" * 30], ids=["deep", "long"])
def test_metadata_of_columns_that_cannot_be_stored_are_refused(
    attack: Attack, unchanged: Callable[[], None], value: bytes
) -> None:
    token, location = attack.served.token(), str(attack.served.folder / "elsewhere").encode()
    column = b'{"name":"a","type":"long","nullable":true,"metadata":{"x":' + value + b"}}"
    new = (
        b'{"name":"n","location":"file://%s","table-type":"EXTERNAL","columns":{"type":"struct","fields":[%s]},'
        b'"protocol":{"min-reader-version":1,"min-writer-version":2},"last-commit-timestamp-ms":1}' % (location, column)
    )
    legacy = {"catalog_name": "main", "schema_name": "s", "name": "n", "table_type": "EXTERNAL"}
    columns = [{"name": "a", "type_json": column.decode()}]
    unchanged()
    answer = attack.send("POST", "/delta/v1/catalogs/main/schemas/s/tables", token, content=new)
    assert answer.status_code == 400, answer.text
    if value.startswith(b"["):  # the JSON in `type_json` is read with long numbers as floating-point ones
        place = {"data_source_format": "DELTA", "storage_location": f"file://{location.decode()}"}
        answer = attack.send("POST", "/tables", token, json={**legacy, **place, "columns": columns})
        assert answer.status_code == 400, answer.text


@pytest.mark.parametrize(
    "name",
    [
        "x'OR'1'='1",
        "x';DROP/**/TABLE/**/dl_table;--",
        'x"--',
        "x');--",
        "%27%20OR%201=1",
        "..",
        "a\x00b",
        "a b",
        "a\nb",
        "a.b",
        "x" * 300,
        "é" * 200,
        "‮t",
    ],
)
def test_sql_and_other_things_in_names_are_only_names(attack: Attack, unchanged: Callable[[], None], name: str) -> None:
    token = attack.served.token()
    unchanged()
    quoted = "".join(f"%{byte:02X}" for byte in name.encode())
    schema = "/delta/v1/catalogs/main/schemas"
    for method, path, body in [
        ("GET", f"{schema}/s/tables/{quoted}", None),
        ("DELETE", f"{schema}/s/tables/{quoted}", None),
        ("POST", f"{schema}/{quoted}/staging-tables", {"name": "x"}),
        ("GET", f"/tables/main.s.{quoted}", None),
        ("DELETE", f"/schemas/main.{quoted}", None),
        ("POST", "/staging-tables", {"name": "x", "catalog_name": "main", "schema_name": name}),
    ]:
        assert attack.send(method, path, token, json=body).status_code in (400, 404, 405), path
    for query in ({"catalog_name": name}, {"catalog_name": name, "page_token": name}):
        assert attack.send("GET", "/schemas", token, params=query).status_code in (400, 404)
    assert attack.send("GET", "/tables", token, params={"catalog_name": "main", "schema_name": name}).status_code in (
        400,
        404,
    )


def test_a_name_cannot_write_lines_into_the_log(attack: Attack, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, ACCESS_LOG):
        attack.send("GET", "/tables/a%0A127.0.0.1%20root%20GET%20/%20200", attack.served.token())
    (line,) = [record.getMessage() for record in caplog.records if record.name == ACCESS_LOG]
    assert "\n" not in line
    assert "a%0A127.0.0.1%20root" in line


def test_who_asked_for_what_is_in_the_log_without_queries(attack: Attack, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, ACCESS_LOG):
        token = attack.served.token()
        attack.send("GET", "/schemas", token, params={"catalog_name": "main", "access_token": "hidden"})
    (line,) = [record.getMessage() for record in caplog.records if record.name == ACCESS_LOG]
    assert line.startswith("127.0.0.1 ann GET /api/2.1/unity-catalog/schemas 200 ")
    assert "hidden" not in line
    assert token not in line


def test_what_fails_inside_is_not_told(
    attack: Attack, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the password is 1234")

    monkeypatch.setattr(type(attack.served.catalog), "describe_table", fail)
    answer = attack.send("GET", attack.path, attack.served.token())
    assert answer.status_code == 500
    assert "1234" not in answer.text
    assert "1234" in caplog.text


# --------------------------------------------------------------------------------------------------------- exposure
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1"])
def test_this_machine_needs_no_tls(host: str) -> None:
    check_exposure(host, None, None, open_access=True, behind_proxy=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "catalog.example.com", ""])
def test_others_need_tls_and_tokens(host: str) -> None:
    with pytest.raises(InvalidOptionError, match="clear text"):
        check_exposure(host, None, None, open_access=False, behind_proxy=False)
    with pytest.raises(InvalidOptionError, match="this machine only"):
        check_exposure(host, "c", "k", open_access=True, behind_proxy=False)
    check_exposure(host, "c", "k", open_access=False, behind_proxy=False)
    check_exposure(host, None, None, open_access=False, behind_proxy=True)


def test_tls_needs_both_files(tmp_path: Any) -> None:
    with pytest.raises(InvalidOptionError, match="both"):
        create_server(f"sqlite:///{tmp_path / 'c.db'}", certificate="c.pem")


def test_open_access_asks_for_no_token(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'c.db'}"
    for open_access, status in ((True, 200), (False, 401)):
        with Listening(create_server(url, open_access=open_access).config.app) as server:
            assert httpx.get(f"{server.origin}{BASE}/catalogs").status_code == status


KEYS = {"AWS_ACCESS_KEY_ID": "permanent-key", "aws_secret_access_key": "permanent-secret"}


@pytest.mark.parametrize("vends", [True, False])
def test_the_servers_own_keys_are_never_given_to_a_reader_of_one_schema(tmp_path: Any, vends: bool) -> None:
    """They do not end, and open every table of every schema for writing."""
    with Served(tmp_path) as served:
        served.catalog.create_schema("main", "s")
        table = create(served.client(), TableName("main", "s", "t"))
        with sqlite3.connect(served.file) as connection:
            connection.execute("UPDATE dl_table SET location = 's3://bucket/t'")
        connection.close()
        catalog = type(served.catalog).connect(f"sqlite:///{served.file}", storage_options=KEYS)
        token = served.token(Scope.READ, schemas=[("main", "s")])
        application = create_application(catalog, catalog.tokens, ServerSettings(vend_credentials=vends))
        with Listening(application) as server, httpx.Client(base_url=server.origin + BASE, verify=UNUSED) as http:
            http.headers["Authorization"] = f"Bearer {token}"
            path = "/delta/v1/catalogs/main/schemas/s/tables/t/credentials"
            newer = http.get(path, params={"operation": "READ"})
            request = {"table_id": table.table_id, "operation": "READ"}
            older = http.post("/temporary-table-credentials", json=request)
        catalog.close()
    assert [newer.status_code, older.status_code] == [403 if vends else 200] * 2
    assert "permanent" not in newer.text + older.text
    if vends:
        assert "do not expire and are not limited to one table" in newer.json()["error"]["message"]
    else:
        assert newer.json()["storage-credentials"][0]["config"] == {}


def test_a_catalog_in_a_database_has_no_credentials_to_vend(tmp_path: Any) -> None:
    with pytest.raises(InvalidOptionError, match="vend_credentials"):
        create_server(f"sqlite:///{tmp_path / 'c.db'}", settings=ServerSettings(vend_credentials=True))
    assert not (tmp_path / "c.db").exists()


def test_a_database_is_its_owners_alone(tmp_path: Any) -> None:
    before = os.umask(0)
    try:
        with Served(tmp_path) as served:
            served.catalog.create_schema("main", "s")
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("catalog.db*")}
    finally:
        os.umask(before)
    assert set(modes) >= {"catalog.db", "catalog.db-wal"}
    assert set(modes.values()) == {0o600}


def test_what_is_logged_stays_in_its_record(tmp_path: Any) -> None:
    """Names, paths and errors may hold line breaks, terminal sequences and marks that turn the direction of writing."""
    forged = "x\n2026-01-01 INFO ann DELETE /\r\x1b]52;c;\x07\u202e\u2028\x85y"
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(OneLineFormatter("%(levelname)s %(message)s"))
    logger = logging.Logger("forged")
    logger.addHandler(handler)
    logger.error("failed: %s", forged)
    try:
        raise RuntimeError(forged)
    except RuntimeError:
        logger.exception("failed %s", forged)
    lines = stream.getvalue().split("\n")
    assert [line[:4] for line in lines if line and not line.startswith("  | ")] == ["ERRO", "ERRO"]
    assert all(line.isprintable() for line in lines)
    assert lines[0].startswith("ERROR failed: x\\n2026-01-01 INFO ann")
