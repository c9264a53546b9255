"""The storage contract on S3, spoken over HTTP."""

from __future__ import annotations

import http.server
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from pyspark_delta.ddl.create import CreateMode, TableDefinition, create_table
from pyspark_delta.errors import FileNotFoundInStoreError, PermissionDeniedError, StorageError, UnsupportedTableError
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.storage import object as object_stores
from pyspark_delta.testing.store_contract import StoreContract
from pyspark_delta.transaction.transaction import Transaction
from pyspark_delta.transaction.write_plan import FileOptions


class TestS3Store(StoreContract):
    @pytest.fixture
    def root(self) -> str:
        return f"s3://contract/{uuid.uuid4().hex}/root"

    @pytest.fixture
    def store(self, root: str, s3_options: dict[str, str]) -> ObjectStore:
        return store_for(root, s3_options)


def test_a_missing_bucket_is_named(s3_options: dict[str, str]) -> None:
    path = "s3://no-such-bucket/t/x"
    store = store_for(path, s3_options)
    for operation in (store.read, lambda path: list(store.list_from(path)), lambda path: store.write(path, b"x")):
        with pytest.raises(StorageError, match="bucket or container 'no-such-bucket' does not exist") as caught:
            operation(path)
        assert not isinstance(caught.value, FileNotFoundInStoreError)


class _Refuses(http.server.BaseHTTPRequestHandler):
    def _refuse(self) -> None:
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_HEAD = do_POST = _refuse  # noqa: N815 - names that http.server looks for

    def log_message(self, *_: object) -> None:
        """Quiet."""


def test_refused_credentials_are_no_missing_files() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refuses) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        path = "s3://b/t/x"
        options = {
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        }
        store = store_for(path, options)
        operations: list[Callable[[str], object]] = [
            store.read,
            store.status,
            store.open_input,
            lambda path: list(store.list_from(path)),
            lambda path: store.read(path, (0, 5)),
            lambda path: store.write(path, b"x"),
            lambda path: store.write_if_absent(path, b"x"),
        ]
        try:
            for operation in operations:
                with pytest.raises(PermissionDeniedError, match="Check the credentials"):
                    operation(path)
        finally:
            server.shutdown()
            thread.join()


def test_a_server_that_is_not_there_is_named() -> None:
    options = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    with pytest.raises(StorageError, match="Cannot read 's3://b/x'"):
        store_for("s3://b/x", options).read("s3://b/x")


def test_hadoop_options_reach_the_server(s3_endpoint: str) -> None:
    options = {
        "spark.hadoop.fs.s3a.access.key": "test",
        "spark.hadoop.fs.s3a.secret.key": "test",
        "spark.hadoop.fs.s3a.endpoint": s3_endpoint.removeprefix("http://"),
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.maximum": "10",
    }
    path = f"s3://contract/{uuid.uuid4().hex}"
    store_for(path, options).write(path, b"x")
    assert store_for(path, options).read(path) == b"x"


def test_tables_that_lock_through_dynamodb_are_read_but_not_committed_to(s3_options: dict[str, str]) -> None:
    path = f"s3://contract/{uuid.uuid4().hex}"
    store = store_for(path, s3_options | {"AWS_S3_LOCKING_PROVIDER": "dynamodb"})
    store_for(path, s3_options).write(path, b"x")
    assert store.read(path) == b"x"
    with pytest.raises(UnsupportedTableError, match="lock table"):
        store.write_if_absent(path + "2", b"x")


def test_listing_steps_over_sub_directories(s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    import obstore

    root = f"s3://contract/{uuid.uuid4().hex}"
    store = store_for(root, s3_options)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.write(f"{root}/_sidecars/{number:04}", b""), range(1100)))
    store.write(f"{root}/0.json", b"")
    store.write(f"{root}/z.json", b"")
    pages: list[int] = []
    real_list = obstore.list

    def counted(*arguments: Any, **named: Any) -> Any:
        for page in real_list(*arguments, **named):
            pages.append(len(page))
            yield page

    monkeypatch.setattr(obstore, "list", counted)
    assert [status.path for status in store.list_from(f"{root}/")] == [f"{root}/0.json", f"{root}/z.json"]
    assert len(pages) == 2


def test_s3a_is_s3(s3_options: dict[str, str]) -> None:
    path = f"contract/{uuid.uuid4().hex}"
    store_for(f"s3a://{path}", s3_options).write(f"s3a://{path}", b"x")
    assert store_for(f"s3://{path}", s3_options).read(f"s3://{path}") == b"x"


def test_a_transaction_writes_with_the_keys_of_its_table(s3_options: dict[str, str]) -> None:
    location, schema = f"s3://contract/{uuid.uuid4().hex}", StructType((StructField("id", LONG),))
    create_table(location, TableDefinition(schema=schema), CreateMode.CREATE, storage_options=s3_options)
    table = Snapshot.load(location, storage_options=s3_options)
    with Transaction.on(table) as transaction:
        transaction.write([pa.record_batch({"id": [1, 2]})], FileOptions(compression="gzip"))
    assert table.update().num_files() == 1


def test_files_that_are_too_large_for_one_request_are_copied(
    s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, content = f"s3://contract/{uuid.uuid4().hex}", bytes(range(256)) * 50_000
    store = store_for(root, s3_options)
    store.write(f"{root}/a", content)
    monkeypatch.setattr(object_stores, "_LARGEST_COPY", 1000)
    monkeypatch.setattr(object_stores, "_COPIED_AT_ONCE", 1 << 20)
    requests: list[str] = []
    monkeypatch.setattr("obstore.copy", lambda *_: requests.append("copy"))
    store.copy(f"{root}/a", f"{root}/b")
    assert (store.read(f"{root}/b"), requests) == (content, [])
