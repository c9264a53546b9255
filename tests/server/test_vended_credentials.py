"""Credentials that a server gives for a while: used by the real client of object stores, and renewed in time."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.managed import Warehouse
from tests.vending import LIFE, Vendor, vending

from pyspark_delta.catalog.connections import disconnect_catalog
from pyspark_delta.catalogs import connect_catalog
from pyspark_delta.errors import StorageError
from pyspark_delta.storage import credentials, store_for
from pyspark_delta.storage.credentials import CREDENTIALS_KEY, CarriedOptions, source_of


@pytest.fixture
def vendor(tmp_path: Path, s3_endpoint: str, s3_options: dict[str, str]) -> Iterator[Vendor]:
    with vending(tmp_path, s3_endpoint, s3_options) as made:
        yield made
    disconnect_catalog("main")


def connect(vendor: Vendor) -> Warehouse:
    """The catalog, as its users connect to it."""
    warehouse = Warehouse.served(vendor.url, None)
    warehouse.catalog = connect_catalog(vendor.url, "main", storage_options=vendor.storage_options)
    return warehouse


def test_credentials_are_used_until_they_are_about_to_end(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = connect(vendor)
    warehouse.create()  # at a staging location, for which there are credentials too
    assert [warehouse.append(number) for number in range(3)] == [1, 2, 3]
    snapshot, table = warehouse.snapshot(), warehouse.open()
    assert warehouse.ids() == [0, 1, 2]
    assert len(vendor.guard.seen) == 1
    (first,), issued = vendor.guard.seen, vendor.catalog.issued

    ahead = LIFE // 2 + 1
    monkeypatch.setattr(credentials, "_now", lambda: int(time.time() * 1000) + ahead)
    for _ in range(200):  # the client asks not more often than ten times a second
        assert table.scan().to_arrow().num_rows == 3
        if len(vendor.guard.seen) == 2:
            break
    vendor.guard.valid.remove(first)
    assert warehouse.ids() == [0, 1, 2]
    assert warehouse.append(3) == 4
    assert snapshot.update().version == 4  # all that was opened before goes on
    assert vendor.catalog.issued == issued + 1


def test_other_processes_are_told_the_credentials_of_the_moment(vendor: Vendor) -> None:
    warehouse = connect(vendor)
    warehouse.create()
    warehouse.append(1)
    plan, (key,) = warehouse.open().scan().plan, vendor.guard.seen
    assert CREDENTIALS_KEY in plan.context.storage_options
    assert key not in repr(plan.context.storage_options)
    told = pickle.loads(pickle.dumps(plan.context)).storage_options
    assert told["aws_access_key_id"] == key
    assert told["aws_session_token"] == f"of {key}"
    assert source_of(told) is None  # there is nobody to ask
    path = f"{warehouse.location()}/_delta_log/{0:020}.json"
    assert store_for(path, told).read(path)
    assert pickle.loads(pickle.dumps(store_for(path, plan.context.storage_options))).read(path)
    assert vendor.guard.seen == {key}


@pytest.mark.parametrize("in_between", [lambda _: None, disconnect_catalog], ids=["replaced", "disconnected"])
def test_another_connection_has_other_credentials(vendor: Vendor, in_between: Callable[[str], None]) -> None:
    warehouse = connect(vendor)
    warehouse.create()
    before = warehouse.snapshot()
    vendor.guard.valid.clear()
    with pytest.raises(StorageError, match="permission"):
        warehouse.append(1)
    in_between("main")
    after = connect(vendor)
    told = pickle.loads(pickle.dumps(CarriedOptions(before.storage_options)))  # opened through the one before
    assert after.append(1) == 1
    assert told["aws_access_key_id"] in vendor.guard.valid
    assert len(vendor.guard.seen) == 2
