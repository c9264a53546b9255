"""HDFS without Spark, through PyArrow and libhdfs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.plugins.hdfs import JARS, SETTINGS

from pyspark_delta.errors import MissingDependencyError, StorageError, UnsupportedTableError
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.arrow_hadoop import ArrowHadoopStore
from pyspark_delta.storage.paths import file_name, join, split
from pyspark_delta.testing import store_contract
from pyspark_delta.testing.store_contract import StoreContract


def has_libhdfs() -> bool:
    folders = [os.environ.get("ARROW_LIBHDFS_DIR"), f"{os.environ.get('HADOOP_HOME')}/lib/native"]
    return any(Path(folder, "libhdfs.so").exists() for folder in folders if folder)


@pytest.mark.skipif(not has_libhdfs(), reason="libhdfs is not installed")
class TestArrowHadoopStore(StoreContract):
    @pytest.fixture
    def root(self, hdfs_path: str) -> str:
        return f"{hdfs_path}/new/root"

    @pytest.fixture
    def store(self, monkeypatch: pytest.MonkeyPatch, root: str) -> ObjectStore:
        monkeypatch.setattr(
            store_contract, "ODD_NAMES", tuple(n for n in store_contract.ODD_NAMES if max(n) <= "\uffff")
        )
        monkeypatch.setenv("CLASSPATH", os.pathsep.join(map(str, JARS.glob("*.jar"))))
        scheme, authority, _ = split(root)
        return ArrowHadoopStore(scheme, authority, SETTINGS)

    def test_names_beyond_u_ffff_are_refused(self, store: ObjectStore, root: str) -> None:
        with pytest.raises(StorageError, match="no characters above"):
            store.write(join(root, "\U0001f600"), b"x")

    def test_lists_in_utf8_order_from_the_start_on(self, store: ObjectStore, root: str) -> None:
        names = ["00", "01.json", "A", "_x", "a", "é", "\uffee"]
        for name in reversed(names):
            store.write(join(root, name), b"x")
        for start in ("", "01.json", "a", "b", "é", "0", " "):
            listed = [file_name(status.path) for status in store.list_from(join(root, start))]
            assert listed == [name for name in names if name >= start], start


def test_without_hadoop_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CLASSPATH", "HADOOP_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"hdfs://name:8020.*HADOOP_HOME"):
        ArrowHadoopStore("hdfs", "name:8020", {}).read("hdfs://name:8020/t")


def test_file_systems_whose_rename_may_replace_are_not_written() -> None:
    with pytest.raises(UnsupportedTableError, match=r"Cannot commit 'oss://b/t/0.json'"):
        ArrowHadoopStore("oss", "b", {}).write_if_absent("oss://b/t/0.json", b"x")
