"""The storage contract on S3, spoken over HTTP."""

from __future__ import annotations

import uuid

import pytest

from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.testing.store_contract import StoreContract


class TestS3Store(StoreContract):
    @pytest.fixture
    def root(self) -> str:
        return f"s3://contract/{uuid.uuid4().hex}/root"

    @pytest.fixture
    def store(self, root: str, s3_options: dict[str, str]) -> ObjectStore:
        return store_for(root, s3_options)
