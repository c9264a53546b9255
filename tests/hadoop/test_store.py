"""The storage contract on HDFS, through the JVM of a session and through one of the process."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.plugins.hdfs import SETTINGS

from pyspark_delta.errors import FileAlreadyExistsError, StorageError, UnsupportedTableError
from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.testing.store_contract import StoreContract


class TestHadoopStore(StoreContract):
    @pytest.fixture
    def root(self, hdfs_path: str) -> str:
        return f"{hdfs_path}/new/root"

    @pytest.fixture
    def store(self, spark: SparkSession, root: str) -> ObjectStore:
        return store_for(root, SETTINGS)


def test_commits_need_a_rename_that_is_known_to_be_atomic(spark: SparkSession, hdfs_path: str, tmp_path: Path) -> None:
    mounts = {"/far": hdfs_path, "/near": f"file:{tmp_path}"}
    options = SETTINGS | {f"fs.viewfs.mounttable.mounts.link.{name}": target for name, target in mounts.items()}
    far, near = "viewfs://mounts/far/t/_delta_log/0.json", "viewfs://mounts/near/t/_delta_log/0.json"
    store = store_for(far, options)
    store.write_if_absent(far, b"far")
    assert store_for(hdfs_path, SETTINGS).read(f"{hdfs_path}/t/_delta_log/0.json") == b"far"
    with pytest.raises(FileAlreadyExistsError):
        store.write_if_absent(far, b"again")
    with pytest.raises(UnsupportedTableError, match=r"rename on 'file:'.*spark\.hadoop\.fs\.pyspark_delta"):
        store.write_if_absent(near, b"near")
    confirmed = store_for(near, {**options, "fs.pyspark_delta.atomic.rename": "ofs, file"})
    confirmed.write_if_absent(near, b"near")
    assert (tmp_path / "t" / "_delta_log" / "0.json").read_bytes() == b"near"


def test_failures_name_the_path_and_the_cause(spark: SparkSession) -> None:
    with pytest.raises(StorageError, match=r"hdfs://localhost:1/t.*[Cc]onnection refused"):
        store_for("hdfs://localhost:1/t", {"ipc.client.connect.max.retries": "0"}).read("hdfs://localhost:1/t")
    with pytest.raises(StorageError, match=r"oss://b/t.*No FileSystem for scheme"):
        store_for("oss://b/t").read("oss://b/t")
