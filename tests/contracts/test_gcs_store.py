"""The storage contract on Google Cloud Storage, spoken over HTTP."""

from __future__ import annotations

import uuid

import pytest

from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.testing.store_contract import StoreContract


class TestGcsStore(StoreContract):
    @pytest.fixture
    def root(self) -> str:
        return f"gs://contract/{uuid.uuid4().hex}/root"

    @pytest.fixture
    def store(self, root: str, gcs_options: dict[str, str]) -> ObjectStore:
        return store_for(root, gcs_options)
