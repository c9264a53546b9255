"""The stores that wrap another one keep its contract."""

from __future__ import annotations

import uuid

import pytest

from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.storage.counting import CountingStore
from pyspark_delta.testing.faults import Fault, FaultyStore
from pyspark_delta.testing.store_contract import StoreContract


class _OverMemory(StoreContract):
    @pytest.fixture
    def root(self) -> str:
        return f"memory://{uuid.uuid4().hex}/root"


class TestCountingStore(_OverMemory):
    @pytest.fixture
    def store(self, root: str) -> ObjectStore:
        return CountingStore(store_for(root))


class TestFaultyStoreWithoutFault(_OverMemory):
    @pytest.fixture
    def store(self, root: str) -> ObjectStore:
        return FaultyStore(store_for(root), Fault(nth=10**9))
