"""The storage contract on the store in memory."""

from __future__ import annotations

import uuid

import pytest

from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.testing.store_contract import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def root(self) -> str:
        return f"memory://{uuid.uuid4().hex}/new/root"

    @pytest.fixture
    def store(self, root: str) -> ObjectStore:
        return store_for(root)
