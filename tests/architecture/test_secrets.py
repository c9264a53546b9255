"""What may hold a secret is shown by no `repr`, and so by no log, error or plan that shows the object."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import pyspark_delta
from pyspark_delta.catalog.unity.connection import Connection
from pyspark_delta.catalogs import connect_catalog
from pyspark_delta.cli.catalog import _database
from pyspark_delta.cli.catalog_options import ChosenCatalog
from pyspark_delta.errors import CatalogError, DeltaError, InvalidOptionError
from pyspark_delta.scan.plan import ReadContext
from pyspark_delta.storage import store_for
from pyspark_delta.storage.credentials import CREDENTIALS_KEY, CarriedOptions
from pyspark_delta.storage.options import client_options

SECRET = "s3cr3t-wJalrXUtnFEMI"
OPTIONS = {"aws_access_key_id": "AKIA", "aws_secret_access_key": SECRET, "aws_region": "us-east-1"}
_MAY_BE_SECRET = frozenset(
    {"storage_options", "token", "secret", "password", "oauth_token", "headers", "store_options", "credentials_options"}
)


def _dataclasses() -> Iterator[type]:
    for module in pkgutil.walk_packages(pyspark_delta.__path__, "pyspark_delta."):
        if "__main__" in module.name:
            continue
        for found in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(found) and found.__module__ == module.name and dataclasses.is_dataclass(found):
                yield found


def test_no_field_for_secrets_is_shown() -> None:
    holders = {
        f"{found.__module__}.{found.__qualname__}.{field.name}": field.repr
        for found in _dataclasses()
        for field in dataclasses.fields(found)
        if field.name in _MAY_BE_SECRET and str(field.type) not in ("Token",)  # which has no secret
    }
    assert len(holders) >= 12
    assert [name for name, is_shown in holders.items() if is_shown] == []


def test_plans_stores_and_chosen_catalogs_show_no_secret() -> None:
    context = ReadContext("s3://bucket/t", (), (), storage_options=CarriedOptions(OPTIONS))
    chosen = ChosenCatalog(f"postgresql://u:{SECRET}@host/db", token=SECRET)
    for holder in (context, client_options("s3", "bucket", OPTIONS), chosen, store_for("s3://bucket/t", OPTIONS)):
        assert SECRET not in f"{holder!r} {holder}"


def test_a_worker_gets_no_name_of_a_source_of_credentials() -> None:
    carried = CarriedOptions({**OPTIONS, CREDENTIALS_KEY: "catalog:main/table"})
    assert pickle.loads(pickle.dumps(carried)) == OPTIONS


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{SECRET}:x@host:port/db",
        f"mysql://user:{SECRET}@host/db",
        f"ftp://user:{SECRET}@host/db",
        f"https://user:{SECRET}@host/api",
        f"https://host/api?token={SECRET}",
        f"https:///{SECRET}",
    ],
)
def test_an_error_about_a_url_shows_no_password(url: str) -> None:
    with pytest.raises(DeltaError) as caught:
        connect_catalog(url, "hidden")
    assert SECRET not in f"{caught.value} {caught.value.facts}"
    if not url.startswith("postgresql:"):
        with pytest.raises(InvalidOptionError) as refused:
            _database(ChosenCatalog(url))
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize("token", [f"{SECRET}\n", f"\r\n{SECRET}", f"{SECRET}é", f" {SECRET}", f"{SECRET}\x00"])
def test_a_token_that_cannot_be_sent_is_not_shown(token: str) -> None:
    connection: Any = Connection("http://127.0.0.1:9", token)
    with pytest.raises(CatalogError, match="another character that no token has") as caught:
        connection.call("GET", "/schemas")
    assert SECRET not in f"{caught.value} {caught.value.facts} {caught.value.__context__}"
