"""The description of the server is true: requests made from it, valid or not, are answered as it says."""

from __future__ import annotations

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

KNOWN = {"catalog": "main", "schema": "s", "table": "t", "name": "main", "full_name": "main.s"}
TRUE = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> schemathesis.schemas.BaseSchema:
    folder: Path = tmp_path_factory.mktemp("openapi")
    catalog = SqlCatalog.connect(f"sqlite:///{folder / 'catalog.db'}")
    catalog.create_schema("main", "s")
    table = create(catalog, TableName("main", "s", "t"))
    KNOWN.update(table_id=table.table_id)
    return schemathesis.openapi.from_asgi(PATH, create_application(catalog, None))


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(max_examples=8, suppress_health_check=list(HealthCheck), deadline=None)
def test_every_answer_is_as_described(case: schemathesis.Case) -> None:
    case.call_and_validate(checks=TRUE)
    if case.path_parameters:  # the same once more, with what there is
        case.path_parameters = {name: KNOWN[name] for name in case.path_parameters}
        if "/tables/{full_name}" in case.operation.path:
            case.path_parameters["full_name"] = "main.s.t"
        case.call_and_validate(checks=TRUE)
