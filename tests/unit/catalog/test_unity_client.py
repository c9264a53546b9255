"""What the client of Unity Catalog's API makes of answers: errors, tokens, tails, credentials; over real HTTP."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from tests.served import Listening

from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol
from pyspark_delta.catalog.contract import (
    Access,
    Capability,
    CommitKind,
    LogTail,
    MetadataChange,
    NewTable,
    Proposal,
    RatifiedCommit,
    StagedFile,
    StagingTable,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.unity import UnityCatalog
from pyspark_delta.catalog.unity.connection import Connection
from pyspark_delta.catalog.unity.legacy_api import LegacyApi
from pyspark_delta.catalog.unity.responses import tail_of
from pyspark_delta.errors import (
    CatalogError,
    CatalogNameExistsError,
    CatalogNameNotFoundError,
    CatalogUnavailableError,
    DeltaWarning,
    InvalidProposalError,
    NotAuthorizedError,
    NotDeltaTableError,
    RatificationConflictError,
    StaleMetadataError,
    TableReplacedError,
    TooManyUnpublishedError,
)
from pyspark_delta.storage.credentials import Credentials

NAME = TableName("main", "s", "t")
TABLE = "/delta/v1/catalogs/main/schemas/s/tables/t"
Answer = tuple[int, Any]


class Script:
    """A server that answers as a test says: `answers[method, path]` is one answer, or a list of them in turn."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Answer | list[Answer]] = {}
        self.requests: list[tuple[str, str, Any, str]] = []
        self.url = ""
        self._lock = threading.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (message := await receive()).get("more_body") or message.get("body"):
            body += message["body"]
            if not message.get("more_body"):
                break
        path = scope["path"].removeprefix("/api/2.1/unity-catalog")
        sent = {key.decode(): value.decode() for key, value in scope["headers"]}
        with self._lock:
            self.requests.append(
                (scope["method"], path, orjson.loads(body) if body else None, sent.get("authorization", ""))
            )
            given = self.answers.get((scope["method"], path), (404, None))
            status, value = given.pop(0) if isinstance(given, list) else given
        content = b"" if value is None else value if isinstance(value, bytes) else orjson.dumps(value)
        kind = b"text/plain; charset=utf-8" if isinstance(value, bytes) else b"application/json"
        headers = [(b"retry-after", b"0"), (b"content-type", kind)]
        start = {"type": "http.response.start", "status": status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": content})

    def connect(self, token: str | Callable[[], str] | None = "secret", timeout: float = 10) -> UnityCatalog:
        """A client; the server has the Delta API."""
        config = {"endpoints": [], "protocol-version": "1.0"}
        self.answers["GET", "/delta/v1/config"] = (200, config)
        return UnityCatalog.connect(self.url, catalog="main", token=token, timeout=timeout)

    def sent(self, method: str, path: str) -> list[Any]:
        """The bodies of requests."""
        return [body for found, where, body, _ in self.requests if (found, where) == (method, path)]


@pytest.fixture(scope="module")
def listening() -> Iterator[tuple[Script, str]]:
    script = Script()
    with Listening(script) as server:
        yield script, server.origin


@pytest.fixture
def script(listening: tuple[Script, str]) -> Script:
    script, origin = listening
    script.answers.clear()
    script.requests.clear()
    script.url = origin
    return script


def failure(kind: str, status: int) -> Answer:
    return status, {"error": {"type": kind, "code": status, "message": "so it is"}}


def loaded(versions: list[int] | None = None, latest: int | None = 3, **metadata: Any) -> Answer:
    commits = [
        {
            "version": version,
            "timestamp": 1000 + version,
            "file-name": file_name(version),
            "file-size": 10,
            "file-modification-timestamp": 5,
        }
        for version in (versions if versions is not None else [3, 2])
    ]
    table = {
        "etag": "etag-1",
        "table-type": "MANAGED",
        "table-uuid": "id-1",
        "location": "file:///tables/t",
        "columns": {"type": "struct", "fields": []},
        "properties": {"delta.feature.catalogManaged": "supported", "a": "1", "b": "2"},
        **metadata,
    }
    return 200, {
        "metadata": table,
        "commits": commits,
        **({"latest-table-version": latest} if latest is not None else {}),
    }


def legacy_table(**changed: Any) -> Answer:
    """A table as the older endpoints describe it."""
    return 200, {
        "table_id": "id-1",
        "table_type": "MANAGED",
        "data_source_format": "DELTA",
        "storage_location": "file:///tables/t",
        "properties": {"delta.feature.catalogManaged": "supported"},
        **changed,
    }


def file_name(version: int) -> str:
    return f"{version:020d}.00000000-0000-0000-0000-{version:012d}.json"


def proposal(version: int, **more: Any) -> Proposal:
    return Proposal(
        version=version,
        timestamp=1000 + version,
        transaction_id="x",
        file=StagedFile(f"{version:020d}.aaaaaaaa-0000-0000-0000-000000000000.json", 10, 5),
        **more,
    )


def table_of(script: Script, catalog: UnityCatalog, answer: Answer | None = None) -> TableInfo:
    script.answers["GET", TABLE] = answer or loaded()
    return catalog.load_table(NAME)


# --------------------------------------------------------------------------------------------------------- loading
def test_a_table_is_loaded_with_its_tail_in_order(script: Script) -> None:
    table = table_of(script, script.connect())
    assert (table.table_id, table.location, table.etag) == ("id-1", "/tables/t", "etag-1")
    assert table.tail is not None
    assert [commit.version for commit in table.tail.commits] == [2, 3]
    assert (table.tail.latest_version, table.tail.published_version) == (3, 1)


def test_a_table_that_is_not_managed_has_no_tail(script: Script) -> None:
    assert table_of(script, script.connect(), loaded(properties={})).tail is None


@pytest.mark.parametrize(
    ("versions", "latest", "expected"), [([], None, 0), ([], 7, 7), ([4, 3], None, 4), ([], -1, 0)]
)
def test_the_latest_version_may_be_left_out(
    script: Script, versions: list[int], latest: int | None, expected: int
) -> None:
    tail = table_of(script, script.connect(), loaded(versions, latest)).tail
    assert tail is not None
    assert tail.latest_version == expected


@pytest.mark.parametrize(("versions", "latest"), [([3, 1], 3), ([2, 1], 3), ([3, 3, 2], 3), ([4, 3], 3)])
def test_c469_a_tail_with_a_gap_is_an_error(script: Script, versions: list[int], latest: int) -> None:
    with pytest.raises(CatalogError, match="without a gap"):
        table_of(script, script.connect(), loaded(versions, latest))


@pytest.mark.parametrize("name", ["../x.json", "", "..", "a/b.json", None, 3])
def test_a_file_name_that_leads_elsewhere_is_no_answer(script: Script, name: Any) -> None:
    status, answer = loaded([3])
    answer["commits"][0]["file-name"] = name
    with pytest.raises(CatalogError, match="not the requested commit"):
        table_of(script, script.connect(), (status, answer))


@pytest.mark.parametrize("answer", [(200, {}), (200, []), (200, {"metadata": {}}), (200, None)])
def test_an_answer_that_is_none_is_an_error(script: Script, answer: Answer) -> None:
    with pytest.raises(CatalogError, match="not the requested table"):
        table_of(script, script.connect(), answer)


def test_an_answer_that_is_no_json_comes_from_something_else(script: Script) -> None:
    with pytest.raises(CatalogUnavailableError, match="not JSON"):
        table_of(script, script.connect(), (200, b"<html>"))


def test_the_order_of_commits_does_not_matter() -> None:
    commits = [RatifiedCommit(version=v, kind=CommitKind.STAGED, timestamp=v, file_name="x") for v in (5, 4, 6)]
    assert [commit.version for commit in tail_of(commits, 6, "t").commits] == [4, 5, 6]


# ---------------------------------------------------------------------------------------------------------- errors
ERRORS: list[tuple[Answer, type[CatalogError]]] = [
    (failure("BadRequestException", 400), InvalidProposalError),
    (failure("InvalidParameterValueException", 400), InvalidProposalError),
    (failure("NotAuthorizedException", 401), NotAuthorizedError),
    (failure("PermissionDeniedException", 403), NotAuthorizedError),
    (failure("NoSuchCatalogException", 404), CatalogNameNotFoundError),
    (failure("NoSuchSchemaException", 404), CatalogNameNotFoundError),
    (failure("NoSuchTableException", 404), CatalogNameNotFoundError),
    (failure("AlreadyExistsException", 409), CatalogNameExistsError),
    (failure("ResourceExhaustedException", 429), TooManyUnpublishedError),
    (failure("TooManyRequestsException", 429), CatalogUnavailableError),
    (failure("CommitStateUnknownException", 500), CatalogUnavailableError),
    (failure("InternalServerErrorException", 500), CatalogUnavailableError),
    (failure("NotImplementedException", 501), InvalidProposalError),
    ((400, {"error_code": "TABLE_ALREADY_EXISTS", "message": "x"}), CatalogNameExistsError),
    ((404, {"error_code": "SCHEMA_NOT_FOUND", "message": "x"}), CatalogNameNotFoundError),
    ((403, {"error_code": "PERMISSION_DENIED", "message": "x"}), NotAuthorizedError),
    ((503, None), CatalogUnavailableError),
    ((502, b"<html>bad gateway</html>"), CatalogUnavailableError),
    ((302, None), InvalidProposalError),
]


@pytest.mark.parametrize(
    ("answer", "expected"), ERRORS, ids=[f"{a[0]}-{e.__name__}-{i}" for i, (a, e) in enumerate(ERRORS)]
)
def test_every_refusal_is_an_error_of_its_own(script: Script, answer: Answer, expected: type[CatalogError]) -> None:
    catalog = script.connect()
    script.answers["POST", f"{TABLE}/rename"] = answer
    with pytest.raises(CatalogError) as caught:
        catalog.rename_table(NAME, TableName("main", "s", "u"))
    assert type(caught.value) is expected


def test_a_busy_server_is_asked_again(script: Script) -> None:
    catalog = script.connect()
    script.answers["POST", f"{TABLE}/rename"] = [failure("TooManyRequestsException", 429), (204, None)]
    catalog.rename_table(NAME, TableName("main", "s", "u"))
    assert len(script.sent("POST", f"{TABLE}/rename")) == 2


def test_a_change_whose_outcome_is_unknown_is_not_sent_again(script: Script) -> None:
    catalog = script.connect()
    table = table_of(script, catalog)
    script.answers["POST", TABLE] = [failure("InternalServerErrorException", 500)]
    with pytest.raises(CatalogUnavailableError):
        catalog.ratify(table, proposal(4))
    assert len(script.sent("POST", TABLE)) == 1


def test_nobody_at_the_address_is_unavailable() -> None:
    with pytest.raises(CatalogUnavailableError, match="cannot be reached"):
        UnityCatalog.connect("http://127.0.0.1:9", catalog="main")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_token_may_cross_this_machine_in_clear_text(host: str, recwarn: pytest.WarningsRecorder) -> None:
    Connection(f"http://{host}:8080", "secret")
    Connection("https://catalog.example.com", "secret")
    Connection("http://catalog.example.com")
    assert not recwarn.list


@pytest.mark.parametrize("token", ["very-secret", lambda: "very-secret"])
def test_a_token_over_plain_http_to_another_machine_is_a_warning(token: Any) -> None:
    with pytest.warns(DeltaWarning, match="catalog.example.com.*clear text.*https") as caught:
        Connection("http://catalog.example.com:8080", token)
    assert "very-secret" not in str(caught[0].message)


@pytest.mark.parametrize("url", ["ftp://x", "http:///a", "http://user:pass@host/", "https://host/?token=x"])
def test_urls_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(CatalogError):
        UnityCatalog.connect(url, catalog="main")


def test_certificates_are_verified() -> None:
    """The client of a connection is made without a word on TLS: httpx verifies unless told otherwise."""
    connection = Connection("https://host")
    context = connection._client()._transport._pool._ssl_context  # type: ignore[attr-defined]
    assert (context.verify_mode.name, context.check_hostname) == ("CERT_REQUIRED", True)


# ---------------------------------------------------------------------------------------------------------- tokens
def test_a_token_is_fetched_again_once_when_it_is_refused(script: Script) -> None:
    tokens = iter(["old", "new", "newer"])
    catalog = script.connect(lambda: next(tokens))
    script.answers["GET", TABLE] = [failure("NotAuthorizedException", 401), loaded()]
    assert catalog.load_table(NAME).table_id == "id-1"
    assert [token for method, path, _, token in script.requests if path == TABLE] == ["Bearer old", "Bearer new"]
    script.answers["GET", TABLE] = failure("NotAuthorizedException", 401)
    with pytest.raises(NotAuthorizedError):
        catalog.load_table(NAME)
    assert len([path for _, path, _, _ in script.requests if path == TABLE]) == 4


def test_errors_do_not_hold_the_token(script: Script) -> None:
    catalog = script.connect("very-secret")
    script.answers["GET", TABLE] = failure("NotAuthorizedException", 401)
    with pytest.raises(NotAuthorizedError) as caught:
        catalog.load_table(NAME)
    assert "very-secret" not in f"{caught.value} {caught.value.facts} {catalog!r}"


# --------------------------------------------------------------------------------------------------------- commits
def test_a_conflict_comes_with_the_tail(script: Script) -> None:
    catalog = script.connect()
    table = table_of(script, catalog)
    script.answers["POST", TABLE] = failure("CommitVersionConflictException", 409)
    with pytest.raises(RatificationConflictError) as caught:
        catalog.ratify(table, proposal(3))
    assert caught.value.tail.latest_version == 3


def test_c469_a_conflict_with_oneself_is_a_replay(script: Script) -> None:
    """Servers up to 0.5.1 answer a commit that is sent again with a conflict."""
    catalog = script.connect()
    table = table_of(script, catalog)
    mine = proposal(3)
    status, answer = loaded()
    assert mine.file is not None
    answer["commits"][0]["file-name"] = mine.file.name
    script.answers["GET", TABLE] = (status, answer)
    script.answers["POST", TABLE] = failure("CommitVersionConflictException", 409)
    assert catalog.ratify(table, mine).replayed


def test_another_table_under_the_name_is_an_error(script: Script) -> None:
    catalog = script.connect()
    table = table_of(script, catalog)
    script.answers["GET", TABLE] = loaded(**{"table-uuid": "id-2"})
    script.answers["GET", "/tables"] = (200, {"tables": [{"name": "t", "table_id": "id-2"}]})
    script.answers["POST", TABLE] = failure("UpdateRequirementConflictException", 409)
    with pytest.raises(TableReplacedError):
        catalog.ratify(table, proposal(4))
    with pytest.raises(TableReplacedError):
        catalog.log_tail(table)


def test_a_renamed_table_is_found_by_its_id(script: Script) -> None:
    catalog = script.connect()
    table = table_of(script, catalog)
    moved = TABLE[:-1] + "moved"
    script.answers["GET", TABLE] = failure("NoSuchTableException", 404)
    script.answers["POST", TABLE] = failure("NoSuchTableException", 404)
    script.answers["GET", "/tables"] = (200, {"tables": [{"name": "moved", "table_id": "id-1"}]})
    script.answers["GET", moved] = loaded()
    script.answers["POST", moved] = loaded()
    assert catalog.log_tail(table).latest_version == 3
    assert catalog.ratify(table, proposal(4)).commit.version == 4


def test_changed_metadata_are_an_error_and_a_busy_row_is_not_known(script: Script) -> None:
    catalog = script.connect()
    table = table_of(script, catalog)
    script.answers["POST", TABLE] = failure("UpdateRequirementConflictException", 409)
    with pytest.raises(StaleMetadataError):
        catalog.ratify(table, proposal(4, expected_etag="etag-0"))
    with pytest.raises(CatalogUnavailableError):
        catalog.ratify(table, proposal(4, expected_etag="etag-1"))


def test_a_change_is_mirrored_with_the_properties_that_go(script: Script) -> None:
    catalog = script.connect()
    table = table_of(script, catalog)
    script.answers["POST", TABLE] = loaded()
    change = MetadataChange(
        protocol=Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=frozenset({"catalogManaged"}),
            writer_features=frozenset({"inCommitTimestamp", "catalogManaged"}),
        ),
        metadata=Metadata(
            id="m",
            schema_string='{"type":"struct","fields":[{"name":"a","type":{"type":"array","elementType":"long",'
            '"containsNull":true},"nullable":true,"metadata":{}}]}',
            partition_columns=("p",),
            configuration={"a": "1", "c": "3", "delta.feature.catalogManaged": "supported"},
            description="words",
        ),
        domains=(
            DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[["a"]],"domainName":"x"}'),
            DomainMetadata(domain="delta.rowTracking", configuration="", removed=True),
            DomainMetadata(domain="mine", configuration="{}"),
        ),
    )
    catalog.ratify(table, proposal(4, change=change, published_version=3, expected_etag="etag-1"))
    (request,) = script.sent("POST", TABLE)
    assert request["requirements"] == [
        {"type": "assert-table-uuid", "uuid": "id-1"},
        {"type": "assert-etag", "etag": "etag-1"},
    ]
    updates = {update.pop("action"): update for update in request["updates"]}
    assert updates.pop("add-commit")["commit"]["version"] == 4
    field = {"name": "a", "type": {"type": "array", "element-type": "long", "contains-null": True}}
    assert updates == {
        "set-latest-backfilled-version": {"latest-published-version": 3},
        "set-protocol": {
            "protocol": {
                "min-reader-version": 3,
                "min-writer-version": 7,
                "reader-features": ["catalogManaged"],
                "writer-features": ["catalogManaged", "inCommitTimestamp"],
            }
        },
        "set-properties": {"updates": {"c": "3"}},
        "remove-properties": {"removals": ["b"]},
        "set-columns": {"columns": {"type": "struct", "fields": [{**field, "nullable": True, "metadata": {}}]}},
        "set-partition-columns": {"partition-columns": ["p"]},
        "set-table-comment": {"comment": "words"},
        "set-domain-metadata": {"updates": {"delta.clustering": {"clusteringColumns": [["a"]]}}},
        "remove-domain-metadata": {"domains": ["delta.rowTracking"]},
    }


# ----------------------------------------------------------------------------------------------------- credentials
def test_the_credentials_of_the_longest_prefix_become_storage_options(script: Script) -> None:
    connected = script.connect()
    table = table_of(script, connected, loaded(location="s3://bucket/tables/t"))
    keys = {"s3.access-key-id": "k", "s3.secret-access-key": "s", "s3.session-token": None}
    script.answers["GET", f"{TABLE}/credentials"] = (
        200,
        {
            "storage-credentials": [
                {"prefix": "s3://bucket/", "operation": "READ", "config": {"s3.access-key-id": "wide"}},
                {
                    "prefix": "s3a://bucket/tables/t",
                    "operation": "READ",
                    "config": keys,
                    "expiration-time-ms": 1_700_000_000_000,
                },
                {"prefix": "s3://bucket/tables/two", "operation": "READ", "config": {"s3.access-key-id": "no"}},
            ]
        },
    )
    options = connected.storage_options(table, Access.READ)
    assert options == {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
    assert connected.credentials(table, Access.READ) == Credentials(options, 1_700_000_000_000)


def test_new_tables_are_written_with_ones_own_credentials_where_the_server_gives_none(script: Script) -> None:
    catalog = script.connect()
    staging = StagingTable(table_id="id-2", name=NAME, location="s3://bucket/tables/new")
    assert catalog.credentials(staging, Access.READ_WRITE) == Credentials()
    answer = {"storage-credentials": [{"prefix": staging.location, "config": {"s3.access-key-id": "k"}}]}
    script.answers["GET", "/delta/v1/staging-tables/id-2/credentials"] = (200, answer)
    assert catalog.credentials(staging, Access.READ_WRITE) == Credentials({"aws_access_key_id": "k"})


def test_older_servers_say_when_credentials_end(script: Script) -> None:
    connection = Connection(script.url)
    catalog = UnityCatalog(connection, LegacyApi(connection))
    table = TableInfo(table_id="id-1", name=NAME, location="s3://bucket/tables/t")
    for told, expires_at in ((1_700_000_000_000, 1_700_000_000_000), (0, None), (None, None)):
        answer = {"aws_temp_credentials": {"access_key_id": "k"}, "expiration_time": told}
        script.answers["POST", "/temporary-table-credentials"] = (200, answer)
        assert catalog.credentials(table, Access.READ) == Credentials({"aws_access_key_id": "k"}, expires_at)


def test_local_tables_have_no_credentials(script: Script) -> None:
    catalog = script.connect()
    table = table_of(script, catalog)
    answer = {"storage-credentials": [{"prefix": "file:///tables/t", "operation": "READ", "config": {}}]}
    script.answers["GET", f"{TABLE}/credentials"] = (200, answer)
    assert catalog.storage_options(table, Access.READ) == {}


# ------------------------------------------------------------------------------------ answers of released servers
DONE: Answer = (200, b"200 OK")
"""What Unity Catalog answers where a request succeeds and there is nothing to say (0.4.1 to 0.6.0)."""


def test_success_in_plain_text_is_a_success(script: Script) -> None:
    catalog = script.connect()
    script.answers["DELETE", "/schemas/main.s"] = DONE
    catalog.drop_schema("main", "s")
    connection = Connection(script.url)
    older = UnityCatalog(connection, LegacyApi(connection))
    script.answers["POST", "/delta/preview/commits"] = DONE
    script.answers["DELETE", "/tables/main.s.t"] = DONE
    table = TableInfo(table_id="id-1", name=NAME, location="/tables/t", tail=LogTail(3))
    assert not older.ratify(table, proposal(4)).replayed
    older.report_published(table, 4)
    older.drop_table(NAME)
    assert len(script.sent("POST", "/delta/preview/commits")) == 2


@pytest.mark.parametrize("content", [b"<html>Sign in</html>", b"204 No Content", b"OK"])
def test_other_text_is_no_success(script: Script, content: bytes) -> None:
    """Such as the page of a proxy that wants a login."""
    catalog = script.connect()
    script.answers["DELETE", "/schemas/main.s"] = (200, content)
    with pytest.raises(CatalogUnavailableError, match="not JSON"):
        catalog.drop_schema("main", "s")


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"data_source_format": "PARQUET"}, "PARQUET"),
        ({"data_source_format": None}, "no format"),
        ({"table_type": "VIEW"}, "VIEW"),
        ({"table_type": "METRIC_VIEW", "data_source_format": None}, "METRIC_VIEW"),
    ],
)
@pytest.mark.parametrize("refused", [None, failure("UnsupportedTableFormatException", 400)])
def test_what_is_no_delta_table_is_refused_by_name(
    script: Script, changed: dict[str, Any], found: str, refused: Answer | None
) -> None:
    """By servers with the Delta API, which refuse to describe it, and by older ones, which describe everything."""
    connection = Connection(script.url)
    catalog = UnityCatalog(connection, LegacyApi(connection)) if refused is None else script.connect()
    script.answers["GET", TABLE] = refused or (404, None)
    script.answers["GET", "/tables/main.s.t"] = legacy_table(**changed)
    with pytest.raises(NotDeltaTableError, match=f"main.s.t is not a Delta table.*{found}"):
        catalog.load_table(NAME)


def test_a_view_at_which_the_server_fails_is_refused_by_name(script: Script) -> None:
    """The Delta API answers 500 for a view whose format is DELTA."""
    catalog = script.connect()
    script.answers["GET", TABLE] = failure("InternalServerErrorException", 500)
    script.answers["GET", "/tables/main.s.t"] = legacy_table(table_type="VIEW")
    with pytest.raises(NotDeltaTableError, match="VIEW"):
        catalog.load_table(NAME)
    script.answers["GET", "/tables/main.s.t"] = legacy_table()
    with pytest.raises(CatalogUnavailableError) as caught:
        catalog.load_table(NAME)
    assert "not known whether" not in str(caught.value)


def test_messages_name_tables_and_schemas_as_one_says_it(script: Script) -> None:
    catalog = script.connect()
    script.answers["GET", TABLE] = failure("NoSuchTableException", 404)
    with pytest.raises(CatalogNameNotFoundError, match=r"The catalog has no table main\.s\.t \(so it is\)"):
        catalog.load_table(NAME)
    script.answers["DELETE", "/schemas/main.s"] = (404, {"error_code": "SCHEMA_NOT_FOUND", "message": "none"})
    with pytest.raises(CatalogNameNotFoundError, match=r"The catalog has no schema 'main\.s' \(none\)"):
        catalog.drop_schema("main", "s")
    script.answers["POST", "/schemas"] = (400, {"error_code": "SCHEMA_ALREADY_EXISTS", "message": "there"})
    with pytest.raises(CatalogNameExistsError, match=r"The catalog already has the schema 'main\.s' \(there\)"):
        catalog.create_schema("main", "s")


@pytest.mark.parametrize("name", ["a.b", "a b", "\u00fcber", "a/b", "", "x" * 256, "a\n"])
def test_names_that_unity_catalog_does_not_take_are_refused_before_they_are_sent(script: Script, name: str) -> None:
    catalog = script.connect()
    before = len(script.requests)
    table = TableName("main", "s", name)
    staging = StagingTable(table_id="id-2", name=table, location="/tables/new")
    for call in (
        lambda: catalog.create_schema("main", name),
        lambda: catalog.create_staging_table(table),
        lambda: catalog.create_staging_table(TableName("main", name, "t")),
        lambda: catalog.create_table(staging, new_table()),
        lambda: catalog.register_table(table, "/tables/t"),
        lambda: catalog.rename_table(NAME, table),
    ):
        with pytest.raises(InvalidProposalError, match="letters, digits, '_', '-' and '@'"):
            call()
    assert len(script.requests) == before


def new_table(**properties: str) -> NewTable:
    features = frozenset({"catalogManaged", "inCommitTimestamp"})
    return NewTable(
        version=0,
        timestamp=1000,
        protocol=Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=frozenset({"catalogManaged"}),
            writer_features=features,
        ),
        metadata=Metadata(
            id="id-2",
            schema_string='{"type":"struct","fields":[]}',
            configuration={"delta.enableInCommitTimestamps": "true", **properties},
        ),
    )


def test_values_that_unity_catalog_cannot_store_are_refused_before_they_are_sent(script: Script) -> None:
    """The server fails at a property of more than 255 characters, so that nobody would know what it has done."""
    catalog = script.connect()
    table = table_of(script, catalog)
    staging = StagingTable(table_id="id-2", name=NAME, location="/tables/new")
    long = {"delta.constraints.c": "x" * 256}
    metadata = Metadata(id="m", schema_string='{"type":"struct","fields":[]}', configuration=long)
    clustering = DomainMetadata(
        domain="delta.clustering", configuration=orjson.dumps({"clusteringColumns": [["x" * 250]]}).decode()
    )
    connection = Connection(script.url)
    older = UnityCatalog(connection, LegacyApi(connection))
    before = len(script.requests)
    for call in (
        lambda: catalog.create_table(staging, new_table(**long)),
        lambda: catalog.ratify(table, proposal(4, change=MetadataChange(metadata=metadata))),
        lambda: catalog.ratify(table, proposal(4, change=MetadataChange(domains=(clustering,)))),
        lambda: older.create_table(staging, new_table(**long)),
        lambda: older.ratify(table, proposal(4, change=MetadataChange(metadata=metadata))),
    ):
        with pytest.raises(InvalidProposalError, match=r"25\d characters.*at most 255"):
            call()
    assert [request for request in script.requests[before:] if request[0] != "GET"] == []


def test_a_long_value_that_the_table_has_already_is_not_in_the_way(script: Script) -> None:
    catalog = script.connect()
    known = {"delta.feature.catalogManaged": "supported", "note": "x" * 300}
    table = table_of(script, catalog, loaded(properties=known))
    script.answers["POST", TABLE] = loaded()
    configuration = {"note": "x" * 300, "a": "1"}
    metadata = Metadata(id="m", schema_string='{"type":"struct","fields":[]}', configuration=configuration)
    catalog.ratify(table, proposal(4, change=MetadataChange(metadata=metadata)))
    (request,) = script.sent("POST", TABLE)
    assert {"action": "set-properties", "updates": {"a": "1"}} in request["updates"]


def test_a_table_is_registered_with_what_the_server_shows_of_it(script: Script) -> None:
    catalog = script.connect()
    script.answers["GET", TABLE] = loaded(properties={}, **{"table-type": "EXTERNAL"})
    script.answers["POST", "/delta/v1/catalogs/main/schemas/s/tables"] = loaded()
    described = NewTable(
        version=7,
        timestamp=5000,
        protocol=Protocol(min_reader_version=1, min_writer_version=2),
        metadata=Metadata(
            id="m",
            schema_string='{"type":"struct","fields":[{"name":"p","type":"long","nullable":true,"metadata":{}}]}',
            partition_columns=("p",),
            configuration={"owner": "ada"},
        ),
    )
    assert not catalog.register_table(NAME, "/tables/t", described).catalog_managed
    (request,) = script.sent("POST", "/delta/v1/catalogs/main/schemas/s/tables")
    assert (request["name"], request["table-type"], request["location"]) == ("t", "EXTERNAL", "file:///tables/t")
    assert request["protocol"] == {"min-reader-version": 1, "min-writer-version": 2}
    assert (request["partition-columns"], request["properties"]) == (["p"], {"owner": "ada"})
    assert [field["name"] for field in request["columns"]["fields"]] == ["p"]
    assert request["last-commit-timestamp-ms"] == 5000
    connection = Connection(script.url)
    script.answers["GET", "/tables/main.s.t"] = legacy_table(table_type="EXTERNAL", properties={})
    script.answers["POST", "/tables"] = (200, {})
    UnityCatalog(connection, LegacyApi(connection)).register_table(NAME, "/tables/t", described)
    (older,) = script.sent("POST", "/tables")
    assert (older["table_type"], older["data_source_format"]) == ("EXTERNAL", "DELTA")
    assert [(column["name"], column["partition_index"]) for column in older["columns"]] == [("p", 0)]
    made = {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}
    assert older["properties"] == {"owner": "ada", **made}


def test_a_change_of_a_registered_table_is_reported_with_its_version(script: Script) -> None:
    catalog = script.connect()
    assert Capability.MIRROR in catalog.capabilities
    table = table_of(script, catalog, loaded(properties={"a": "1"}, **{"table-type": "EXTERNAL"}))
    script.answers["POST", TABLE] = loaded()
    metadata = Metadata(id="m", schema_string='{"type":"struct","fields":[]}', configuration={"b": "2"})
    catalog.report_change(table, 8, 6000, MetadataChange(metadata=metadata))
    (request,) = script.sent("POST", TABLE)
    updates = {update.pop("action"): update for update in request["updates"]}
    assert updates["update-metadata-snapshot-version"] == {"last-commit-version": 8, "last-commit-timestamp-ms": 6000}
    assert updates["set-properties"] == {"updates": {"b": "2"}}
    assert updates["remove-properties"] == {"removals": ["a"]}
    connection = Connection(script.url)
    assert Capability.MIRROR not in UnityCatalog(connection, LegacyApi(connection)).capabilities


def test_a_managed_table_must_keep_what_the_server_requires(script: Script) -> None:
    """The server says it only when the table is created, and checks it only when its protocol changes."""
    managed = {"delta.feature.catalogManaged": "supported", "delta.enableDeletionVectors": "true", "mine": "1"}
    catalog = script.connect()
    table = table_of(script, catalog, loaded(properties=managed))
    assert table.required_properties == {"delta.enableDeletionVectors": "true"}
    assert (
        table_of(script, catalog, loaded(properties={"delta.enableDeletionVectors": "true"})).required_properties == {}
    )
    script.answers["POST", "/delta/v1/catalogs/main/schemas/s/staging-tables"] = (
        200,
        {"table-id": "id-2", "location": "file:///tables/new"},
    )
    assert catalog.create_staging_table(NAME).longest_property == 255


# ------------------------------------------------------------------------------------------------- older servers
def test_a_server_without_the_delta_api_is_used_through_what_is_older(script: Script) -> None:
    """The commits come in pages, the earliest first, and in any order."""
    catalog = UnityCatalog.connect(script.url, catalog="main")
    script.answers["GET", "/tables/main.s.t"] = legacy_table()

    def page(*versions: int) -> Answer:
        names = ("version", "timestamp", "file_name", "file_size", "file_modification_timestamp")
        return 200, {
            "commits": [dict(zip(names, (v, 1000 + v, file_name(v), 10, 5), strict=True)) for v in versions],
            "latest_table_version": 4,
        }

    script.answers["GET", "/delta/preview/commits"] = [page(3, 2), page(4)]
    tail = catalog.load_table(NAME).tail
    assert tail is not None
    assert [commit.version for commit in tail.commits] == [2, 3, 4]
    asked = [body["start_version"] for body in script.sent("GET", "/delta/preview/commits")]
    assert asked == [0, 4]


def test_a_catalog_that_the_server_does_not_have_is_not_found(script: Script) -> None:
    script.answers["GET", "/delta/v1/config"] = failure("NoSuchCatalogException", 404)
    with pytest.raises(CatalogNameNotFoundError):
        UnityCatalog.connect(script.url, catalog="nowhere")


def test_another_version_of_the_api_is_an_error(script: Script) -> None:
    script.answers["GET", "/delta/v1/config"] = (200, {"endpoints": [], "protocol-version": "2.0"})
    with pytest.raises(CatalogError, match="speaks version 2"):
        UnityCatalog.connect(script.url, catalog="main")


def test_a_server_that_is_silent_is_unavailable() -> None:
    """The port takes connections, and nothing answers on them."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(CatalogUnavailableError, match="in time"):
            UnityCatalog.connect(url, catalog="main", timeout=0.2)
