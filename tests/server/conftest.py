"""A server for the tests of a module, and one for a test that changes how it behaves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contracts.conftest import s3_endpoint, s3_options
from tests.served import Served

__all__ = ["s3_endpoint", "s3_options"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose catalog `main` has the schemas `s` and `other`."""
    with Served(tmp_path_factory.mktemp("served")) as server:
        server.catalog.create_schema("main", "s")
        server.catalog.create_schema("main", "other")
        yield server
