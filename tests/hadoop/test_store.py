"""The storage contract on HDFS, through the JVM of a session and through one of the process."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.plugins.hdfs import SETTINGS

from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.testing.store_contract import StoreContract


class TestHadoopStore(StoreContract):
    @pytest.fixture
    def root(self, hdfs_path: str) -> str:
        return f"{hdfs_path}/new/root"

    @pytest.fixture
    def store(self, spark: SparkSession, root: str) -> ObjectStore:
        return store_for(root, SETTINGS)
