"""Deep clones and vacuums of tables in object stores, by requests of the stores themselves."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from pyspark_delta.storage import intercepted
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.table import Table


@pytest.fixture(params=["s3", "az"])
def place(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """A location in a store, and the options of the store."""
    options: dict[str, str] = request.getfixturevalue({"s3": "s3_options", "az": "azure_options"}[request.param])
    return f"{request.param}://contract/{uuid.uuid4().hex}", options


def ids(location: str, options: dict[str, str], **version: Any) -> list[int]:
    found: list[int] = Table.open(location, storage_options=options, **version).scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def test_deep_clones_are_copied_by_the_store(place: tuple[str, dict[str, str]]) -> None:
    (root, options), counts = place, Counts()
    rows = {"id": [1, 2], "p": ["a b%", None]}
    table = Table.write(f"{root}/t", rows, partition_by=["p"], storage_options=options)
    table.append({"id": [3], "p": ["a b%"]})
    with intercepted(lambda inner: CountingStore(inner, counts)):
        table.clone(f"{root}/deep", shallow=False)
        assert counts.calls["copy"] == 3
        table.clone(f"{root}/merged", shallow=False, merge_files=True)
        assert counts.calls["copy"] == 4
    assert ids(f"{root}/deep", options) == ids(f"{root}/merged", options) == [1, 2, 3]
    assert Table.open(f"{root}/merged", storage_options=options).snapshot.num_files() == 2


def test_c016_a_vacuum_leaves_what_the_version_and_its_shallow_clone_need(place: tuple[str, dict[str, str]]) -> None:
    root, options = place
    table = Table.write(f"{root}/t", {"id": [1, 2]}, storage_options=options)
    table.clone(f"{root}/clone")
    table.overwrite({"id": [3]})
    protected = table.vacuum(0, enforce_retention_duration=False, protect=[f"{root}/clone"])
    assert (protected.num_deleted_files, ids(f"{root}/clone", options)) == (0, [1, 2])
    assert table.vacuum(0, enforce_retention_duration=False).num_deleted_files == 1
    assert ids(f"{root}/t", options) == [3]
