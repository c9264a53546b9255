"""The storage contract on the local file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.testing.store_contract import StoreContract


class TestLocalStore(StoreContract):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"{tmp_path}/new/root"

    @pytest.fixture
    def store(self, root: str) -> ObjectStore:
        return store_for(root)
