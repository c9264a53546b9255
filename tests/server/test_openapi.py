"""The description of the server is true: requests made from it, valid or not, are answered as it says."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.served import create

from pyspark_delta.catalog.contract import TableName
from pyspark_delta.catalog.sql import SqlCatalog
from pyspark_delta.server.application import create_application
from pyspark_delta.server.openapi import PATH

TRUE = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> schemathesis.schemas.BaseSchema:
    folder: Path = tmp_path_factory.mktemp("openapi")
    catalog = SqlCatalog.connect(f"sqlite:///{folder / 'catalog.db'}")
    catalog.create_schema("main", "s")
    create(catalog, TableName("main", "s", f"t{uuid.uuid4().hex[:8]}"))
    return schemathesis.openapi.from_asgi(PATH, create_application(catalog, None))


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(max_examples=8, suppress_health_check=list(HealthCheck), deadline=None)
def test_every_answer_is_as_described(case: schemathesis.Case) -> None:
    case.call_and_validate(checks=TRUE)
