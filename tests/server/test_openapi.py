"""The description of the server is true: requests made from it, valid or not, are answered as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.served import Application, create

from pyspark_delta.catalog.contract import TableName
from pyspark_delta.catalog.sql import SqlCatalog
from pyspark_delta.server.application import OPERATIONS, create_application
from pyspark_delta.server.openapi import PATH
from pyspark_delta.server.operation import BASE, Operation

KNOWN = {"catalog": "main", "schema": "s", "table": "t", "name": "main", "full_name": "main.s"}
TRUE = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)


def on_this_machine(application: Application) -> Application:
    """Requests to an application come as if they were sent to this machine: without tokens it takes no others."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope = {**scope, "headers": [*headers, (b"host", b"127.0.0.1")]}
        await application(scope, receive, send)

    return answer


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("openapi")
    catalog = SqlCatalog.connect(f"sqlite:///{folder / 'catalog.db'}")
    catalog.create_schema("main", "s")
    table = create(catalog, TableName("main", "s", "t"))
    KNOWN.update(table_id=table.table_id)
    yield schemathesis.openapi.from_asgi(PATH, on_this_machine(create_application(catalog, None)))
    catalog.close()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: f"{o.method} {o.path}")
def test_every_answer_is_as_described(described: Any, operation: Operation) -> None:
    found = described[BASE + operation.path][operation.method]
    cases = st.one_of(
        *(found.as_strategy(generation_mode=mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE))
    )

    @settings(max_examples=8, suppress_health_check=list(HealthCheck), deadline=None, database=None)
    @given(case=cases)
    def check(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=TRUE)
        if case.path_parameters:  # the same once more, with what there is
            case.path_parameters = {name: KNOWN[name] for name in case.path_parameters}
            if operation.path == "/tables/{full_name}":
                case.path_parameters["full_name"] = "main.s.t"
            case.call_and_validate(checks=TRUE)

    check()
